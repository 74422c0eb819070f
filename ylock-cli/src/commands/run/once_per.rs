//! `ylock run --once-per`: at most once in each period, whichever client asks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use ylock::{Completed, ErrorKind, JobLease, JobOutcome, Locks, Options, Period, Ylock};

use super::Scene;
use super::acquire::{Deadline, not_free};
use super::child::{self, Child};
use super::left::Left;
use crate::arguments::RunArguments;
use crate::exit::Result;
use crate::output::{say, time};

/// How the command has ended; in the sense of the library it is done if it has succeeded.
struct Ended(Result<u8>);

impl Completed for Ended {
    fn is_done(&self) -> bool {
        matches!(self.0, Ok(0))
    }
}

pub(super) async fn run(
    ylock: &Ylock,
    arguments: &RunArguments,
    deadline: Deadline,
    scene: &Scene,
) -> Result<u8> {
    // Before the run is written down: one that cannot begin would use up its period.
    child::find(&arguments.command[0])?;
    loop {
        // Outside of the work of the library, which is dropped when the lock is lost: the command
        // has to be stopped then.
        let command = Mutex::new(None);
        let is_started = AtomicBool::new(false);
        match attempt(ylock, arguments, deadline, &command, &is_started, scene).await {
            Ok(ran) => {
                scene.leaves.now(Left::Nothing);
                return ended(ran);
            }
            Err(error) if error.kind() == ErrorKind::Lost => {
                if let Some(child) = &mut *command.lock().await {
                    child.stop(arguments.grace).await?;
                }
                return Err(error.into());
            }
            Err(error) if error.kind() == ErrorKind::TimedOut => return Err(not_free(arguments)),
            // What has begun is not begun again.
            Err(error) if is_started.load(Ordering::SeqCst) => return Err(error.into()),
            Err(error) => deadline.pause(arguments, error).await?,
        }
    }
}

/// Asks once for a run of the job.
async fn attempt(
    ylock: &Ylock,
    arguments: &RunArguments,
    deadline: Deadline,
    command: &Mutex<Option<Child>>,
    is_started: &AtomicBool,
    scene: &Scene,
) -> ylock::Result<JobOutcome<Ended>> {
    let work = |scheduled: JobLease| async move {
        is_started.store(true, Ordering::SeqCst);
        scene.leaves.now(Left::Lock);
        match Child::start(arguments, scheduled.token()) {
            Ok(started) => Ended(scene.ended(command.lock().await.insert(started), arguments).await),
            Err(failed) => Ended(Err(failed)),
        }
    };
    let (locks, name) = (locks(ylock, arguments, deadline), arguments.lock.key.name());
    locks.once_per(name, period(arguments), work).await
}

/// Says what has become of the job.
fn ended(ran: JobOutcome<Ended>) -> Result<u8> {
    match ran {
        JobOutcome::Ran(Ended(code)) => return code,
        JobOutcome::RunningElsewhere(run) => say(&format!("{} is at it", run.client)),
        JobOutcome::AlreadyRun(run) => {
            say(&format!("{} has run it in this period, since {}", run.client, time(run.since())));
        }
    }
    Ok(0)
}

fn locks(ylock: &Ylock, arguments: &RunArguments, deadline: Deadline) -> Locks {
    let locks = ylock.locks(arguments.lock.key.group());
    let max_wait = if arguments.no_wait { Some(Duration::ZERO) } else { deadline.left() };
    match max_wait {
        Some(max_wait) => locks.with_options(Options::default().with_max_wait(max_wait)),
        None => locks,
    }
}

fn period(arguments: &RunArguments) -> Period {
    let length = arguments.once_per.unwrap_or_default();
    let period = Period::of(length).with_offset(arguments.offset.unwrap_or_default());
    if arguments.until_done { period.until_done() } else { period }
}
