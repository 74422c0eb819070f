//! A pseudo-terminal with the command in it, and its screen as a user would see it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use super::support::{Ended, Place, Running, eventually};

const LINES: u16 = 12;
const COLUMNS: u16 = 100;

/// A terminal, and the command that has its screen.
pub(crate) struct Terminal {
    running: Running,
    keyboard: File,
    /// The side of the command, kept open so that its settings can be read after the command.
    inner: OwnedFd,
    before: Termios,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl Terminal {
    /// Starts the command in a terminal.
    pub(crate) fn start(place: &Place, arguments: &[&str]) -> Self {
        Self::of(place.ylock(arguments))
    }

    /// Starts the command in a terminal that is its own, and in the foreground of it, as a shell does.
    pub(crate) fn start_in_foreground(place: &Place, arguments: &[&str]) -> Self {
        Self::of(place.by(&["setsid", "--ctty"], arguments))
    }

    fn of(mut command: Command) -> Self {
        let outer = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&outer).unwrap();
        unlockpt(&outer).unwrap();
        let name = ptsname(&outer, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let inner = rustix::fs::open(name, flags, Mode::empty()).unwrap();
        let size = Winsize { ws_row: LINES, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&inner, size).unwrap();
        let before = tcgetattr(&inner).unwrap();
        let side = || inner.try_clone().unwrap();
        command.env("TERM", "xterm-256color").stdin(side()).stdout(side()).stderr(side());
        let running = Running::of(command.spawn().unwrap());
        let keyboard = File::from(outer);
        let screen = Arc::new(Mutex::new(vt100::Parser::new(LINES, COLUMNS, 0)));
        show(keyboard.try_clone().unwrap(), screen.clone());
        Self { running, keyboard, inner, before, screen }
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Returns the screen, without the spaces at the ends of lines.
    pub(crate) fn text(&self) -> String {
        let screen = self.screen.lock().unwrap();
        let text = screen.screen().contents();
        text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// Waits until the screen is so.
    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let waited = catch_unwind(AssertUnwindSafe(|| eventually(what, || is_so(&self.text()))));
        if let Err(panic) = waited {
            eprintln!("the screen:\n{}", self.text());
            resume_unwind(panic);
        }
    }

    /// Waits until the screen shows this.
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text));
    }

    pub(crate) fn send(&self, signal: Signal) {
        self.running.send(signal);
    }

    /// Waits until the command has ended and has given the terminal back.
    pub(crate) fn ended(self) -> Ended {
        let ended = self.running.ended();
        // What the command wrote last may be on its way through the terminal.
        eventually("the terminal shows what was there before", || {
            let screen = self.screen.lock().unwrap();
            !screen.screen().alternate_screen() && !screen.screen().hide_cursor()
        });
        let after = tcgetattr(&self.inner).unwrap();
        assert_eq!(after.local_modes, self.before.local_modes);
        assert_eq!(after.input_modes, self.before.input_modes);
        assert_eq!(after.output_modes, self.before.output_modes);
        ended
    }
}

/// Shows on the screen what the command writes, until the command and the test have left the terminal.
fn show(mut output: File, screen: Arc<Mutex<vt100::Parser>>) {
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = output.read(&mut bytes) {
            screen.lock().unwrap().process(&bytes[..count]);
        }
    });
}
