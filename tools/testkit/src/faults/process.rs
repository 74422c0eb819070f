//! A process: running, paused or dead.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// Pauses, resumes and kills what an engine does for one client.
#[derive(Clone, Debug, Default)]
pub struct Process(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    /// The tasks whose futures wait for [`Process::resume`].
    stopped: Vec<Waker>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Running,
    Paused,
    Dead,
}

impl Process {
    /// Pauses the process: nothing is sent and no answer is heard until [`resume`](Self::resume).
    pub fn pause(&self) {
        self.enter(Phase::Paused);
    }

    /// Goes on where [`pause`](Self::pause) stopped it.
    pub fn resume(&self) {
        self.enter(Phase::Running);
    }

    /// Kills the process: nothing is ever sent again.
    pub fn kill(&self) {
        self.enter(Phase::Dead);
    }

    /// Lets what a killed process had begun come to its end, when the test is over: so its threads and connections end, as they would have by
    /// themselves, and no test after it pays for them.
    pub fn bury(&self) {
        self.0.lock().phase = Phase::Running;
        self.enter(Phase::Running);
    }

    /// Returns whether the process is neither paused nor dead.
    pub fn is_running(&self) -> bool {
        self.0.lock().phase == Phase::Running
    }

    /// Returns whether the process was killed, and is not buried yet.
    pub fn is_dead(&self) -> bool {
        self.0.lock().phase == Phase::Dead
    }

    /// Runs a future for as long as this process runs.
    pub(super) async fn run<F: Future + Send>(&self, future: F) -> F::Output {
        WhileRunning { process: self, future: Some(Box::pin(future)) }.await
    }

    fn enter(&self, phase: Phase) {
        let stopped = {
            let mut state = self.0.lock();
            if state.phase != Phase::Dead {
                state.phase = phase;
            }
            std::mem::take(&mut state.stopped)
        };
        stopped.into_iter().for_each(Waker::wake);
    }

    fn poll_running(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if state.phase == Phase::Running {
            return Poll::Ready(());
        }
        if !state.stopped.iter().any(|waker| waker.will_wake(context.waker())) {
            state.stopped.push(context.waker().clone());
        }
        Poll::Pending
    }
}

struct WhileRunning<'a, F> {
    process: &'a Process,
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for WhileRunning<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        std::task::ready!(self.process.poll_running(context));
        let output =
            std::task::ready!(self.future.as_mut().expect("polled after its end").as_mut().poll(context));
        self.future = None;
        Poll::Ready(output)
    }
}

impl<F> Drop for WhileRunning<'_, F> {
    fn drop(&mut self) {
        // A killed process does not run destructors: one of the future's own might give something back.
        if !self.process.is_running() {
            std::mem::forget(self.future.take());
        }
    }
}
