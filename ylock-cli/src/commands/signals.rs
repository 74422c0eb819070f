//! The signals that are passed on.

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

use crate::exit::Result;

/// Each with whether a terminal sends it to all processes in its foreground.
const PASSED_ON: [(Signal, bool); 6] = [
    (Signal::HUP, false),
    (Signal::INT, true),
    (Signal::QUIT, true),
    (Signal::TERM, false),
    (Signal::USR1, false),
    (Signal::USR2, false),
];

/// What listens to them: from now on none of them ends this process.
pub(crate) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    pub(crate) fn listen() -> Result<Self> {
        let listen = |(signal, _): &(Signal, bool)| {
            Ok((*signal, unix::signal(SignalKind::from_raw(signal.as_raw()))?))
        };
        PASSED_ON.iter().map(listen).collect::<Result<_>>().map(Self)
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
        self.next().await.as_raw()
    }

    /// Returns whether a terminal sends it to the command, too.
    pub(crate) fn comes_from_terminal(signal: Signal) -> bool {
        PASSED_ON.contains(&(signal, true))
    }
}
