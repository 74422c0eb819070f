//! What a process is told, and what it notes: a line for each event, written before the process goes on, so that none is lost when it is killed.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use ylock_core::Mode;

use super::now;

/// What a process is told.
pub(super) struct Told {
    pub(super) seed: u64,
    pub(super) notes: PathBuf,
    pub(super) folder: PathBuf,
}

impl Told {
    pub(super) fn to_text(&self) -> String {
        format!("{}\n{}\n{}", self.seed, self.notes.display(), self.folder.display())
    }

    pub(super) fn parse(text: &str) -> Self {
        let [seed, notes, folder] = text.splitn(3, '\n').collect::<Vec<_>>().try_into().unwrap();
        Self { seed: seed.parse().unwrap(), notes: notes.into(), folder: folder.into() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Begins to ask for a lock: noted before.
    Asks,
    /// Has come in: noted after that.
    Comes,
    /// Is about to leave, or to give up writing: noted before.
    Leaves,
    /// Does anything else that counts as an operation.
    Does,
}

const WORDS: [(What, &str); 4] =
    [(What::Asks, "asks"), (What::Comes, "comes"), (What::Leaves, "leaves"), (What::Does, "does")];

#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) time: u64,
    pub(super) what: What,
    pub(super) key: usize,
    /// The acquisition.
    pub(super) id: u128,
    pub(super) mode: Mode,
    /// Zero before there is one.
    pub(super) token: u64,
}

impl Event {
    /// Reads the notes of a process, of which the last line may be cut off.
    pub(super) fn read(notes: &Path) -> Vec<Self> {
        let text = std::fs::read_to_string(notes).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(Self::parse).collect()
    }

    fn parse(line: &str) -> Self {
        let [time, what, key, id, mode, token] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let (what, _) = WORDS.into_iter().find(|(_, word)| *word == what).unwrap();
        Self {
            time: time.parse().unwrap(),
            what,
            key: key.parse().unwrap(),
            id: u128::from_str_radix(id, 16).unwrap(),
            mode: if mode == "read" { Mode::Read } else { Mode::Write },
            token: token.parse().unwrap(),
        }
    }

    fn to_line(self) -> String {
        let Self { time, what, key, id, mode, token } = self;
        let (_, what) = WORDS.into_iter().find(|(other, _)| *other == what).unwrap();
        let mode = if mode == Mode::Read { "read" } else { "write" };
        format!("{time} {what} {key} {id:032x} {mode} {token}\n")
    }
}

/// The notes of this process.
pub(super) struct Notes(File);

impl Notes {
    pub(super) fn new(path: &Path) -> Self {
        Self(File::options().create_new(true).append(true).open(path).unwrap())
    }

    pub(super) fn note(&self, what: What, key: usize, id: u128, mode: Mode, token: u64) {
        // The time first, the writing takes a while.
        let line = Event { time: now(), what, key, id, mode, token }.to_line();
        (&self.0).write_all(line.as_bytes()).unwrap();
    }
}
