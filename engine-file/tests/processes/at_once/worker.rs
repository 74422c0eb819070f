//! The work of such a process: one contender for each lock, as the keeper has it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use ylock_core::engine::{
    AcquisitionId, Engine, Grant, Holding, LossReason, Patience, Release, Renewal, Request,
};
use ylock_core::{ErrorKind, Fairness, Mode, Result};
use ylock_engine_file::{FileEngine, FileOptions};
use ylock_testkit::{ChildProcess, within};

use super::notes::{Notes, Told, What};
use super::{BOUND, KEYS, SHARE, key, request};

pub(super) async fn work(told: &Told) {
    let engine = Arc::new(FileEngine::connect(&FileOptions::new(&told.folder)).await.unwrap());
    let notes = Arc::new(Notes::new(&told.notes));
    let contender = |key: usize| Contender {
        engine: Arc::clone(&engine),
        notes: Arc::clone(&notes),
        chance: StdRng::seed_from_u64(told.seed.wrapping_add(key as u64)),
        key,
        left: SHARE / KEYS + 1,
    };
    join_all((0..KEYS).map(|key| contender(key).go())).await;
    engine.close().await.unwrap();
    ChildProcess::say("done");
}

struct Contender {
    engine: Arc<FileEngine>,
    notes: Arc<Notes>,
    chance: StdRng,
    key: usize,
    /// The operations that are still to be done, about.
    left: usize,
}

impl Contender {
    async fn go(mut self) {
        let mut next = None;
        while self.left > 0 || next.is_some() {
            let request = next.take().unwrap_or_else(|| self.request());
            let Some(grant) = self.enter(&request).await else { continue };
            next = self.chance.random_bool(0.3).then(|| self.request());
            self.stay(grant, next.as_ref()).await;
            self.leave(&request, next.as_ref()).await;
        }
    }

    fn request(&mut self) -> Request {
        let (reads, tries, unfair) =
            (self.chance.random_bool(0.5), self.chance.random_bool(0.25), self.chance.random_bool(0.15));
        request(&self.engine, self.key, if reads { Mode::Read } else { Mode::Write })
            .with_patience(if tries { Patience::Try } else { Patience::Queue })
            .with_fairness(if unfair { Fairness::Unfair } else { Fairness::Fair })
    }

    fn note(&mut self, what: What, id: AcquisitionId, mode: Mode, token: u64) {
        self.notes.note(what, self.key, id.as_u128(), mode, token);
        self.left = self.left.saturating_sub(usize::from(what != What::Comes));
    }

    async fn enter(&mut self, request: &Request) -> Option<Grant> {
        self.note(What::Asks, request.id, request.mode, 0);
        let engine = Arc::clone(&self.engine);
        let at_once = self.chance.random_bool(0.5).then(|| engine.at_once().unwrap().acquire(request));
        let patience = match self.chance.random_bool(0.2) {
            true => Duration::from_micros(self.chance.random_range(0..2000)),
            // A waiter that is forgotten waits for ever: it fails, and its process with it.
            false => Duration::MAX,
        };
        let granted = match at_once.flatten() {
            Some(granted) => granted,
            None => match within_all(patience, engine.acquire(request)).await {
                Some(granted) => granted,
                None => return self.give_up(request).await,
            },
        };
        match granted {
            Ok(Some(grant)) => {
                let token = grant.token.unwrap().get();
                self.note(What::Comes, request.id, request.mode, token);
                Some(grant)
            }
            Ok(None) => None,
            // It only tries, and another process was in the middle of a change for too long.
            Err(error) if error.kind() == ErrorKind::Unavailable => self.give_up(request).await,
            Err(error) => panic!("{error}"),
        }
    }

    /// Undoes an acquisition of which nothing is known: it may have come in.
    async fn give_up(&mut self, request: &Request) -> Option<Grant> {
        self.note(What::Leaves, request.id, request.mode, 0);
        let engine = Arc::clone(&self.engine);
        again(async || engine.release(&request.key, request.id, None).await).await;
        None
    }

    async fn stay(&mut self, mut grant: Grant, next: Option<&Request>) {
        for _ in 0..self.chance.random_range(0..4) {
            match self.chance.random_range(0..6) {
                0..2 => {
                    if !self.renew(&mut grant, next).await {
                        return;
                    }
                }
                2 => self.revoke().await,
                3 => tokio::time::sleep(Duration::from_micros(self.chance.random_range(0..500))).await,
                _ => tokio::task::yield_now().await,
            }
        }
    }

    /// Renews, and gives up writing now and then. Returns whether the lock is not lost.
    async fn renew(&mut self, grant: &mut Grant, next: Option<&Request>) -> bool {
        let gives_up_writing = grant.mode == Mode::Write && self.chance.random_bool(0.3);
        let what = if gives_up_writing { What::Leaves } else { What::Does };
        self.note(what, grant.id, grant.mode, 0);
        if gives_up_writing {
            *grant = grant.clone().with_mode(Mode::Read);
        }
        let next = next.filter(|next| next.mode.conflicts_with(grant.mode)).cloned();
        let holdings = [Holding::new(grant.clone(), next)];
        let engine = Arc::clone(&self.engine);
        let renewal = again(async || engine.renew(&holdings).await.remove(0)).await;
        let is_renewed = matches!(renewal, Renewal::Renewed { .. });
        assert!(is_renewed || renewal == Renewal::Lost(LossReason::Revoked), "{renewal:?}");
        if is_renewed && gives_up_writing {
            self.note(What::Comes, grant.id, grant.mode, grant.token.unwrap().get());
        }
        is_renewed
    }

    /// Takes a grant away from any holder of any lock.
    async fn revoke(&mut self) {
        let (engine, of) = (Arc::clone(&self.engine), key(self.chance.random_range(0..KEYS)));
        let seen = again(async || engine.inspect(&of).await).await;
        let Some(holder) = seen.holders.first() else { return };
        self.note(What::Does, holder.id, holder.mode, 0);
        again(async || engine.revoke(&of, holder.id).await).await;
    }

    async fn leave(&mut self, request: &Request, next: Option<&Request>) {
        self.note(What::Leaves, request.id, request.mode, 0);
        let engine = Arc::clone(&self.engine);
        let released = again(async || engine.release(&request.key, request.id, next).await).await;
        // Also one that was revoked was there: it keeps its place until its holder has heard of it.
        assert_eq!(released, Release::Released);
    }
}

/// Returns what the future brings; nothing if this takes longer than the patience.
async fn within_all<T>(patience: Duration, future: impl Future<Output = T>) -> Option<T> {
    if patience == Duration::MAX {
        return Some(within(BOUND, "its turn comes", future).await);
    }
    tokio::time::timeout(patience, future).await.ok()
}

/// Repeats what has failed because another process was in the middle of a change for too long, on a busy machine.
async fn again<T>(call: impl AsyncFn() -> Result<T>) -> T {
    within(BOUND, "an answer", async {
        loop {
            match call().await {
                Ok(answer) => return answer,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
            }
        }
    })
    .await
}
