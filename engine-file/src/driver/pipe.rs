//! The pipe of a client, a file with a name. The client reads it, so it is also what shows that the client lives: the kernel refuses to open a pipe
//! for writing that no process reads any more, and tells those who have it open when its last reader goes.

use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, fchmod, fstat, mknodat, renameat_with, unlinkat,
};
use rustix::io::{Errno, write};
use rustix::pipe::fcntl_getpipe_size;
use tokio::io::Interest;
use tokio::net::unix::pipe::{Receiver, Sender};
use ylock_core::Result;

use super::errors::failed;
use super::folder::Folder;
use super::layout::touch;
use super::open::{NEW, OF_GROUP, OF_OWNER, REMOVED, open};
use super::stop_point;
use crate::client_id::ClientId;
use crate::message::{MESSAGE, Message};

/// The own pipe, open for as long as the client lives.
#[derive(Debug)]
pub(crate) struct Pipe {
    /// For reading, so that the client lives; and for writing, so that a pipe whose last writer goes does not look like one that has ended.
    file: OwnedFd,
}

/// What a reading of the own pipe has brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Messages {
    For(Vec<Message>),
    /// So much that something may have been lost: all are to look.
    ForAll,
}

impl Folder {
    /// Makes the pipe of a client. Fails if there is one of this name.
    pub(crate) fn make_pipe(&self, client: ClientId) -> Result<Pipe> {
        let name = client.to_string();
        let what = || format!("make the pipe {}/clients/{name}", self.path().display());
        let file = self.make_pipe_as(&name).map_err(|errno| failed(&what(), errno))?;
        Ok(Pipe { file })
    }

    fn make_pipe_as(&self, name: &str) -> Result<OwnedFd, Errno> {
        // Under another name until it is open: another client that met it before would take its owner for dead.
        let new = format!("{name}{NEW}");
        for _ in 0..REMOVED {
            stop_point::pass();
            mknodat(&self.clients, &new, FileType::Fifo, Mode::from_raw_mode(OF_OWNER), 0)?;
            match self.open_and_name(&new, name) {
                // Another client has cleared it away, before it was open: it could not know that its maker lives. Again.
                Err(Errno::NOENT) => {}
                Err(errno) => {
                    let _ = unlinkat(&self.clients, &new, AtFlags::empty());
                    return Err(errno);
                }
                Ok(file) => return Ok(file),
            }
        }
        Err(Errno::NOENT)
    }

    /// Opens a new pipe, lets the group in, and gives it its name.
    pub(super) fn open_and_name(&self, new: &str, name: &str) -> Result<OwnedFd, Errno> {
        stop_point::pass();
        let file = self.open_pipe_for(new, OFlags::RDWR)?;
        // A user of the group may have put a file of this user's in its place, for this client to open it to the group.
        if !self.own.is_own(&fstat(&file)?, FileType::Fifo) {
            return Err(Errno::EXIST);
        }
        if self.own.is_shared() {
            // The mask of the process may have kept the group out.
            fchmod(&file, Mode::from_raw_mode(OF_GROUP))?;
        }
        stop_point::pass();
        // Never over another one: that client would look as if it were this one.
        renameat_with(&self.clients, new, &self.clients, name, RenameFlags::NOREPLACE)?;
        Ok(file)
    }

    /// Removes a pipe of this name if no process has it open: its maker has ended before it got its own name. One that lives, and has not opened it
    /// yet, makes it again.
    pub(super) fn remove_unfinished_pipe(&self, name: &str) {
        if name.ends_with(NEW) && self.is_without_reader(name) {
            let _ = unlinkat(&self.clients, name, AtFlags::empty());
        }
    }

    /// Removes the name of a client's pipe. Fails in a forked process: the client of the one that has connected goes on.
    pub(crate) fn remove_pipe(&self, client: ClientId) -> Result<()> {
        self.check_process()?;
        // It may be gone with the folder.
        let _ = unlinkat(&self.clients, client.to_string(), AtFlags::empty());
        Ok(())
    }

    /// Tells a client what one of its waiters is to know. Never waits: a client whose pipe is full looks for all of them when it reads it.
    pub(crate) fn tell(&self, client: ClientId, message: Message) {
        stop_point::pass();
        // For reading, too: a message into a pipe whose last reader has just gone would end a program that does not ignore SIGPIPE.
        let told = self.open_pipe_for(&client.to_string(), OFlags::RDWR).and_then(|pipe| {
            // What a user of the group has put in its place may be a file of this user's.
            if !self.own.is_own(&fstat(&pipe)?, FileType::Fifo) {
                return Err(Errno::NOTSUP);
            }
            stop_point::pass();
            write(pipe, &message.to_bytes())
        });
        if let Err(errno) = told {
            tracing::trace!(%client, %errno, "a waiter was not told that its turn has come; it looks by itself");
        }
    }

    /// Returns whether a client has ended for good. False if that is not known.
    pub(crate) fn is_dead(&self, client: ClientId) -> bool {
        self.is_without_reader(&client.to_string())
    }

    fn is_without_reader(&self, name: &str) -> bool {
        // Not if the pipe is missing: another program may have removed a file of a client that lives.
        matches!(self.open_pipe_for(name, OFlags::WRONLY), Err(Errno::NXIO))
    }

    /// Begins to watch a client. Returns nothing if it has ended, or cannot be watched.
    pub(crate) fn watch(&self, client: ClientId) -> Option<Watch> {
        let pipe = self.open_pipe_for(&client.to_string(), OFlags::WRONLY).ok()?;
        Sender::from_owned_fd(pipe).ok().map(|pipe| Watch { pipe })
    }

    fn open_pipe_for(&self, name: &str, what: OFlags) -> Result<OwnedFd, Errno> {
        open(&self.clients, name, what)
    }
}

/// Returns whether a process has the pipe of this name open for reading, or for both.
///
/// # Errors
/// If that is not known, as in a process without descriptors.
pub(super) fn has_reader(clients: &OwnedFd, name: &CStr) -> Result<bool, Errno> {
    match open(clients, name, OFlags::WRONLY).and_then(fstat) {
        Ok(found) => Ok(FileType::from_raw_mode(found.st_mode) == FileType::Fifo),
        // None reads it; it is gone meanwhile; it is no pipe, but a link or a folder.
        Err(Errno::NXIO | Errno::NOENT | Errno::LOOP | Errno::ISDIR) => Ok(false),
        // Its maker has not let the group in yet, or was killed before it did. It holds no lock.
        Err(Errno::ACCESS) if name.to_bytes().ends_with(NEW.as_bytes()) => Ok(false),
        Err(errno) => Err(errno),
    }
}

impl Pipe {
    /// Shows a cleaner of old files that the pipe is in use.
    pub(crate) fn touch(&self) {
        touch(&self.file);
    }

    /// Returns what reads the pipe in this runtime.
    pub(crate) fn reader(&self) -> io::Result<Reader> {
        // A descriptor of its own, which belongs to this runtime: the first one lives as long as the client.
        // As much as the pipe holds: when it fills all of this, something may have been lost.
        let room = fcntl_getpipe_size(&self.file)?;
        Receiver::from_owned_fd(self.file.try_clone()?).map(|pipe| Reader { pipe, buffer: vec![0; room] })
    }
}

/// Reads the own pipe, in one runtime.
#[derive(Debug)]
pub(crate) struct Reader {
    pipe: Receiver,
    buffer: Vec<u8>,
}

impl Reader {
    /// Waits for messages.
    ///
    /// # Cancel safety
    /// No message is lost if the future is dropped: it takes them when it is ready.
    pub(crate) async fn read(&mut self) -> io::Result<Messages> {
        loop {
            self.pipe.readable().await?;
            match self.pipe.try_read(&mut self.buffer) {
                Ok(filled) => return Ok(Messages::read(&self.buffer[..filled], self.buffer.len())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Messages {
    fn read(bytes: &[u8], room: usize) -> Self {
        let (messages, rest) = bytes.as_chunks::<MESSAGE>();
        // What is left of a message has lost its beginning or its end, and all that follow are then read wrongly.
        if !rest.is_empty() || bytes.len() == room {
            return Self::ForAll;
        }
        Self::For(messages.iter().map(Message::from_bytes).collect())
    }
}

/// Another client's pipe, open until that client has ended.
#[derive(Debug)]
pub(crate) struct Watch {
    pipe: Sender,
}

impl Watch {
    /// Waits until the client has ended; or until that is not known any more.
    pub(crate) async fn ended(&self) {
        if let Err(error) = self.pipe.ready(Interest::ERROR).await {
            tracing::debug!(%error, "a client cannot be watched any more");
        }
    }
}
