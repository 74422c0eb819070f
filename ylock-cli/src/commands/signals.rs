//! The signals that are passed on.

use std::fs;

use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{self, SignalKind};

use crate::exit::Result;

/// Each with whether a terminal sends it to all processes in its foreground.
const PASSED_ON: [(Signal, bool); 7] = [
    (Signal::HUP, false),
    (Signal::INT, true),
    (Signal::QUIT, true),
    (Signal::TERM, false),
    (Signal::USR1, false),
    (Signal::USR2, false),
    (Signal::TSTP, true),
];

/// What listens to them: from now on none of them ends this process, or stops it.
pub(crate) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    pub(crate) fn listen() -> Result<Self> {
        // With a handler: a parent may have left this signal ignored, and the system then does not tell how a command has ended. It starts with the
        // default, which is no handler.
        drop(unix::signal(SignalKind::child())?);
        let ignored = ignored();
        // One that is ignored, as `nohup` has it, stays so, here and for the command.
        let wanted = PASSED_ON.iter().map(|(signal, _)| *signal).filter(|signal| !is_in(ignored, *signal));
        let listen = |signal: Signal| Ok((signal, unix::signal(SignalKind::from_raw(signal.as_raw()))?));
        wanted.map(listen).collect::<Result<_>>().map(Self)
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> Signal {
        std::future::poll_fn(|context| {
            for (signal, received) in &mut self.0 {
                if received.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(*signal);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }

    /// Waits for one that ends a process without a command. Returns its number.
    pub(crate) async fn ending(&mut self) -> i32 {
        loop {
            match self.next().await {
                Signal::TSTP => stop_here(),
                signal => return signal.as_raw(),
            }
        }
    }

    /// Returns whether a terminal sends it to the command, too.
    pub(crate) fn comes_from_terminal(signal: Signal) -> bool {
        PASSED_ON.contains(&(signal, true))
    }
}

/// Stops this process. Returns when it goes on. Nothing is renewed meanwhile.
pub(crate) fn stop_here() {
    // A process may always stop itself.
    let _ = kill_process(getpid(), Signal::STOP);
}

/// Returns the signals that this process ignores, one bit each; none where the system does not tell.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

fn is_in(signals: u64, signal: Signal) -> bool {
    signals >> (signal.as_raw() - 1) & 1 == 1
}
