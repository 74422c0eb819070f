//! `ylock run`: holds a lock while a command runs.

mod acquire;
mod attendant;
mod child;
mod left;
mod once_per;

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use ylock::{LossReason, Token, Unlocked, Ylock};

use crate::arguments::RunArguments;
use crate::exit::{Failed, LOST, Result, USAGE};
use crate::output::say;
use crate::store::Store;
use acquire::{Deadline, Held};
use attendant::{Attendant, Stage};
use child::Child;
use left::{Leaves, Left};

pub(crate) async fn run(store: &Store, arguments: RunArguments) -> Result<u8> {
    if arguments.lock.is_semaphore && arguments.permits.is_none() {
        let message = format!("{}: `run` takes a permit of it with --permits N", arguments.lock);
        return Err(Failed::new(USAGE, message));
    }
    let scene = Scene::new();
    // From before the lock is there: a signal that comes while the lock is acquired must give it back.
    let mut attendant = Attendant::listen(&scene.stage)?;
    let deadline = Deadline::after(arguments.wait);
    let connected = attendant.attend(acquire::connect(store, &arguments, deadline)).await;
    let Some(ylock) = connected.transpose()? else { return scene.ended_by(&attendant) };
    let done = attendant.attend(with_client(&ylock, &arguments, deadline, &scene)).await;
    if done.is_none() {
        scene.leaves.begin_to_go();
    }
    scene.stage.ends();
    // What is on its way is given back when the client is closed.
    let closed = attendant.attend(ylock.close()).await;
    let left = scene.leaves.say(ylock.options().lease()).filter(|_| closed.is_none());
    left.iter().for_each(|left| say(left));
    match done {
        Some(done) if attendant.told.is_none() => done,
        _ => scene.ended_by(&attendant),
    }
}

/// What is known of a run, beside its work: the work may not come to its end.
struct Scene {
    stage: Rc<Stage>,
    leaves: Leaves,
    /// The exit code of the command, once it has ended.
    code: Cell<Option<u8>>,
}

impl Scene {
    fn new() -> Self {
        Self { stage: Stage::new(), leaves: Leaves::nothing(), code: Cell::new(None) }
    }

    /// Waits until the command has ended. What is held is given back then.
    async fn ended(&self, child: &mut Child, arguments: &RunArguments) -> Result<u8> {
        self.stage.runs(child.running());
        let ended = child.ended_in_time(arguments).await;
        self.leaves.begin_to_go();
        self.stage.ends();
        let code = ended?;
        self.code.set(Some(code));
        Ok(code)
    }

    /// Returns the exit code where signals have ended the work. A second signal is told whatever
    /// the command has ended with: `ylock` has not done what it does behind a command.
    fn ended_by(&self, attendant: &Attendant) -> Result<u8> {
        match (attendant.told, self.code.get(), attendant.asked) {
            (Some(signal), ..) | (None, None, Some(signal)) => Err(Failed::by_signal(signal)),
            (None, code, _) => Ok(code.unwrap_or_default()),
        }
    }
}

async fn with_client(
    ylock: &Ylock,
    arguments: &RunArguments,
    deadline: Deadline,
    scene: &Scene,
) -> Result<u8> {
    scene.leaves.now(Left::Place);
    if arguments.once_per.is_some() {
        return once_per::run(ylock, arguments, deadline, scene).await;
    }
    let held = acquire::wait_for(ylock, arguments, deadline).await?;
    scene.leaves.now(held.left());
    under(held, arguments, scene).await
}

/// Runs the command while something is held.
async fn under(held: Held, arguments: &RunArguments, scene: &Scene) -> Result<u8> {
    let mut child = Child::start(arguments, held.token())?;
    let lost = tokio::select! {
        // A command that has ended before the loss has ended in time.
        biased;
        code = scene.ended(&mut child, arguments) => {
            // One that was stopped has ended by now, too: what is held is given back by its drop.
            let code = code?;
            return given_back(held, code, scene).await;
        }
        reason = held.lost() => reason,
    };
    // Until the command has ended nothing is given back: what is left of the lock in the store still keeps the others out.
    stopped(&mut child, lost, arguments.grace).await
}

/// Gives the lock back. The code is that of the command.
async fn given_back(held: Held, code: u8, scene: &Scene) -> Result<u8> {
    let unlocked = held.unlock().await;
    scene.leaves.now(Left::Nothing);
    match unlocked {
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
async fn stopped(child: &mut Child, reason: LossReason, grace: Duration) -> Result<u8> {
    let stopped = child.stop(grace).await;
    say(&format!("the lock was lost ({}): the command was sent TERM", reason.as_str()));
    stopped?;
    Err(Failed::new(LOST, ""))
}

/// Returns the token as the command finds it.
fn shown(token: Option<Token>) -> Option<String> {
    token.map(|token| token.get().to_string())
}
