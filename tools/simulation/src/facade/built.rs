//! Errands for what is built on locks: permits, the lead, and jobs that are run once per period.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use futures_util::future::{Either, select};
use ylock_core::environment::Environment;
use ylock_core::{
    Election, ErrorKind, Guard, JobLease, Key, Leadership, Lease, Mode, Owner, Period, Permit, PermitLease,
    Result, Semaphore, Ylock,
};

use super::errand::{Manner, options};
use super::inside::Inside;
use super::visitor::Visitor;
use super::{Process, owner};
use crate::belief::Belief;
use crate::oracle::{Hold, PermitOf};

/// How many permits the semaphore has.
const PERMITS: u32 = 2;
const LIMIT: &str = "limit";
/// The name under which the oracle knows the holders of permits.
const PERMITTED: &str = "permits";
const LEAD: &str = "lead";
const JOB: &str = "job";
/// A job that is run again in its period until it is done.
const JOB_UNTIL_DONE: &str = "job until done";
/// The last bits of a term: how often a client has handed the lead on without the store.
const HAND_OVER_BITS: u32 = 10;
/// The pause between two looks at who leads.
const PACE: Duration = Duration::from_millis(200);

/// Whether tasks use what is built on locks, and with which mistake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "as many as there are variants of the tests")]
pub enum Built {
    /// They do not.
    #[default]
    None,
    /// They do, as the keeper's users do.
    Right,
    /// They take it for a permit to be a reader with fewer readers before it than there are permits.
    CountsThoseBefore,
    /// They take it for a permit to hold one of the locks, and do not look whether others count on another number.
    CountsAlone,
    /// They lead for as long as their looks show it.
    LeadsByLooks,
    /// They count periods from the start of their process.
    CountsFromStart,
}

/// Returns the keys of all locks that these errands use.
pub(crate) fn keys() -> impl Iterator<Item = Key> {
    let permits = (1..=PERMITS + 1).map(|number| format!("{LIMIT} \u{203a} permit {number}"));
    let of_limit = ["semaphore", "turnstile"].map(|part| format!("{LIMIT} \u{203a} {part}"));
    let others = [LIMIT, LEAD, JOB, JOB_UNTIL_DONE].map(str::to_owned).into_iter().chain(of_limit);
    permits.chain(others).filter_map(|name| Key::new("group", name).ok())
}

/// A permit as the oracle is told; dropping it leaves.
struct Permitted {
    process: Arc<Process>,
    number: u64,
}

impl Permitted {
    /// Enters, if it is still held by the time that the oracle can be told.
    fn enter(process: &Arc<Process>, belief: Belief, of: PermitOf, owner: Owner) -> Option<Self> {
        let hold = Hold {
            key: Key::new("group", PERMITTED).ok()?,
            // Permits keep no other permit out but their own.
            mode: Mode::Read,
            owner,
            token: 0,
            clocks: Arc::clone(&process.clocks),
            belief,
            resumes: false,
            permit: Some(of),
        };
        let entry = process.shared.oracle.enter(hold)?;
        Some(Self { process: Arc::clone(process), number: entry.number })
    }

    /// Works for a while, or until it is told that the permit is lost.
    async fn work(&self, lost: impl Future, time: Duration) {
        let lost = std::pin::pin!(lost);
        let is_lost = matches!(select(lost, self.process.clocks.sleep(time)).await, Either::Left(_));
        if self.process.shared.oracle.relies(self.number) && is_lost {
            self.process.shared.oracle.complain("a permit that is lost is valid".to_owned());
        }
    }
}

impl Drop for Permitted {
    fn drop(&mut self) {
        self.process.shared.oracle.leave(self.number);
    }
}

impl Visitor {
    /// Takes a permit, leads, or runs a job.
    pub(super) async fn visit_built(&mut self, client: &Ylock) {
        match self.chance.below(8) {
            0..=3 => self.visit_limit(client).await,
            4..=5 => self.visit_lead(client).await,
            _ => self.visit_job(client).await,
        }
    }

    async fn visit_limit(&mut self, client: &Ylock) {
        if self.chance.happens(0.05) {
            return self.lock_name_of_limit(client).await;
        }
        // Some do not count as the others do.
        let permits = if self.chance.happens(0.1) { PERMITS + 1 } else { PERMITS };
        let lease = self.process.shared.any_lease(&mut self.chance);
        let semaphore =
            client.locks("group").with_options(options(&mut self.chance, lease)).semaphore(LIMIT, permits);
        match self.process.shared.built {
            Built::CountsThoseBefore => self.count_those_before(client).await,
            Built::CountsAlone => self.count_alone(client, permits).await,
            _ if self.chance.happens(0.2) => self.run_with_permit(&semaphore).await,
            _ => self.hold_permit(&semaphore).await,
        }
    }

    async fn hold_permit(&mut self, semaphore: &Semaphore) {
        let manner = self.manner();
        let permit = match self.permit(semaphore, manner).await {
            Ok(Some(permit)) => permit,
            Ok(None) => return,
            Err(error) => return self.excuse_use(&error),
        };
        let time = self.stay();
        let Some(permitted) = self.permitted(semaphore, &permit) else { return };
        permitted.work(permit.lost(), time).await;
        let was_valid = permit.is_valid();
        drop(permitted);
        match self.chance.below(3) {
            0 => drop(permit),
            // Not waited for.
            1 => drop(permit.unlock()),
            _ => match permit.unlock().await {
                Ok(unlocked) if unlocked.is_released() && !was_valid => {
                    self.process
                        .shared
                        .oracle
                        .complain("a permit that was lost is said to be held".to_owned());
                }
                Ok(_) => {}
                Err(error) => self.process.excuse(&error),
            },
        }
    }

    async fn permit(&mut self, semaphore: &Semaphore, manner: Manner) -> Result<Option<Permit>> {
        match manner {
            Manner::Wait => semaphore.acquire().await.map(Some),
            Manner::Try => semaphore.acquire().now().await,
            Manner::Within(time) => semaphore.acquire().within(time).await,
            Manner::Dropped(time) => {
                let acquiring = Box::pin(semaphore.acquire());
                match select(acquiring, self.process.clocks.sleep(time)).await {
                    Either::Left((answer, _)) => answer.map(Some),
                    Either::Right(_) => Ok(None),
                }
            }
        }
    }

    fn permitted(&mut self, semaphore: &Semaphore, permit: &PermitLease) -> Option<Permitted> {
        let of = PermitOf { number: permit.number(), permits: semaphore.permits() };
        Permitted::enter(&self.process, Belief::Permits(permit.clone()), of, owner(&mut self.chance))
    }

    async fn run_with_permit(&mut self, semaphore: &Semaphore) {
        let (process, time, permits) = (Arc::clone(&self.process), self.stay(), semaphore.permits());
        let owner = owner(&mut self.chance);
        let run = semaphore.acquire().run(|permit| async move {
            let of = PermitOf { number: permit.number(), permits };
            if let Some(permitted) = Permitted::enter(&process, Belief::Permits(permit.clone()), of, owner) {
                permitted.work(permit.lost(), time).await;
            }
        });
        if let Err(error) = run.await {
            self.excuse_use(&error);
        }
    }

    /// Holds the lock of the semaphore's name, which has nothing to do with it.
    async fn lock_name_of_limit(&mut self, client: &Ylock) {
        let lock = client.lock("group", LIMIT);
        let time = self.chance.between(Duration::ZERO, self.process.shared.lease);
        let guard = match self.chance.below(3) {
            0 => lock.write().now().await,
            1 => lock.write().within(time).await,
            _ => lock.write().await.map(Some),
        };
        match guard {
            Ok(Some(guard)) => {
                if let Some(inside) = Inside::enter(&self.process, &guard) {
                    let time = self.stay();
                    inside.work(time).await;
                }
            }
            Ok(None) => {}
            Err(error) => self.process.excuse(&error),
        }
    }

    fn excuse_use(&self, error: &ylock_core::Error) {
        if error.kind() != ErrorKind::Invalid {
            self.process.excuse(error);
        }
    }

    /// Takes a permit in the wrong way: reads the name, and counts the readers before its own place.
    async fn count_those_before(&mut self, client: &Ylock) {
        let own = owner(&mut self.chance);
        let lock = client.lock("group", LIMIT).owned_by(&own);
        let guard = match lock.read().await {
            Ok(guard) => guard,
            Err(error) => return self.process.excuse(&error),
        };
        let Ok(seen) = client.inspect("group", LIMIT).await else { return };
        let before = seen.holders.iter().take_while(|holder| holder.owner != own).count();
        if before < PERMITS as usize {
            self.stay_by(&guard, PERMITS).await;
        }
    }

    /// Takes a permit in the wrong way: does not look on how many permits others count.
    async fn count_alone(&mut self, client: &Ylock, permits: u32) {
        let number = self.chance.below(permits.into()) + 1;
        let lock = client.lock("group", format!("{LIMIT} {number}"));
        match lock.write().await {
            Ok(guard) => self.stay_by(&guard, permits).await,
            Err(error) => self.process.excuse(&error),
        }
    }

    async fn stay_by(&mut self, guard: &Guard, permits: u32) {
        let (time, of) = (self.stay(), PermitOf { number: 0, permits });
        let permitted =
            Permitted::enter(&self.process, Belief::Says(guard.lease()), of, owner(&mut self.chance));
        if let Some(permitted) = permitted {
            permitted.work(guard.lost(), time).await;
        }
    }

    async fn visit_lead(&mut self, client: &Ylock) {
        let lease = self.process.shared.any_lease(&mut self.chance);
        let locks = client.locks("group").with_options(options(&mut self.chance, lease));
        let election = locks.election(LEAD).with_pace(PACE);
        match self.chance.below(5) {
            0 => self.observe(&election).await,
            1 => self.run_while_leader(&election).await,
            _ => self.lead(&election).await,
        }
    }

    /// Looks who leads: the terms that one observer sees never fall. Cassandra shows also a candidate that is about to lead, and may give way.
    async fn observe(&mut self, election: &Election) {
        let mut leaders = election.observe();
        let mut last = None;
        for _ in 0..1 + self.chance.below(3) {
            let next = Box::pin(leaders.next());
            match select(next, self.process.clocks.sleep(self.process.shared.lease)).await {
                Either::Left((Ok(leader), _)) => {
                    // What a client has handed on itself only that client knows, for as long as it leads.
                    let term =
                        leader.and_then(|leader| leader.term()).map(|term| term.get() >> HAND_OVER_BITS);
                    if term.is_some() && term < last && !self.process.subject.is_of_cassandra() {
                        let message = format!("an observer saw the term {term:?} after {last:?}");
                        self.process.shared.oracle.complain(message);
                    }
                    last = term.or(last);
                }
                Either::Left((Err(error), _)) => return self.process.excuse(&error),
                Either::Right(_) => return,
            }
        }
    }

    async fn run_while_leader(&mut self, election: &Election) {
        let (process, time) = (Arc::clone(&self.process), self.stay());
        let run = election.campaign().run(|lease| async move {
            if let Some(mut inside) = Inside::enter(&process, &lease) {
                inside.work(time).await;
                inside.write();
            }
        });
        if let Err(error) = run.await {
            self.process.excuse(&error);
        }
    }

    async fn lead(&mut self, election: &Election) {
        let leadership = match self.campaign(election).await {
            Ok(Some(leadership)) => leadership,
            Ok(None) => return,
            Err(error) => return self.process.excuse(&error),
        };
        let time = self.stay();
        if self.process.shared.built == Built::LeadsByLooks {
            self.lead_by_looks(election, &leadership.lease(), time).await;
        } else if let Some(mut inside) = Inside::enter(&self.process, &leadership.lease()) {
            inside.work(time).await;
            inside.write();
        }
        if self.chance.happens(0.5) {
            drop(leadership);
        } else if let Err(error) = leadership.resign().await {
            self.process.excuse(&error);
        }
    }

    /// Becomes the leader, if it does not give up.
    async fn campaign(&mut self, election: &Election) -> Result<Option<Leadership>> {
        let gives_up = self.chance.happens(0.3);
        let time = self.chance.between(Duration::ZERO, self.process.shared.lease);
        let campaign = Box::pin(election.campaign());
        if !gives_up {
            return campaign.await.map(Some);
        }
        match select(campaign, self.process.clocks.sleep(time)).await {
            Either::Left((led, _)) => led.map(Some),
            Either::Right(_) => Ok(None),
        }
    }

    /// Leads in the wrong way: until a look shows another leader.
    async fn lead_by_looks(&mut self, election: &Election, lease: &Lease, time: Duration) {
        let leads = Arc::new(AtomicBool::new(true));
        let Some(inside) = Inside::believe(&self.process, lease, Belief::Seen(Arc::clone(&leads))) else {
            return;
        };
        let (clocks, owner) = (Arc::clone(&self.process.clocks), lease.owner());
        let until = clocks.now().plus(time);
        while clocks.now() < until {
            clocks.sleep(PACE).await;
            if let Ok(leader) = election.leader().await
                && leader.is_none_or(|leader| leader.owner() != owner)
            {
                break;
            }
        }
        leads.store(false, Ordering::Relaxed);
        drop(inside);
    }

    async fn visit_job(&mut self, client: &Ylock) {
        let lease = self.process.shared.any_lease(&mut self.chance);
        let locks = client.locks("group").with_options(options(&mut self.chance, lease));
        let length = self.process.shared.lease * 2;
        let (name, period) = match self.chance.happens(0.3) {
            true => (JOB_UNTIL_DONE, Period::of(length).until_done()),
            false => (JOB, Period::of(length).with_offset(self.offset())),
        };
        let (process, time) = (Arc::clone(&self.process), self.stay());
        let work = |scheduled: JobLease| async move {
            if name == JOB {
                // Whatever the clock said by which the period was counted: the periods of a job are those of the wall clock.
                let begins = scheduled.run().period().duration_since(UNIX_EPOCH).unwrap_or_default();
                let number = begins.as_micros() / length.as_micros();
                process.shared.oracle.runs(name, number, &process.clocks);
            }
            if let Some(mut inside) = Inside::enter(&process, &scheduled.lease()) {
                inside.work(time).await;
                inside.write();
            }
        };
        let answer = locks.once_per(name, period, work).await;
        match answer.map_err(|error| (error.kind(), error)) {
            // Clocks that are further apart than a period are told so.
            Ok(_) | Err((ErrorKind::Config, _)) => {}
            // Whose clock stood still does not know that it has lost the lock, and takes the larger token of the next holder's run for a sign that
            // tokens have fallen.
            Err((ErrorKind::Unexpected, _)) if self.process.clocks.stood_still() => {}
            Err((_, error)) => self.process.excuse(&error),
        }
    }

    /// Returns by how much later than at the beginning of 1970 periods begin.
    fn offset(&self) -> Duration {
        if self.process.shared.built != Built::CountsFromStart {
            return Duration::ZERO;
        }
        let wall =
            Duration::from_micros(u64::try_from(self.process.clocks.wall_micros()).unwrap_or_default());
        wall.saturating_sub(self.process.clocks.now().since(self.process.started))
    }
}
