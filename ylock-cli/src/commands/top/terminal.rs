//! The terminal, which is given back as it was at every end of the process but KILL.

use std::io::{self, Stdout, stdout};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::Show;
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use super::screen;
use super::state::State;

/// Whether the screen has the terminal. It is given back once: a second time the cursor would jump onto the text of a panic.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The screen. Dropped, it gives the terminal back.
pub(super) struct Screen(Terminal<CrosstermBackend<Stdout>>);

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            // First of all: the text of the panic would go with the screen.
            restore();
            before(panic);
        }));
        enable_raw_mode()?;
        IS_TAKEN.store(true, Ordering::SeqCst);
        let open = || {
            execute!(stdout(), EnterAlternateScreen)?;
            Terminal::new(CrosstermBackend::new(stdout()))
        };
        open().map(Self).inspect_err(|_| restore())
    }

    pub(super) fn draw(&mut self, state: &mut State) -> io::Result<()> {
        // After a panic of a task the terminal is the shell's.
        if IS_TAKEN.load(Ordering::SeqCst) {
            self.0.draw(|frame| screen::draw(frame, state))?;
        }
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        // A terminal that is gone needs nothing.
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}
