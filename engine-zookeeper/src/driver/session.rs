//! One session, and everything that lives and dies with it.

#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ylock_core::Result as Answer;
use ylock_core::engine::Meter;
use ylock_core::environment::{BackgroundTask, Environment, Moment};
use zookeeper_client::{
    Acls, Client, CreateMode, CreateOptions, MultiWriteError, MultiWriteResult, MultiWriter,
};

use super::dialer::Dialer;
use super::errors::{Fault, ends_session, failure, to_error};
use super::heartbeat::Heartbeat;
use super::line::Line;
use crate::algorithm::claims::Claims;
use crate::algorithm::cleanup::Cleanup;
use crate::options::Access;

/// One session of this client; see the [module](self).
pub(crate) struct Session {
    line: Arc<Line>,
    /// The number of the session among all of this client.
    pub(crate) number: u64,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) base: String,
    /// The claims to all that this client has in the store, or may have.
    pub(crate) claims: Claims,
    /// The state of the nodes of locks, as far as is known.
    pub(crate) cleanup: Cleanup,
    pub(crate) pulse: BackgroundTask,
    pub(crate) cleaner: BackgroundTask,
    access: Access,
    request_timeout: Duration,
    heart: Heartbeat,
    meter: Meter,
    over: AtomicBool,
    _alive: Arc<()>,
}

impl Session {
    pub(super) fn new(line: Arc<Line>, number: u64, dialer: &Dialer, meter: &Meter, alive: &Arc<()>) -> Self {
        let heart = Heartbeat::default();
        // A session is made by a write as well.
        heart.confirm(line.asked());
        Self {
            line,
            number,
            environment: Arc::clone(&dialer.environment),
            base: dialer.options.base().to_owned(),
            claims: Claims::default(),
            cleanup: Cleanup::default(),
            pulse: BackgroundTask::default(),
            cleaner: BackgroundTask::default(),
            access: dialer.options.access(),
            request_timeout: dialer.options.request_timeout(),
            heart,
            meter: meter.clone(),
            over: AtomicBool::new(false),
            _alive: Arc::clone(alive),
        }
    }

    /// Makes sure that there is a connection: the runtime in which the last one was made may have ended.
    pub(crate) async fn attach(&self) -> Answer<()> {
        if self.line.client().is_some() {
            return Ok(());
        }
        tokio::select! {
            biased;
            attached = self.line.attach() => attached,
            () = self.environment.sleep(self.request_timeout) => Err(to_error(Fault::Timeout)),
        }
    }

    /// Returns the driver, without waiting for it: what is sent for a claim is sent in the step that looks at the claim.
    pub(super) fn client(&self) -> Result<Arc<Client>, Fault> {
        self.line.client().ok_or(Fault::ConnectionLoss)
    }

    /// Waits until there is no connection any more, or the session has ended.
    pub(crate) fn until_dead(&self) -> impl Future<Output = ()> + Send + use<> {
        self.line.until_dead()
    }

    /// Waits until the session has ended.
    pub(crate) fn until_over(&self) -> impl Future<Output = ()> + Send + use<> {
        self.line.until_over()
    }

    pub(crate) fn now(&self) -> Moment {
        self.environment.now()
    }

    /// Returns how long the servers keep the session without a sign of life.
    pub(crate) fn timeout(&self) -> Duration {
        self.line.timeout()
    }

    /// Returns the longest lease that can be given: nine tenths of it, the validity, are three quarters of the session.
    pub(crate) fn longest_lease(&self) -> Duration {
        self.timeout() * 5 / 6
    }

    /// Returns how long one request may take.
    pub(crate) fn request_timeout(&self) -> Duration {
        self.request_timeout
    }

    /// Returns whether the session has ended. When no server answers, the end is noticed long after validity is over, and decides nothing
    /// but when to make another session.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire) || self.line.is_over()
    }

    /// Gives the session up. What may still be relied on of it is not taken away: the servers hear of the end when they would have ended
    /// the session by themselves. A session is given up because nothing of it was confirmed for long, and that was looked at a moment ago:
    /// a write of another task may have been confirmed since, and a grant count from that.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.line.end(self.confirmed().plus(self.timeout()));
    }

    /// Ends the session now, with all that it has in the store.
    pub(crate) fn close(&self) {
        self.over.store(true, Ordering::Release);
        self.line.end(Moment::ZERO);
    }

    /// Returns the moment just before the last confirmed write was sent: leases count from it.
    pub(crate) fn confirmed(&self) -> Moment {
        self.heart.confirmed()
    }

    /// Sends a heartbeat, see [`heartbeat`](super::heart). Returns when it was sent.
    pub(crate) async fn beat(&self) -> Result<Moment, Fault> {
        self.beat_unless(|_| false).await
    }

    /// Sends a heartbeat, unless the last one was confirmed and will do, by when it was sent. Returns when the one that counts was sent.
    pub(crate) async fn beat_unless(&self, will_do: impl FnOnce(Moment) -> bool) -> Result<Moment, Fault> {
        // For a heartbeat that is on its way, and the next, which another task sends.
        let patience = || self.environment.sleep(self.request_timeout * 2);
        self.heart.beat(will_do, || self.now(), patience, || self.check()).await
    }

    async fn check(&self) -> Result<(), Fault> {
        let once = || async {
            let client = self.client()?;
            let mut writer = client.new_multi_writer();
            writer.add_check_version(&self.base, -1)?;
            self.multi(writer).await.map(drop).map_err(Fault::from)
        };
        match once().await {
            // Everything was removed from outside, the base too. Only a write that was done is a heartbeat.
            Err(Fault::NoNode) => {
                self.make(&self.base).await?;
                once().await
            }
            result => result,
        }
    }

    pub(super) async fn multi(
        &self,
        mut writer: MultiWriter<'_>,
    ) -> Result<Vec<MultiWriteResult>, MultiWriteError> {
        let sent = self.now();
        let request = async {
            tokio::select! {
                biased;
                answer = writer.commit() => answer,
                () = self.environment.sleep(self.request_timeout) => Err(Fault::Timeout.into()),
            }
        };
        let failure = |answer: &Result<_, MultiWriteError>| match answer {
            Err(MultiWriteError::RequestFailed { source }) => failure(source),
            Ok(_) | Err(_) => None,
        };
        let answer = self.meter.measure_as(&*self.environment, "transaction", request, failure).await;
        match &answer {
            Ok(_) => self.heart.confirm(sent),
            Err(MultiWriteError::RequestFailed { source }) => self.look_at(source),
            Err(_) => {}
        }
        answer
    }

    pub(super) async fn write<T, F>(&self, request: impl FnOnce() -> F) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        self.heart.write(|| self.now(), || self.timed("write", request())).await
    }

    pub(super) async fn ask<T>(&self, request: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        self.timed("read", request).await
    }

    async fn timed<T>(
        &self,
        operation: &'static str,
        request: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let request = async {
            tokio::select! {
                biased;
                answer = request => answer,
                () = self.environment.sleep(self.request_timeout) => Err(Fault::Timeout),
            }
        };
        let failure = |answer: &Result<T, Fault>| answer.as_ref().err().and_then(failure);
        let answer = self.meter.measure_as(&*self.environment, operation, request, failure).await;
        answer.inspect_err(|fault| self.look_at(fault))
    }

    fn look_at(&self, fault: &Fault) {
        if ends_session(fault) {
            self.end();
        }
    }

    pub(super) fn with(&self, mode: CreateMode) -> CreateOptions<'static> {
        mode.with_acls(match self.access {
            Access::Open => Acls::anyone_all(),
            Access::Creator => Acls::creator_all(),
        })
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("number", &self.number)
            .field("claims", &self.claims)
            .finish_non_exhaustive()
    }
}
