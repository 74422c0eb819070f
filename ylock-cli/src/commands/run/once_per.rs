//! `ylock run --once-per`: at most once in each period, whichever client asks.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Mutex;
use ylock::{Done, ErrorKind, Locks, OncePer, Options, Period, Scheduled, Wait, Ylock};

use super::child::Child;
use crate::arguments::RunArguments;
use crate::commands::signals::Signals;
use crate::exit::{Failed, LOST, Result};

/// How the command has ended; in the sense of the library it is done if it has succeeded.
struct Ended(Result<u8>);

impl Done for Ended {
    fn is_done(&self) -> bool {
        matches!(self.0, Ok(0))
    }
}

/// A command, with the signals that are passed on to it. Outside of the work of the library, which is dropped when the lock is lost: the command has
/// to be stopped then.
struct Job<'a> {
    child: Option<Child>,
    signals: &'a mut Signals,
}

pub(super) async fn run(ylock: &Ylock, arguments: &RunArguments, signals: &mut Signals) -> Result<u8> {
    let mut before = Signals::listen()?;
    let (job, is_started) = (Mutex::new(Job { child: None, signals }), AtomicBool::new(false));
    let work = |scheduled: Scheduled| {
        is_started.store(true, Ordering::SeqCst);
        let job = &job;
        async move {
            let Job { child, signals } = &mut *job.lock().await;
            match Child::start(arguments, scheduled.token()) {
                Ok(started) => Ended(child.insert(started).ended(signals).await),
                Err(failed) => Ended(Err(failed)),
            }
        }
    };
    let ran = {
        let (locks, name) = (locks(ylock, arguments), arguments.lock.0.name());
        let mut running = pin!(locks.once_per(name, period(arguments), work));
        loop {
            tokio::select! {
                biased;
                ran = &mut running => break ran,
                // One that comes before the command is there ends the wait for it.
                signal = before.ending() => if !is_started.load(Ordering::SeqCst) {
                    return Err(Failed::by_signal(signal));
                },
            }
        }
    };
    match ran {
        Ok(OncePer::Ran(Ended(code))) => code,
        Ok(OncePer::Running(run)) => {
            eprintln!("ylock: {} is at it", run.client);
            Ok(0)
        }
        Ok(OncePer::AlreadyRun(run)) => {
            let since = humantime::format_rfc3339_seconds(run.since());
            eprintln!("ylock: {} has run it in this period, since {since}", run.client);
            Ok(0)
        }
        Err(error) if error.kind() == ErrorKind::Lost => {
            eprintln!("ylock: {error:#}: the command is sent TERM");
            let Job { child, signals } = &mut *job.lock().await;
            if let Some(child) = child {
                child.stop(arguments.grace, signals).await?;
            }
            Err(Failed::new(LOST, ""))
        }
        Err(error) => Err(error.into()),
    }
}

fn locks(ylock: &Ylock, arguments: &RunArguments) -> Locks {
    let locks = ylock.locks(arguments.lock.0.group());
    let wait = if arguments.no_wait { Some(Wait::No) } else { arguments.wait.map(Wait::For) };
    match wait {
        Some(wait) => locks.with_options(Options::default().with_wait(wait)),
        None => locks,
    }
}

fn period(arguments: &RunArguments) -> Period {
    let length = arguments.once_per.unwrap_or_default();
    let period = Period::of(length).with_offset(arguments.offset.unwrap_or_default());
    if arguments.until_done { period.until_done() } else { period }
}
