//! The calls of the system that a lock cannot do without, and nothing else.

use std::fs::{File, OpenOptions, remove_file};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// As many bytes as a contender has.
const TEXT: [u8; 256] = [b'x'; 256];

/// One pair: makes a file, locks it, reads it and writes it; opens it again, locks it, reads it and removes it.
pub(crate) fn pair(file: &Path) {
    let made = open(file);
    lock(&made);
    let mut bytes = [0; 8192];
    made.read_at(&mut bytes, 0).expect("read");
    made.write_all_at(&TEXT, 44).expect("written");
    made.write_all_at(&TEXT[..44], 0).expect("written");
    drop(made);
    let again = open(file);
    lock(&again);
    again.read_at(&mut bytes, 0).expect("read");
    remove_file(file).expect("removed");
}

pub(crate) fn open(file: &Path) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(file).expect("opened")
}

/// Waits until the file is locked.
pub(crate) fn lock(file: &File) {
    flock(file, FlockOperation::LockExclusive).expect("locked");
}

pub(crate) fn unlock(file: &File) {
    flock(file, FlockOperation::Unlock).expect("unlocked");
}
