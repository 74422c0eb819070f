//! The way in which an engine asks for a renewal before it is due.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use crate::key::Key;

/// Renews what is held.
pub(crate) trait Renews: Send + Sync {
    /// Renews the grant of this key now, if there is one.
    fn renew_soon(self: Arc<Self>, key: &Key);
}

/// The way in which an engine asks for a renewal before it is due, because it was told that there is something to find out: that the grant was
/// revoked, or that another contender waits. Clones are the same. Before there is a keeper, nothing is asked for.
///
/// It is a request to look, and says nothing itself: what the store then shows decides.
#[derive(Clone, Default)]
pub struct EarlyRenewals(Arc<OnceLock<Weak<dyn Renews>>>);

impl EarlyRenewals {
    /// Asks for a renewal of what is held under this key, if anything is. The engine says how often it asks.
    pub fn ask(&self, key: &Key) {
        if let Some(keeper) = self.0.get().and_then(Weak::upgrade) {
            keeper.renew_soon(key);
        }
    }

    /// Makes this keeper renew from now on.
    pub(crate) fn belong_to(&self, keeper: Weak<dyn Renews>) {
        // An engine has one keeper.
        let _ = self.0.set(keeper);
    }
}

impl fmt::Debug for EarlyRenewals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EarlyRenewals")
    }
}
