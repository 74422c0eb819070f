//! Exit codes, as of `sysexits.h` where it has one.

use ylock::{Error, ErrorKind};

/// The arguments are wrong, or the configuration.
pub(crate) const USAGE: u8 = 64;
/// The store cannot be reached.
pub(crate) const UNAVAILABLE: u8 = 69;
/// The user does not want it.
pub(crate) const DECLINED: u8 = 1;
/// The lock was lost while the command ran, or held for too long.
pub(crate) const LOST: u8 = 73;
/// The lock is not free.
pub(crate) const NOT_FREE: u8 = 75;
/// The command is there and cannot be run, as shells say it.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// The command was not found, as shells say it.
pub(crate) const NOT_FOUND: u8 = 127;
/// A process that a signal has ended: this, and the number of the signal.
pub(crate) const SIGNALLED: u8 = 128;
/// Anything else.
pub(crate) const OTHER: u8 = 70;

/// What is said in the end.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) code: u8,
    /// Empty if it was said before.
    pub(crate) message: String,
}

pub(crate) type Result<T> = std::result::Result<T, Failed>;

impl Failed {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Creates the end that a signal has brought.
    pub(crate) fn by_signal(number: i32) -> Self {
        Self::new(SIGNALLED.saturating_add(u8::try_from(number).unwrap_or(0)), "")
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Unavailable | ErrorKind::Indeterminate => UNAVAILABLE,
            ErrorKind::Config | ErrorKind::Invalid | ErrorKind::Unsupported => USAGE,
            ErrorKind::Lost => LOST,
            ErrorKind::TimedOut => NOT_FREE,
            _ => OTHER,
        };
        Self::new(code, hint(&format!("{error:#}")))
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            // The reader of the output, such as `head`, has had enough: as with a program that the signal ends.
            return Self::by_signal(rustix::process::Signal::PIPE.as_raw());
        }
        Self::new(OTHER, error.to_string())
    }
}

/// Says what a user of the command has to do where the library speaks to programmers.
fn hint(message: &str) -> String {
    if message.contains("switch on the Cargo feature") {
        return format!("{message}: cargo install ylock-cli --features …");
    }
    message.to_owned()
}
