//! The making of sessions: all calls that need one at the same time have the same. A new one is
//! looked after from the beginning.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::connection::Place;
use ylock_core::environment::Answer;
use ylock_core::{Error, ErrorKind, Result};

use super::client::{Client, closed};
use super::session::Session;
use super::store::{Fault, to_error};
use super::{cleanup, floor, upkeep};

/// The number of times that no session came of making one, after which a caller is told: the runtime of the task that makes it may end.
const ATTEMPTS: u32 = 8;
/// The number of attempts to make one lease that a caller waits for, each for as long as a request
/// may take.
const TRIES: u32 = 3;

impl Client {
    /// Returns a session for a lock with this lease, whose etcd lease is not as old as that.
    pub(crate) async fn session_for(
        self: &Arc<Self>,
        lease: Duration,
        oldest: Duration,
    ) -> Result<Arc<Session>> {
        let (seconds, began) = (Session::seconds_for(lease), self.environment.now());
        let mut in_vain = 0;
        while in_vain < ATTEMPTS {
            if self.is_closed() {
                return Err(closed());
            }
            if let Some(session) = self.usable(seconds, began, oldest) {
                return Ok(session);
            }
            // One that was made may be full at once: very many locks are renewed at the same time.
            let before = self.newest_lease(seconds);
            self.make(seconds).await?;
            let made = self.newest_lease(seconds);
            in_vain = if made.is_some() && made != before { 0 } else { in_vain + 1 };
        }
        Err(Error::new(ErrorKind::Unavailable, "no etcd lease could be made").with_engine(crate::NAME))
    }

    /// Makes a session. All that need one at the same time have the same: a client with very many locks, or waiters, is not to make as many leases.
    async fn make(self: &Arc<Self>, seconds: i64) -> Result<()> {
        let (making, before) = (self.making(seconds), self.newest_lease(seconds));
        let times = (self.request_timeout, self.request_timeout / 4);
        let work = || -> Answer<Result<()>> {
            let client = Arc::clone(self);
            Box::pin(async move { client.make_session(seconds).await.map_err(to_error) })
        };
        // One that does not come back must not cost locks their leases: all that have waited for it
        // go on to the same next one, which another caller may have made a moment ago.
        for _ in 0..TRIES {
            if self.newest_lease(seconds) != before {
                return Ok(());
            }
            tokio::select! {
                biased;
                made = making.join(&self.environment, Place::ForAll, times, work) => {
                    return made.unwrap_or(Ok(()));
                }
                () = self.environment.sleep(self.request_timeout) => {}
            }
        }
        Err(Error::new(ErrorKind::Unavailable, "the servers did not make an etcd lease in time"))
    }

    /// Makes the session that follows this one.
    pub(super) async fn make_next(self: &Arc<Self>, session: &Session) -> Result<()> {
        self.make(session.asked_seconds()).await
    }

    async fn make_session(self: &Arc<Self>, seconds: i64) -> Result<(), Fault> {
        let made = self.environment.now();
        let before = self.newest(seconds);
        let granted = self.grant_for_session(seconds).await?;
        let least = before.as_ref().map_or(0, |before| before.floor());
        let agreed = floor::agree(self, granted.header.cluster, least).await;
        if let Err(Fault::Refused(_)) = agreed {
            // A program may try again and again, and the servers would keep a lease for each time. Where this fails it ends by itself.
            drop(self.revoke(granted.lease).await);
        }
        let floor = agreed?;
        let session = Arc::new(Session::new(&granted, seconds, floor, made, before.as_deref()));
        if !self.begins(&session) {
            // Where that fails it ends by itself: the caller is told that the client is closed in any case.
            drop(self.revoke(session.lease).await);
            return Err(Fault::Refused(closed()));
        }
        upkeep::start(self, &session);
        cleanup::start(self);
        self.claims.work.notify_one();
        Ok(())
    }
}
