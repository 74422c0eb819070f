//! `ylock run`: holds a lock while a command runs.

mod acquire;
mod child;
mod once_per;

use std::time::Duration;

use ylock::{LossReason, Token, Unlocked, Ylock};

use crate::arguments::RunArguments;
use crate::commands::signals::Signals;
use crate::exit::{Failed, LOST, Result, USAGE};
use crate::output::say;
use crate::store::Store;
use acquire::{Deadline, Held};
use child::Child;

pub(crate) async fn run(store: &Store, arguments: RunArguments) -> Result<u8> {
    if arguments.lock.is_semaphore && arguments.permits.is_none() {
        let message = format!("{}: `run` takes a permit of it with --permits N", arguments.lock);
        return Err(Failed::new(USAGE, message));
    }
    // From before the lock is there: a signal that comes while the lock is acquired must give it back.
    let mut signals = Signals::listen()?;
    let deadline = Deadline::after(arguments.wait);
    let ylock = tokio::select! {
        biased;
        connected = acquire::connect(store, &arguments, deadline) => connected?,
        signal = signals.ending() => return Err(Failed::by_signal(signal)),
    };
    let done = with_client(&ylock, &arguments, deadline, &mut signals).await;
    // Anew: the other one may still have a signal that has come before.
    let mut more = Signals::listen()?;
    tokio::select! {
        biased;
        () = ylock.close() => {}
        // Another signal ends the wait for a store that does not answer; it frees the lock by itself.
        _ = more.ending() => {}
    }
    done
}

async fn with_client(
    ylock: &Ylock,
    arguments: &RunArguments,
    deadline: Deadline,
    signals: &mut Signals,
) -> Result<u8> {
    if arguments.once_per.is_some() {
        return once_per::run(ylock, arguments, deadline, signals).await;
    }
    let held = tokio::select! {
        biased;
        held = acquire::wait_for(ylock, arguments, deadline) => held?,
        // What is on its way is given back when the client is closed.
        signal = signals.ending() => return Err(Failed::by_signal(signal)),
    };
    under(held, arguments, signals).await
}

/// Runs the command while something is held.
async fn under(held: Held, arguments: &RunArguments, signals: &mut Signals) -> Result<u8> {
    let mut child = Child::start(arguments, held.token())?;
    let lost = tokio::select! {
        // A command that has ended before the loss has ended in time.
        biased;
        code = child.ended(signals) => {
            let code = code?;
            return given_back(held, code).await;
        }
        reason = held.lost() => reason,
    };
    // Until the command has ended nothing is given back: what is left of the lock in the store still keeps the others out.
    stopped(&mut child, lost, arguments.grace, signals).await
}

/// Gives the lock back. The code is that of the command.
async fn given_back(held: Held, code: u8) -> Result<u8> {
    match held.unlock().await {
        Ok(Unlocked::WasLost) => {
            Err(Failed::new(LOST, "the lock was lost at the moment at which the command ended"))
        }
        Ok(_) => Ok(code),
        Err(error) => {
            say(&format!("the command has ended, and the release of its lock was not confirmed: {error:#}"));
            Ok(code)
        }
    }
}

/// Stops a command whose lock is lost.
async fn stopped(
    child: &mut Child,
    reason: LossReason,
    grace: Duration,
    signals: &mut Signals,
) -> Result<u8> {
    let stopped = child.stop(grace, signals).await;
    say(&format!("the lock was lost ({}): the command was sent TERM", reason.as_str()));
    stopped?;
    Err(Failed::new(LOST, ""))
}

/// Returns the token as the command finds it.
fn shown(token: Option<Token>) -> Option<String> {
    token.map(|token| token.get().to_string())
}
