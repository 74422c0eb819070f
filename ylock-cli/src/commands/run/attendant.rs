//! What signals do to `ylock run`, in each of its stages: while it waits, while the command runs,
//! and while what is held is given back.
//!
//! The store may be away for as long as a lease, and whatever `ylock` waits for then, two signals
//! end it: by the first it is asked to end, by the second it is told to.

use std::cell::RefCell;
use std::future::{Future, pending};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::child::Running;
use crate::commands::signals::{Signals, stop_here};
use crate::exit::Result;
use crate::output::say;

/// How long giving back may take once a signal has asked `ylock` to end. Longer than a store that
/// answers takes, and shorter than the patience of those that send KILL behind a TERM.
const FAREWELL: Duration = Duration::from_secs(5);
/// The same, once a second signal has come.
const AT_ONCE: Duration = Duration::from_millis(300);

/// The stage in which `ylock run` is.
#[derive(Clone)]
enum State {
    /// The command has not been started.
    Waits,
    Runs(Rc<Running>),
    /// The command has ended, or will not be started.
    Ended,
}

/// The stage, as the work goes on to the next one.
pub(super) struct Stage {
    state: RefCell<State>,
    /// Rung at the end of the command: from then on the time counts.
    ended: Notify,
}

impl Stage {
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self { state: RefCell::new(State::Waits), ended: Notify::new() })
    }

    /// Signals are for this command from now on.
    pub(super) fn runs(&self, command: &Rc<Running>) {
        self.state.replace(State::Runs(Rc::clone(command)));
    }

    /// Signals are for `ylock` itself from now on.
    pub(super) fn ends(&self) {
        self.state.replace(State::Ended);
        self.ended.notify_one();
    }

    fn state(&self) -> State {
        self.state.borrow().clone()
    }
}

/// Attends to the signals. One for the whole of the process: each signal counts once, and none is
/// lost between two stages.
pub(super) struct Attendant {
    signals: Signals,
    stage: Rc<Stage>,
    /// The signal that has asked `ylock` to end.
    pub(super) asked: Option<i32>,
    /// The second one.
    pub(super) told: Option<i32>,
    /// When nothing is waited for any more.
    until: Option<Instant>,
}

impl Attendant {
    pub(super) fn listen(stage: &Rc<Stage>) -> Result<Self> {
        let (signals, stage) = (Signals::listen()?, Rc::clone(stage));
        Ok(Self { signals, stage, asked: None, told: None, until: None })
    }

    /// Does the work, and what signals ask for meanwhile. Returns nothing if the work must not go
    /// on: a signal has ended the wait for the lock, or what was to be given back has taken too
    /// long.
    pub(super) async fn attend<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let stage = Rc::clone(&self.stage);
        loop {
            if self.asked.is_some() && matches!(stage.state(), State::Ended) {
                self.until.get_or_insert_with(|| Instant::now() + FAREWELL);
            }
            let until = self.until;
            tokio::select! {
                // No signal is sent to a process that has ended: another one may have its number by
                // now.
                biased;
                done = &mut work => return Some(done),
                signal = self.signals.next() => if !self.handle(signal).await { return None },
                () = stage.ended.notified() => {}
                () = passed(until) => return None,
            }
        }
    }

    /// Handles a signal. Returns whether the work goes on.
    async fn handle(&mut self, signal: Signal) -> bool {
        match (self.stage.state(), signal) {
            (State::Runs(command), Signal::TSTP) => command.stop_with_ylock().await,
            (State::Waits | State::Ended, Signal::TSTP) => stop_here(),
            (State::Runs(command), _) => self.hand_on(&command, signal),
            (State::Waits, _) => {
                self.count(signal);
                return false;
            }
            (State::Ended, _) => {
                if !self.count(signal) {
                    say("what is held is being given back; another signal ends that at once");
                }
            }
        }
        true
    }

    /// Passes a signal on to the command. A second one that asks it to end is KILL for it.
    fn hand_on(&mut self, command: &Running, signal: Signal) {
        if !command.is_sent(signal) {
            return;
        }
        // HUP and QUIT mean something else to many programs, also several times.
        if matches!(signal, Signal::INT | Signal::TERM) && self.count(signal) {
            command.send(Signal::KILL);
            say("a second signal has come: the command was sent KILL");
        } else {
            command.pass_on(signal);
        }
    }

    /// Counts a signal that asks `ylock` to end. Returns whether it is not the first one.
    fn count(&mut self, signal: Signal) -> bool {
        let number = signal.as_raw();
        if self.asked.is_none() {
            self.asked = Some(number);
            return false;
        }
        if self.told.is_none() {
            self.told = Some(number);
            self.until = Some(Instant::now() + AT_ONCE);
        }
        true
    }
}

async fn passed(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => pending().await,
    }
}
