//! The part that talks to the system, with the crate `rustix` as its driver: the folder, a file for each key, a pipe for each client.

mod clients;
mod errors;
mod file_name;
mod folder;
mod key_file;
mod layout;
mod locked_file;
mod machine;
mod open;
mod own;
mod pipe;
mod slots;
mod stop_point;

pub(crate) use file_name::{FileName, Shelf};
pub(crate) use folder::Folder;
pub(crate) use key_file::{IfMissing, Locked};
pub(crate) use layout::Busy;
pub(crate) use pipe::{Messages, Pipe, Watch};
pub use stop_point::stop_at;

#[cfg(test)]
mod tests;
