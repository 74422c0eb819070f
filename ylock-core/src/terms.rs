//! The terms on which a lock is acquired.

use crate::error::Result;
use crate::handle::Handle;
use crate::options::Options;
use crate::owner::Owner;

/// The terms on which a lock is acquired: through which handle of a client, and for which owner.
///
/// A group and a lock have terms each. A group begins with the handle of its client, and a lock with the terms of its group.
#[derive(Clone, Debug)]
pub struct Terms {
    pub(crate) handle: Handle,
    /// `None` for the owner in whose scope the caller is, or for a new one.
    pub(crate) owner: Option<Owner>,
}

impl Terms {
    /// Returns the terms of a handle, for no owner in particular.
    pub(crate) fn of(handle: Handle) -> Self {
        Self { handle, owner: None }
    }

    pub(crate) fn options(&self) -> &Options {
        &self.handle.options
    }

    /// Returns the same terms with other options; what they leave open stays as it is.
    pub(crate) fn with_options(&self, options: Options) -> Self {
        Self { handle: self.handle.with_options(options), owner: self.owner }
    }

    /// Returns the same terms with other options, if the engine supports them.
    pub(crate) fn try_with_options(&self, options: Options) -> Result<Self> {
        Ok(Self { handle: self.handle.try_with_options(options)?, owner: self.owner })
    }

    /// Returns the same terms, always for this owner.
    pub(crate) fn owned_by(&self, owner: &Owner) -> Self {
        Self { handle: self.handle.clone(), owner: Some(*owner) }
    }
}
