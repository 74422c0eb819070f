//! The terms on which a lock is acquired.

use std::fmt;
use std::sync::Arc;

use crate::engine::Engine;
use crate::error::Result;
use crate::keeper::Keeper;
use crate::layer::{Layer, Layers, observer};
use crate::options::Options;
use crate::owner::Owner;

/// The terms on which a lock is acquired: through which client, under which layers, with which options and for which owner.
///
/// A client, a group and a lock have terms each. A group begins with the terms of its client, and a lock with those of its group.
#[derive(Clone)]
pub(crate) struct Terms {
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) layers: Layers,
    pub(crate) options: Arc<Options>,
    /// `None` for the owner in whose scope the caller is, or for a new one.
    pub(crate) owner: Option<Owner>,
    /// Shared by the terms of one client and by nothing else: it is dropped with the last of them.
    _last: Arc<Last>,
}

/// Notices the end of a client that was not closed.
#[derive(Debug)]
struct Last(Arc<Keeper>);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.warn_of_releases();
    }
}

impl Terms {
    /// Creates a client over an engine, and returns its terms: no layers, the default options, no owner.
    pub(crate) fn over(engine: Arc<dyn Engine>) -> Self {
        let keeper = Keeper::new(engine);
        let last = Arc::new(Last(Arc::clone(&keeper)));
        Self { keeper, layers: Layers::default(), options: Arc::default(), owner: None, _last: last }
    }

    /// Returns the same terms with other options; what they leave open stays as it is.
    pub(crate) fn with_options(&self, options: Options) -> Self {
        Self { options: Arc::new(options.over(&self.options)), ..self.clone() }
    }

    /// Returns the same terms with other options, if the engine supports them.
    pub(crate) fn try_with_options(&self, options: Options) -> Result<Self> {
        let options = options.checked_over(&self.options, &**self.keeper.engine())?;
        Ok(Self { options: Arc::new(options), ..self.clone() })
    }

    /// Returns the same terms with one more layer, inside the earlier ones.
    pub(crate) fn with_layer(&self, layer: Arc<dyn Layer>) -> Self {
        self.keeper.watch(&observer(&layer));
        Self { layers: self.layers.with(layer), ..self.clone() }
    }

    /// Returns the same terms, always for this owner.
    pub(crate) fn owned_by(&self, owner: &Owner) -> Self {
        Self { owner: Some(*owner), ..self.clone() }
    }
}

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terms")
            .field("client", &self.keeper.name().get())
            .field("engine", &self.keeper.engine().name())
            .field("layers", &self.layers)
            .field("options", &self.options)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}
