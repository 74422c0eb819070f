//! The part that talks to the system, with the crate `rustix` as its driver: the folder, a file for each key, a pipe for each client.

mod clients;
mod errors;
mod file_name;
mod folder;
mod key_file;
mod layout;
mod machine;
mod pipe;
mod slots;

pub(crate) use file_name::FileName;
pub(crate) use folder::Folder;
pub(crate) use key_file::{IfMissing, Locked};
pub(crate) use pipe::{Messages, Pipe, Watch};

/// Sends this process a signal that it cannot refuse. Returns when it goes on.
pub(crate) fn stop_this_process(ends: bool) {
    use rustix::process::{Signal, getpid, kill_process};
    let sent = kill_process(getpid(), if ends { Signal::KILL } else { Signal::STOP });
    debug_assert!(sent.is_ok(), "a process may send itself signals");
    // Another thread takes the signal, and until that thread runs this one would go on.
    std::thread::sleep(std::time::Duration::from_millis(200));
}
