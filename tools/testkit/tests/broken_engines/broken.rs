//! The in-memory engine with one mistake at a time.

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use ylock_core::engine::{
    AcquisitionId, Engine, Grant, Holding, KeyPage, Patience, Release, Renewal, Request,
};
use ylock_core::{
    ClientName, Error, ErrorKind, Fairness, JobRun, Key, MemoryEngine, Mode, Options, Result, StoreToken,
};
use ylock_testkit::{MemoryHarness, Wrapped, Wrapper, poll_once};

use crate::defect::Defect;
use crate::listing;

/// The state that all clients of one broken store share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    readers: Mutex<Vec<Grant>>,
    revocations: AtomicUsize,
    runs: Mutex<HashMap<Key, JobRun>>,
}

#[derive(Debug)]
pub(crate) struct Broken {
    inner: MemoryEngine,
    defect: Defect,
    shared: Arc<Shared>,
    /// Lives as long as the runtime in which the engine was made.
    made_in: JoinHandle<()>,
    handed_on: Mutex<HashMap<AcquisitionId, Grant>>,
    taken_along: Mutex<HashSet<AcquisitionId>>,
    /// What was asked for, whatever was answered.
    asked: Mutex<HashSet<AcquisitionId>>,
    /// The lease of the holder that each announced waiter stood behind.
    lent: Mutex<HashMap<AcquisitionId, Duration>>,
    refused: AtomicUsize,
}

impl Broken {
    pub(crate) fn harness(defect: Defect) -> MemoryHarness {
        let shared = Arc::<Shared>::default();
        let harness = MemoryHarness::wrapped(move |inner| {
            let inner = if defect == Defect::LocksOnlyItsOwnClient { MemoryEngine::new() } else { inner };
            Arc::new(Wrapped(Self {
                inner,
                defect,
                shared: Arc::clone(&shared),
                made_in: tokio::spawn(std::future::pending()),
                handed_on: Mutex::default(),
                taken_along: Mutex::default(),
                asked: Mutex::default(),
                lent: Mutex::default(),
                refused: AtomicUsize::new(0),
            }))
        });
        harness.with_bound(Duration::from_secs(5))
    }

    fn fabricate(&self, request: &Request) -> Grant {
        let token = StoreToken::new(u64::try_from(self.inner.ticket().get()).unwrap());
        Grant::of(request, token, self.inner.environment().now(), false)
    }

    /// The request as this engine sends it.
    fn distort(&self, request: &Request) -> Request {
        let mut request = request.clone();
        match self.defect {
            Defect::Overtakes => request.fairness = Fairness::Unfair,
            Defect::ReadersOvertake if request.mode == Mode::Read => request.fairness = Fairness::Unfair,
            Defect::LeaseEndsEarly => request.lease /= 2,
            Defect::ForgetsNames => request.client = ClientName::default(),
            Defect::LendsTheHoldersLease => {
                request.lease = self.lent.lock().get(&request.id).copied().unwrap_or(request.lease);
            }
            _ => {}
        }
        request
    }

    fn key_of_run(&self, key: &Key) -> Key {
        match self.defect {
            Defect::OneRunForAllNames => Key::new(key.group(), "all").expect("a good name"),
            _ => key.clone(),
        }
    }

    fn is_dead(&self) -> bool {
        self.defect == Defect::DiesWithItsRuntime && self.made_in.is_finished()
    }

    /// Like the engine, but with a look at the world each time that it goes on.
    async fn acquire_unless<'a>(
        &'a self,
        request: &'a Request,
        wrong: impl Fn() -> Option<ErrorKind> + Send + 'a,
    ) -> Result<Option<Grant>> {
        let mut inner = self.inner.acquire(request);
        poll_fn(|context| {
            let answer = inner.as_mut().poll(context);
            let told = |kind| Poll::Ready(Err(Error::new(kind, "what a waiter should not be told")));
            wrong().map_or(answer, told)
        })
        .await
    }

    /// Says so when it was not polled for a lease.
    async fn acquire_awake(&self, request: &Request) -> Result<Option<Grant>> {
        let environment = self.inner.environment();
        let last = Mutex::new(environment.now());
        self.acquire_unless(request, || {
            let now = environment.now();
            let slept = now.since(std::mem::replace(&mut *last.lock(), now));
            (slept > request.lease).then_some(ErrorKind::Unavailable)
        })
        .await
    }

    async fn enter_however_long_it_slept(&self, request: &Request) -> Result<Option<Grant>> {
        let environment = self.inner.environment();
        let mut last = environment.now();
        let mut inner = self.inner.acquire(request);
        poll_fn(|context| {
            let now = environment.now();
            let slept = now.since(std::mem::replace(&mut last, now));
            match inner.as_mut().poll(context) {
                Poll::Pending if slept > request.lease => Poll::Ready(Ok(Some(self.fabricate(request)))),
                other => other,
            }
        })
        .await
    }

    async fn acquire_unless_asked_before(&self, request: &Request) -> Result<Option<Grant>> {
        let is_new = self.asked.lock().insert(request.id);
        // Here the future is dropped.
        tokio::task::yield_now().await;
        if is_new { self.inner.acquire(request).await } else { Ok(None) }
    }

    async fn try_and_stay(&self, request: &Request) -> Result<Option<Grant>> {
        let granted = self.inner.acquire(request).await?;
        if granted.is_none() && request.patience == Patience::Try {
            let stays = request.clone().with_patience(Patience::Queue);
            poll_once(self.inner.acquire(&stays).as_mut()).await;
        }
        Ok(granted)
    }

    fn change(&self, mut grant: Grant, request: &Request) -> Grant {
        grant.lease = request.lease;
        if self.defect == Defect::RepeatsTokens {
            grant.token = StoreToken::new(7);
        }
        if grant.mode == Mode::Read {
            self.shared.readers.lock().push(grant.clone());
        }
        grant
    }

    async fn renew_one(&self, holding: &Holding) -> Result<Renewal> {
        if self.is_dead() {
            return Err(Error::new(ErrorKind::Unavailable, "its runtime has ended"));
        }
        let mut holding = holding.clone();
        if let Some(next) = &holding.next {
            self.lent.lock().insert(next.id, holding.grant.lease);
        }
        if self.defect == Defect::AnnouncedWaitersStay
            && let Some(next) = holding.next.take()
        {
            poll_once(self.inner.acquire(&next).as_mut()).await;
        }
        let confirmed = Renewal::Renewed { sent: self.inner.environment().now(), contended: false };
        match self.defect {
            Defect::LeaseEndsEarly => holding.grant.lease /= 2,
            Defect::DowngradesInSilence => holding.grant.mode = Mode::Write,
            Defect::DowngradesWithAGap if holding.grant.mode == Mode::Read => {
                self.leave_a_gap(&holding).await?
            }
            Defect::OneLeaseForAllReaders => {
                let readers = self.shared.readers.lock().clone();
                let all = readers.into_iter().filter(|reader| reader.key == holding.grant.key);
                let all: Vec<_> = all.map(|grant| Holding::new(grant, None)).collect();
                self.inner.renew(&all).await;
            }
            Defect::NoLock | Defect::OnlyClaimsToRenew => return Ok(confirmed),
            _ => {}
        }
        let answer = self.inner.renew(std::slice::from_ref(&holding)).await.remove(0)?;
        match (self.defect, answer) {
            (Defect::HidesTheLoss, Renewal::Lost(_)) => Ok(confirmed),
            (Defect::DowngradesAwayARevocation, Renewal::Lost(_)) if holding.grant.mode == Mode::Read => {
                self.inner.release(&holding.grant.key, holding.grant.id, None).await?;
                let again = self.request(&holding.grant, holding.grant.id, Patience::Queue);
                self.inner.acquire(&again).await.map(|_| confirmed)
            }
            (Defect::RenewsWhatWasReleased, Renewal::Lost(_)) => {
                self.write_again(&holding.grant).await.map(|()| confirmed)
            }
            (_, answer) => Ok(answer),
        }
    }

    fn request(&self, grant: &Grant, id: AcquisitionId, patience: Patience) -> Request {
        Request::new(grant.key.clone(), id, grant.mode, grant.owner, ClientName::default(), grant.lease)
            .with_patience(patience)
    }

    async fn write_again(&self, grant: &Grant) -> Result<()> {
        let id = AcquisitionId::new(&*self.inner.environment());
        self.inner.acquire(&self.request(grant, id, Patience::Try)).await.map(drop)
    }

    async fn leave_a_gap(&self, holding: &Holding) -> Result<()> {
        let grant = &holding.grant;
        let shown = self.inner.inspect(&grant.key).await?.holders;
        if shown.iter().any(|holder| holder.id == grant.id && holder.mode == Mode::Write) {
            self.inner.release(&grant.key, grant.id, None).await?;
            tokio::task::yield_now().await;
            self.inner.acquire(&self.request(grant, grant.id, Patience::Queue)).await?;
        }
        Ok(())
    }

    /// The acquisitions that a release of `id` removes, too.
    async fn victims(&self, key: &Key, id: AcquisitionId) -> Result<Vec<AcquisitionId>> {
        let seen = self.inner.inspect(key).await?;
        let is_reader = seen.holders.iter().any(|holder| holder.id == id && holder.mode == Mode::Read);
        let all = self.defect == Defect::ReleasesWhoeverHolds
            || self.defect == Defect::ReleasesAllReaders && is_reader;
        Ok(if all { seen.holders.iter().map(|holder| holder.id).collect() } else { Vec::new() })
    }

    async fn waits(&self, key: &Key, id: AcquisitionId) -> Result<bool> {
        Ok(self.inner.inspect(key).await?.queue.iter().any(|waiter| waiter.id == id))
    }
}

impl Wrapper for Broken {
    fn inner(&self) -> &dyn Engine {
        &self.inner
    }

    fn name(&self) -> &'static str {
        "broken"
    }

    fn in_memory(&self) -> Vec<(&'static str, usize)> {
        let remembers = self.defect == Defect::RemembersRefusals;
        vec![("refusals", if remembers { self.refused.load(Ordering::SeqCst) } else { 0 })]
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        if self.is_dead() {
            return Err(Error::new(ErrorKind::Unavailable, "its runtime has ended"));
        }
        let sent = self.distort(request);
        let granted = match self.defect {
            Defect::RefusesLate if request.lease <= Options::MIN_LEASE => {
                Err(Error::new(ErrorKind::Config, "a lease that it did not mind before"))
            }
            Defect::NoLock => Ok(Some(self.fabricate(request))),
            Defect::EntersAfterItsPlaceLapsed => self.enter_however_long_it_slept(&sent).await,
            Defect::TriesStayInTheQueue => self.try_and_stay(&sent).await,
            Defect::RefusesAgain => self.acquire_unless_asked_before(&sent).await,
            Defect::TakesSleepForAnOutage => self.acquire_awake(&sent).await,
            Defect::RevokesWaiters => {
                let revocations = || self.shared.revocations.load(Ordering::SeqCst);
                let before = revocations();
                self.acquire_unless(&sent, || (revocations() > before).then_some(ErrorKind::Lost)).await
            }
            Defect::CountsFromTheQuestion => {
                let handed_on = self.handed_on.lock().remove(&request.id);
                match handed_on {
                    Some(grant) => Ok(Some(grant.with_sent(self.inner.environment().now()))),
                    None => self.inner.acquire(&sent).await,
                }
            }
            _ => self.inner.acquire(&sent).await,
        };
        let granted = granted?;
        self.refused.fetch_add(usize::from(granted.is_none()), Ordering::SeqCst);
        Ok(granted.map(|grant| self.change(grant, request)))
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        let mut answers = Vec::new();
        for holding in holdings {
            answers.push(self.renew_one(holding).await);
        }
        answers
    }

    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        if self.is_dead() {
            return Err(Error::new(ErrorKind::Unavailable, "its runtime has ended"));
        }
        if self.defect == Defect::KeepsWhatAReleaseTook {
            let mut taken = self.taken_along.lock();
            taken.extend(next.map(|next| next.id));
            if taken.contains(&id) {
                return Ok(Release::WasGone);
            }
        }
        if self.defect == Defect::StaysInTheQueue && self.waits(key, id).await? {
            return Ok(Release::Released);
        }
        for victim in self.victims(key, id).await? {
            self.inner.release(key, victim, None).await?;
        }
        let next = next.map(|next| self.distort(next));
        let released = self.inner.release(key, id, next.as_ref()).await?;
        if let (Defect::CountsFromTheQuestion, Some(next)) = (self.defect, &next)
            && let Some(Ok(Some(grant))) = poll_once(self.inner.acquire(next).as_mut()).await
        {
            self.handed_on.lock().insert(next.id, grant);
        }
        Ok(released)
    }

    async fn keys(&self, group: Option<&str>, after: Option<&str>) -> Result<KeyPage> {
        listing::keys(&self.inner, self.defect, group, after).await
    }

    async fn last_run(&self, key: &Key) -> Result<Option<JobRun>> {
        match self.defect {
            Defect::ForgetsRuns => Ok(None),
            Defect::LateRunsCount => Ok(self.shared.runs.lock().get(key).cloned()),
            _ => self.inner.last_run(&self.key_of_run(key)).await,
        }
    }

    async fn store_run(&self, key: &Key, run: &JobRun, kept: Duration) -> Result<bool> {
        match self.defect {
            Defect::LateRunsCount => {
                self.shared.runs.lock().insert(key.clone(), run.clone());
                Ok(true)
            }
            Defect::StoresRunsLater => {
                let (inner, key, run) = (self.inner.clone(), key.clone(), run.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    inner.store_run(&key, &run, kept).await
                });
                Ok(true)
            }
            Defect::NoRunIsDone if run.is_done => Ok(true),
            _ => self.inner.store_run(&self.key_of_run(key), run, kept).await,
        }
    }

    async fn revoke(&self, key: &Key, id: AcquisitionId) -> Result<bool> {
        match self.defect {
            Defect::IgnoresRevocation => Ok(true),
            Defect::RevokesWaiters => {
                self.shared.revocations.fetch_add(1, Ordering::SeqCst);
                self.inner.revoke(key, id).await
            }
            _ => self.inner.revoke(key, id).await,
        }
    }
}
