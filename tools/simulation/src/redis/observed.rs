//! A client's engine under observation: what it says has ended must not be in the store later.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ylock_core::Result;
use ylock_core::engine::{Engine, Grant, Request};
use ylock_testkit::Wrapper;

use super::server::Server;

/// An engine over a server that is told what has ended.
#[derive(Debug)]
pub struct Observed {
    /// The engine.
    pub engine: Arc<dyn Engine>,
    /// Its server.
    pub server: Arc<Server>,
}

impl Wrapper for Observed {
    fn inner(&self) -> &dyn Engine {
        &*self.engine
    }

    /// A try that was not granted leaves nothing behind, also if an earlier question of it comes late.
    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        let granted = self.engine.acquire(request).await?;
        if granted.is_none() {
            let id = URL_SAFE_NO_PAD.encode(request.id.as_u128().to_be_bytes());
            self.server.has_ended(id.into_bytes());
        }
        Ok(granted)
    }
}
