//! What counts only while the floor of the tokens is the one that this client has agreed upon:
//! heartbeats, and tokens that are asked for.

use ylock_core::StoreToken;

use super::heartbeat::Stamp;
use super::link::Link;
use super::store::Fault;
use super::token_floor;

impl Link {
    /// Sends a heartbeat, see [`heartbeat`](super::heartbeat). Returns it.
    pub(crate) async fn beat(&self) -> Result<Stamp, Fault> {
        self.beat_unless(|_| false).await
    }

    /// Sends a heartbeat, unless the last one was confirmed and will do. Returns the one that
    /// counts.
    pub(crate) async fn beat_unless(&self, will_do: impl FnOnce(Stamp) -> bool) -> Result<Stamp, Fault> {
        // For a heartbeat that is on its way, and the next, which another task sends.
        let patience = || self.environment.sleep(self.request_timeout() * 2);
        self.heartbeat.beat(self, will_do, patience, || self.check()).await
    }

    /// Sends a write that changes nothing, for the heartbeat.
    pub(super) async fn check(&self) -> Result<(), Fault> {
        let node = token_floor::path(&self.base);
        let once = || self.transact(self.store.check(&node));
        match once().await {
            // It was removed from outside, perhaps with the base and everything. Only a write that
            // was done is a heartbeat.
            Err(Fault::NoNode) => {
                token_floor::put_back(self).await?;
                once().await
            }
            result => result,
        }
    }

    /// Returns the token that a contender has from the transaction that made its node; `None` if
    /// the node is not there. Fails with [`OutOfTokens`](Fault::OutOfTokens) if there is no token
    /// above the floor, and with [`OtherFloor`](Fault::OtherFloor) if the floor has changed.
    pub(crate) async fn token(&self, path: &str) -> Result<Option<StoreToken>, Fault> {
        let transaction = self.ask(self.store.token(path)).await?;
        token_floor::confirm(self).await?;
        transaction.map(|number| self.floor.token(number).ok_or(Fault::OutOfTokens)).transpose()
    }
}
