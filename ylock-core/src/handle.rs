//! The handle by which a program has a client.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::engine::Engine;
use crate::error::Result;
use crate::keeper::Keeper;
use crate::layer::{Layer, Layers, observer};
use crate::options::Options;

/// The handle by which a program has a client. One pointer: each acquisition has a copy of it.
#[derive(Clone)]
pub(crate) struct Handle(Arc<Parts>);

/// The keeper of a client, and the layers and options of the locks that are acquired through one handle.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) layers: Layers,
    pub(crate) options: Arc<Options>,
    /// Shared by all handles of one client and by nothing else: it is dropped with the last of them.
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

impl Handle {
    /// Creates a client over an engine, and returns a handle without layers and with the default options.
    pub(crate) fn over(engine: Arc<dyn Engine>) -> Self {
        let keeper = Keeper::new(engine);
        let last = Arc::new(Last(Arc::clone(&keeper)));
        Self(Arc::new(Parts { keeper, layers: Layers::default(), options: Arc::default(), _last: last }))
    }

    /// Returns the same handle with other options; what they leave open stays as it is.
    pub(crate) fn with_options(&self, options: Options) -> Self {
        self.changed(|parts| parts.options = Arc::new(options.over(&parts.options)))
    }

    /// Returns the same handle with other options, if the engine supports them.
    pub(crate) fn try_with_options(&self, options: Options) -> Result<Self> {
        let options = options.checked_over(&self.options, &**self.keeper.engine())?;
        Ok(self.changed(|parts| parts.options = Arc::new(options)))
    }

    /// Returns the same handle with one more layer, inside the earlier ones.
    pub(crate) fn with_layer(&self, layer: Arc<dyn Layer>) -> Self {
        self.keeper.watch(&observer(&layer));
        self.changed(|parts| parts.layers = parts.layers.with(layer))
    }

    fn changed(&self, change: impl FnOnce(&mut Parts)) -> Self {
        let mut parts = Parts::clone(&self.0);
        change(&mut parts);
        Self(Arc::new(parts))
    }
}

impl Deref for Handle {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("client", &self.keeper.name().get())
            .field("engine", &self.keeper.engine().name())
            .field("layers", &self.layers)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
