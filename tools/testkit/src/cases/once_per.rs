//! Jobs that one of many replicas runs, at most once per period. The replicas have wall clocks that the cases set: no period ends by itself.

use std::future::{Future, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use ylock_core::engine::Engine;
use ylock_core::{
    ClientName, ErrorKind, JobLease, JobOutcome, JobRun, Key, Options, Owner, Period, Result, Token,
};

use crate::patient::is_silence;
use crate::{Call, Client, Fault, Faulty, Fixture, LosesReplies, WallClock, eventually, poll_times, within};

const HOUR: Duration = Duration::from_secs(3600);
/// An hour of the year 2026.
const BEGIN: i64 = 494_000 * HOUR_MICROS;
const HOUR_MICROS: i64 = 3_600_000_000;

/// A replica: a client, and its wall clock.
#[derive(Clone, Debug)]
struct Replica {
    client: Client,
    clock: WallClock,
}

/// What the work of a job notes: the hour that it is for, and how many are at it.
#[derive(Clone, Debug, Default)]
struct Journal {
    begun: Arc<Mutex<Vec<i64>>>,
    at_work: Arc<AtomicUsize>,
}

impl Journal {
    /// Does the work of a job, which no other caller may be doing.
    async fn work(self, hour: i64, lasts: impl Future<Output = ()>) {
        self.begun.lock().push(hour);
        assert_eq!(self.at_work.fetch_add(1, Ordering::SeqCst), 0, "two are at it");
        lasts.await;
        self.at_work.fetch_sub(1, Ordering::SeqCst);
    }

    fn begun(&self) -> Vec<i64> {
        self.begun.lock().clone()
    }
}

impl Replica {
    async fn of(fixture: &Fixture) -> Self {
        Self::with(fixture, Options::default().with_lease(fixture.long_lease()), |engine| engine).await
    }

    async fn short_lived(fixture: &Fixture) -> Self {
        Self::with(fixture, fixture.short_options(), |engine| engine).await
    }

    async fn with<W>(fixture: &Fixture, options: Options, wrap: W) -> Self
    where
        W: FnOnce(Arc<dyn Engine>) -> Arc<dyn Engine>,
    {
        let clock = WallClock::at(BEGIN);
        let client = fixture.client_over(options, |engine| clock.over(wrap(engine))).await;
        Self { client, clock }
    }

    /// Runs the job if it is to be run, and notes when it was. It lasts for as long as the future.
    async fn job(&self, journal: &Journal, lasts: impl Future<Output = ()>) -> Result<JobOutcome<()>> {
        self.job_of(Period::of(HOUR), journal, lasts).await
    }

    async fn job_of(
        &self,
        period: Period,
        journal: &Journal,
        lasts: impl Future<Output = ()>,
    ) -> Result<JobOutcome<()>> {
        let hour = |scheduled: &JobLease| (scheduled.run().period_micros() - BEGIN) / HOUR_MICROS;
        let mut lasts = Some(lasts);
        let mut rounds = 0;
        loop {
            let work = |scheduled: JobLease| {
                let lasts = lasts.take().expect("once");
                journal.clone().work(hour(&scheduled), lasts)
            };
            let outcome = self.client.lock.once_per(period, work).await;
            rounds += 1;
            match outcome {
                // A busy machine has not answered in time, and the work has not begun.
                Err(error) if is_silence(&error) && lasts.is_some() && rounds < 5 => {}
                outcome => return outcome,
            }
        }
    }

    /// Begins the job, whose work lasts until a permit is added.
    async fn begins(&self, period: Period, journal: &Journal) -> (Task, Arc<Semaphore>) {
        let end = Arc::new(Semaphore::new(0));
        let (replica, noted, until) = (self.clone(), journal.clone(), Arc::clone(&end));
        let before = journal.begun().len();
        let task = tokio::spawn(async move {
            let lasts = async { until.acquire().await.expect("it is not closed").forget() };
            replica.job_of(period, &noted, lasts).await
        });
        let has_begun = || async { journal.begun().len() > before };
        eventually(self.client.fixture().lapse(), "the work begins", has_begun).await;
        (task, end)
    }
}

type Task = JoinHandle<Result<JobOutcome<()>>>;

async fn at_once() {}

/// Returns the run that has kept a call from running the work; it must be over.
fn over(outcome: Result<JobOutcome<()>>) -> JobRun {
    match outcome.unwrap() {
        JobOutcome::AlreadyRun(run) => run,
        other => panic!("{other:?}"),
    }
}

/// Calls until it is told that the run has not come to its end: for as long as the lock is held for it, it counts as under way.
async fn told_of_unfinished(fixture: &Fixture, replica: &Replica, journal: &Journal) {
    let is_told = || async {
        match replica.job(journal, at_once()).await.unwrap() {
            JobOutcome::Ran(()) => panic!("the period was run twice"),
            JobOutcome::RunningElsewhere(_) => false,
            JobOutcome::AlreadyRun(run) => {
                assert!(!run.is_done, "{run:?}");
                true
            }
        }
    };
    eventually(fixture.lapse(), "it is told that the run has not come to its end", is_told).await;
}

async fn done(fixture: &Fixture, task: Task) -> JobOutcome<()> {
    within(fixture.lapse(), "the call ends", task).await.unwrap().unwrap()
}

/// The second call in a period, of whichever client, is told who has run it; in the next period the work is run again.
pub async fn a_period_is_run_once(fixture: Fixture) {
    let (here, there) = (Replica::of(&fixture).await, Replica::of(&fixture).await);
    let journal = Journal::default();
    assert_eq!(here.job(&journal, at_once()).await.unwrap(), JobOutcome::Ran(()));
    for replica in [&there, &here] {
        let run = over(replica.job(&journal, at_once()).await);
        assert!(run.is_done && run.client == here.client.name(), "{run:?}");
        assert_eq!(run.token.is_some(), fixture.harness().guarantees().fencing);
        assert_eq!(run.period_micros(), BEGIN);
    }
    for replica in [&here, &there] {
        replica.clock.advance(HOUR);
    }
    assert_eq!(there.job(&journal, at_once()).await.unwrap(), JobOutcome::Ran(()));
    assert!(over(here.job(&journal, at_once()).await).is_done);
    assert_eq!(journal.begun(), [0, 1]);
    let another = here.client.lock.once_per(HOUR / 2, async |_| {}).await.unwrap();
    assert!(another.ran().is_none(), "the first half of the same hour");
}

/// Three replicas that start the job at once, or shortly after each other, and whose clocks do not agree: one of them runs it. It may be over before
/// the next one comes.
pub async fn of_three_replicas_exactly_one_runs_each_period(fixture: Fixture) {
    let replicas = [Replica::of(&fixture).await, Replica::of(&fixture).await, Replica::of(&fixture).await];
    let (journal, mut hour) = (Journal::default(), 0);
    let millis = Duration::from_millis;
    for apart in [0, 5, 400, 2_000].map(millis) {
        for lasts in [1, 30].map(millis) {
            let calls = replicas.iter().zip(0..).map(|(replica, place)| {
                // A little after the hour, by 40 ms more from one replica to the next.
                replica.clock.set(BEGIN + hour * HOUR_MICROS + i64::from(place) * 40_000);
                let (replica, journal) = (replica.clone(), journal.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(apart * place).await;
                    replica.job(&journal, tokio::time::sleep(lasts)).await.unwrap().ran()
                })
            });
            let calls: Vec<_> = calls.collect();
            let mut ran = 0;
            for call in calls {
                let outcome = within(fixture.soon() + apart * 2, "the call ends", call).await.unwrap();
                ran += usize::from(outcome.is_some());
            }
            assert_eq!(ran, 1, "{apart:?} apart, work of {lasts:?}");
            hour += 1;
        }
    }
    assert_eq!(journal.begun(), (0..hour).collect::<Vec<_>>());
}

/// A job that takes longer than its period: the calls of the periods that begin meanwhile wait, and each of these periods is run once.
pub async fn a_job_that_outlasts_its_period_delays_the_next(fixture: Fixture) {
    let replicas = [Replica::of(&fixture).await, Replica::of(&fixture).await, Replica::of(&fixture).await];
    let journal = Journal::default();
    let (first, end) = replicas[0].begins(Period::of(HOUR), &journal).await;
    let mut later = Vec::new();
    for replica in &replicas[1..] {
        replica.clock.advance(HOUR);
        let (replica, journal) = (replica.clone(), journal.clone());
        later.push(tokio::spawn(async move { replica.job(&journal, at_once()).await }));
    }
    fixture.work().await;
    assert!(later.iter().all(|task| !task.is_finished()), "they wait for the work of the hour before");
    for replica in &replicas {
        replica.clock.advance(HOUR);
    }
    end.add_permits(1);
    assert_eq!(done(&fixture, first).await, JobOutcome::Ran(()));
    let mut ran = 0;
    for task in later {
        ran += usize::from(done(&fixture, task).await.ran().is_some());
    }
    assert_eq!((ran, journal.begun()), (1, vec![0, 1]), "the period of the call, not the one at its end");
    assert!(replicas[1].job(&journal, at_once()).await.unwrap().ran().is_some());
    assert_eq!(journal.begun(), [0, 1, 2]);
}

/// While the work is under way, other calls are told so at once, also a call from within the work itself.
pub async fn who_comes_while_it_is_run_is_told_so(fixture: Fixture) {
    let (here, there) = (Replica::of(&fixture).await, Replica::of(&fixture).await);
    let journal = Journal::default();
    let (first, end) = here.begins(Period::of(HOUR), &journal).await;
    for replica in [&there, &here] {
        let told = within(fixture.soon(), "it is told", replica.job(&journal, at_once())).await.unwrap();
        assert!(
            matches!(&told, JobOutcome::RunningElsewhere(run) if run.client == here.client.name()),
            "{told:?}"
        );
    }
    end.add_permits(1);
    done(&fixture, first).await;
    assert!(over(there.job(&journal, at_once()).await).is_done);
    assert_eq!(journal.begun(), [0]);

    here.clock.advance(HOUR);
    let lock = here.client.lock.clone();
    for period in [Period::of(HOUR), Period::of(HOUR).until_done()] {
        let inside = here.client.lock.once_per(period, async |_| lock.once_per(period, async |_| {}).await);
        let inside = within(fixture.soon(), "a call in the work ends", inside).await.unwrap().ran().unwrap();
        assert!(matches!(inside, Ok(JobOutcome::RunningElsewhere(_))), "{inside:?}");
        here.clock.advance(HOUR);
    }
}

/// Two tasks of one owner are inside a lock together, and do not run a job together.
pub async fn tasks_of_one_owner_do_not_run_it_twice(fixture: Fixture) {
    let replica = Replica::of(&fixture).await;
    let (journal, owner) = (Journal::default(), Owner::new());
    let lock = replica.client.lock.owned_by(&owner);
    let calls = (0..4).map(|_| {
        let work = |_| journal.clone().work(0, tokio::task::yield_now());
        owner.scope(lock.once_per(Period::of(HOUR).until_done(), work))
    });
    let told = within(fixture.lapse(), "all calls end", join_all(calls)).await;
    assert_eq!(told.into_iter().filter(|told| matches!(told, Ok(JobOutcome::Ran(())))).count(), 1);
    assert_eq!(journal.begun(), [0]);
}

/// A clock that is behind by a period makes its client skip. If one is further off, the client that is behind says so.
pub async fn a_clock_that_is_behind_skips_and_one_far_behind_is_told(fixture: Fixture) {
    let (ahead, behind) = (Replica::of(&fixture).await, Replica::of(&fixture).await);
    let journal = Journal::default();
    ahead.clock.advance(HOUR);
    assert!(ahead.job(&journal, at_once()).await.unwrap().ran().is_some());
    assert!(over(behind.job(&journal, at_once()).await).is_done, "a period that is over was run");
    ahead.clock.advance(HOUR);
    assert!(ahead.job(&journal, at_once()).await.unwrap().ran().is_some());
    let error = behind.job(&journal, at_once()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("clocks") && error.key().is_some(), "{error}");
    behind.clock.set(ahead.clock.shows());
    assert!(over(behind.job(&journal, at_once()).await).is_done);
    assert_eq!(journal.begun(), [1, 2]);
}

/// A process that dies in the middle of the work has used up the period.
pub async fn one_who_dies_in_the_middle_has_used_up_the_period(fixture: Fixture) {
    let (dying, other) = (Replica::short_lived(&fixture).await, Replica::of(&fixture).await);
    let journal = Journal::default();
    let (task, _end) = dying.begins(Period::of(HOUR), &journal).await;
    dying.client.crash().await;
    task.abort();
    told_of_unfinished(&fixture, &other, &journal).await;
    other.clock.advance(HOUR);
    let journal = Journal::default();
    let next = within(fixture.lapse(), "the next period is run", other.job(&journal, at_once())).await;
    assert!(next.unwrap().ran().is_some());
}

/// With `until_done`, one who waits takes the work over from a process that dies in the middle of it.
pub async fn work_that_is_to_be_done_is_taken_over_from_one_who_dies(fixture: Fixture) {
    let (dying, other) = (Replica::short_lived(&fixture).await, Replica::of(&fixture).await);
    let (journal, period) = (Journal::default(), Period::of(HOUR).until_done());
    let (task, _end) = dying.begins(period, &journal).await;
    let taken_over = Journal::default();
    let (replica, noted) = (other.clone(), taken_over.clone());
    let waiting = tokio::spawn(async move { replica.job_of(period, &noted, at_once()).await });
    fixture.work().await;
    assert!(!waiting.is_finished() && taken_over.begun().is_empty(), "two are at it");
    dying.client.crash().await;
    task.abort();
    assert_eq!(done(&fixture, waiting).await, JobOutcome::Ran(()));
    assert!(over(other.job_of(period, &taken_over, at_once()).await).is_done);
    assert_eq!((journal.begun(), taken_over.begun()), (vec![0], vec![0]));
}

/// Work that fails has used up its period; with `until_done` it is begun again, until it is done.
pub async fn work_that_fails_is_repeated_only_where_that_is_wanted(fixture: Fixture) {
    let (here, there) = (Replica::of(&fixture).await, Replica::of(&fixture).await);
    let fails = async |_| Err::<(), _>("it fails");
    let succeeds = async |_| Ok::<(), &str>(());
    let lock = |replica: &Replica| replica.client.lock.clone();
    assert_eq!(lock(&here).once_per(HOUR, fails).await.unwrap(), JobOutcome::Ran(Err("it fails")));
    for replica in [&here, &there] {
        let again = lock(replica).once_per(HOUR, succeeds).await.unwrap();
        assert!(matches!(&again, JobOutcome::AlreadyRun(run) if !run.is_done), "{again:?}");
        replica.clock.advance(HOUR);
    }
    let period = Period::of(HOUR).until_done();
    assert_eq!(lock(&here).once_per(period, fails).await.unwrap(), JobOutcome::Ran(Err("it fails")));
    assert_eq!(lock(&there).once_per(period, fails).await.unwrap(), JobOutcome::Ran(Err("it fails")));
    assert_eq!(lock(&here).once_per(period, succeeds).await.unwrap(), JobOutcome::Ran(Ok(())));
    let again = lock(&there).once_per(period, succeeds).await.unwrap();
    assert!(matches!(&again, JobOutcome::AlreadyRun(run) if run.is_done), "{again:?}");
}

/// The work is dropped when the lock is lost, and has used up its period.
pub async fn work_whose_lock_is_lost_is_stopped(fixture: Fixture) {
    let (here, there) = (Replica::short_lived(&fixture).await, Replica::of(&fixture).await);
    let journal = Journal::default();
    let (task, _end) = here.begins(Period::of(HOUR), &journal).await;
    assert_eq!(there.client.take_away().await, 1);
    let error = within(fixture.lapse(), "it is stopped", task).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    told_of_unfinished(&fixture, &there, &journal).await;
    assert_eq!(journal.begun(), [0]);
}

/// The store has the run before the work begins: a call that is dropped or hangs before that does no work, and answers that get lost lead to no
/// second run.
pub async fn a_lost_answer_leads_to_no_second_run(fixture: Fixture) {
    let options = || Options::default().with_lease(fixture.long_lease());
    let loses = Arc::new(LosesReplies::of(Call::StoreRun, 2));
    let here = Replica::with(&fixture, options(), |engine| Faulty::over(engine, &loses)).await;
    let there = Replica::of(&fixture).await;
    let journal = Journal::default();
    let ran = within(fixture.long_lease(), "it asks again", here.job(&journal, at_once())).await;
    assert_eq!((ran.unwrap(), loses.left()), (JobOutcome::Ran(()), 0));
    assert!(over(there.job(&journal, at_once()).await).is_done);

    let hangs = Arc::new(LosesReplies::hanging(Call::StoreRun, 1));
    let stuck = Replica::with(&fixture, options(), |engine| Faulty::over(engine, &hangs)).await;
    for replica in [&stuck, &there] {
        replica.clock.advance(HOUR);
    }
    let (replica, noted) = (stuck.clone(), journal.clone());
    let task = tokio::spawn(async move { replica.job(&noted, at_once()).await });
    eventually(fixture.soon(), "it waits for an answer", || async { hangs.left() == 0 }).await;
    task.abort();
    drop(task.await);
    // The store has the run, and no other client knows whether its work was begun.
    told_of_unfinished(&fixture, &there, &journal).await;
    assert_eq!(journal.begun(), [0]);
}

/// A connection that holds back the answers to one kind of call.
#[derive(Debug)]
struct HoldsBack {
    reached: AtomicUsize,
    open: Semaphore,
}

#[async_trait]
impl Fault for HoldsBack {
    async fn before(&self, _: Call) -> Result<()> {
        Ok(())
    }

    async fn after(&self, call: Call) -> Result<()> {
        if call == Call::StoreRun {
            self.reached.fetch_add(1, Ordering::SeqCst);
            drop(self.open.acquire().await.expect("it is not closed"));
        }
        Ok(())
    }
}

/// A replica that hears only after it has lost the lock that the store has its run does not begin the work.
pub async fn who_has_lost_the_lock_by_the_answer_runs_nothing(fixture: Fixture) {
    let holds_back = Arc::new(HoldsBack { reached: AtomicUsize::new(0), open: Semaphore::new(0) });
    let here =
        Replica::with(&fixture, fixture.short_options(), |engine| Faulty::over(engine, &holds_back)).await;
    let there = Replica::of(&fixture).await;
    let (journal, again) = (Journal::default(), Journal::default());
    let (replica, noted) = (here.clone(), journal.clone());
    let task = tokio::spawn(async move { replica.job(&noted, at_once()).await });
    let is_reached = || async { holds_back.reached.load(Ordering::SeqCst) > 0 };
    eventually(fixture.soon(), "the run is on its way back", is_reached).await;
    assert_eq!(there.client.take_away().await, 1);
    // A caller that repeats what was not done may be at it by now.
    let period = Period::of(HOUR).until_done();
    let repeated =
        within(fixture.lapse(), "another one does it", there.job_of(period, &again, at_once())).await;
    assert_eq!(repeated.unwrap(), JobOutcome::Ran(()));
    holds_back.open.add_permits(1_000);
    let error = within(fixture.lapse(), "it is told", task).await.unwrap().unwrap_err();
    assert_eq!((error.kind(), journal.begun().len()), (ErrorKind::Lost, 0));
}

/// A call that is dropped at whatever point leads to no second run, and leaves the job to others.
pub async fn a_call_is_dropped_after_any_poll(fixture: Fixture) {
    let (here, there) = (Replica::of(&fixture).await, Replica::of(&fixture).await);
    let period = Period::of(HOUR).until_done();
    for polls in 1..40 {
        let (journal, again) = (Journal::default(), Journal::default());
        let yields = async {
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
        };
        let outcome = poll_times(polls, here.job(&journal, yields)).await;
        assert!(journal.begun().len() <= 1);
        let next = within(fixture.lapse(), "another one calls", there.job(&again, at_once())).await.unwrap();
        assert!(
            journal.begun().len() + again.begun().len() <= 1,
            "after {polls} polls it was run twice: {next:?}"
        );
        // Whatever has become of it: who wants it to be done gets that.
        let done =
            within(fixture.lapse(), "it is done", there.job_of(period, &again, at_once())).await.unwrap();
        match done {
            JobOutcome::Ran(()) => {}
            JobOutcome::AlreadyRun(run) => assert!(run.is_done),
            JobOutcome::RunningElsewhere(run) => panic!("no caller is at it: {run:?}"),
        }
        for replica in [&here, &there] {
            replica.clock.advance(HOUR);
        }
        if outcome.is_some() {
            return;
        }
    }
}

/// What was written late, or twice, does not take the place of what is later.
pub async fn a_late_write_of_a_former_holder_does_not_count(fixture: Fixture) {
    let client = fixture.client().await;
    let (engine, key) = (client.engine(), client.key());
    let guard = client.write().await;
    let token = |number| Some(Token::from_number(number));
    let run = |hours: i64, number| {
        JobRun::begun(
            BEGIN + hours * HOUR_MICROS,
            token(number),
            7,
            ClientName::stored("web-3/4711, of two words"),
        )
    };
    let kept = Period::of(HOUR).length() * 24;
    assert_eq!(engine.last_run(&key).await.unwrap(), None);
    // Tokens of which a number with a fraction does not know all digits.
    let (small, large) = (1_806_336_000_000_000_001, 1_806_336_000_000_000_002);
    let steps = [run(1, small), run(1, large), run(1, large).done(), run(2, small), run(3, large)];
    for (place, step) in steps.iter().enumerate() {
        for copy in 0..2 {
            assert!(engine.store_run(&key, step, kept).await.unwrap(), "copy {copy} of {step:?}");
            assert_eq!(engine.last_run(&key).await.unwrap().as_ref(), Some(step));
        }
        for late in &steps[..place] {
            assert!(!engine.store_run(&key, late, kept).await.unwrap(), "{late:?} after {step:?}");
            assert_eq!(engine.last_run(&key).await.unwrap().as_ref(), Some(step), "after {late:?}");
        }
    }
    drop(guard);
}

/// A job is known by its group and its name, whatever they are.
pub async fn each_name_is_a_job_of_its_own(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let group = fixture.group();
    let longest = "x".repeat(ylock_core::MAX_NAME_BYTES);
    let almost = format!("{}y", &longest[1..]);
    let names = ["a", "a:b", "b", "", "/", "..", "%2F", "ä 'quoted'", &longest, &almost];
    let names = names.into_iter().filter(|name| Key::new(Arc::clone(&group), *name).is_ok());
    let names: Vec<_> = names.collect();
    for name in &names {
        let ran = here.locks(Arc::clone(&group)).once_per(*name, Period::LONGEST, async |_| {}).await;
        assert!(ran.unwrap().ran().is_some(), "{name:?} was taken for another job");
    }
    for name in &names {
        let again = there.locks(Arc::clone(&group)).once_per(*name, Period::LONGEST, async |_| {}).await;
        assert!(again.unwrap().ran().is_none(), "{name:?} was forgotten");
    }
    let elsewhere = there.locks(format!("{group}:a")).once_per("b", Period::LONGEST, async |_| {}).await;
    assert!(elsewhere.unwrap().ran().is_some(), "another group");
}

/// A client that was closed runs nothing, and what it has run stays known.
pub async fn a_run_outlives_its_client(fixture: Fixture) {
    let (here, there) = (Replica::of(&fixture).await, Replica::of(&fixture).await);
    let journal = Journal::default();
    assert!(here.job(&journal, at_once()).await.unwrap().ran().is_some());
    here.client.close().await;
    assert_eq!(here.job(&journal, pending()).await.unwrap_err().kind(), ErrorKind::Closed);
    assert!(over(there.job(&journal, at_once()).await).is_done);
}
