//! Turns Ctrl-C into an ordinary error, so that guards run and stop what was started.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The exit code with which a shell reports a command that Ctrl-C ended.
pub(crate) const EXIT_CODE: u8 = 130;

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

static GIVEN_UP: AtomicBool = AtomicBool::new(false);

pub(crate) fn install() -> Result<()> {
    let flag = INTERRUPTED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(flag))?;
    }
    Ok(())
}

pub(crate) fn happened() -> bool {
    INTERRUPTED.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// Ends what other threads do, as Ctrl-C would: the command has failed and is about to end.
pub(crate) fn give_up() {
    GIVEN_UP.store(true, Ordering::Relaxed);
}

pub(crate) fn check() -> Result<()> {
    if happened() {
        bail!("interrupted");
    }
    if GIVEN_UP.load(Ordering::Relaxed) {
        bail!("given up, as something else failed");
    }
    Ok(())
}

/// Sleeps between two looks at something that takes time. Fails after Ctrl-C and after [`give_up`].
pub(crate) fn pause(time: Duration) -> Result<()> {
    thread::sleep(time);
    check()
}
