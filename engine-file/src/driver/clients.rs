//! The clients of a folder that have ended, and what they have left.

use rustix::fs::{Dir, FileType};
use ylock_core::Result;

use super::errors::failed;
use super::file_name::{FileName, Shelf};
use super::folder::Folder;
use super::key_file::{IfMissing, Locked};
use super::open::open_folder;
use crate::client_id::ClientId;

impl Folder {
    /// Returns the clients that have ended and whose pipes are still there. Removes the pipes of those that have ended while they made them: no
    /// file of a key names such a client.
    pub(crate) fn dead_clients(&self) -> Result<Vec<ClientId>> {
        let names = self.list(&self.clients, "clients")?;
        names.iter().for_each(|(name, _)| self.remove_unfinished_pipe(name));
        let clients = names.iter().filter_map(|(name, _)| name.parse::<ClientId>().ok());
        Ok(clients.filter(|client| self.is_dead(*client)).collect())
    }

    /// Returns how many clients live, this one included.
    pub(super) fn clients_now(&self) -> Result<usize> {
        let names = self.list(&self.clients, "clients")?;
        let clients = names.iter().filter_map(|(name, _)| name.parse::<ClientId>().ok());
        Ok(clients.filter(|client| !self.is_dead(*client)).count())
    }

    /// Returns the names of all files of a shelf.
    pub(crate) fn files(&self, shelf: Shelf) -> Result<Vec<FileName>> {
        self.check_process()?;
        let (mut files, mut folders) = (Vec::new(), vec![String::new()]);
        while let Some(folder) = folders.pop() {
            let opened = match folder.as_str() {
                "" => self.list(self.shelf(shelf), shelf.name())?,
                // A folder that is gone has nothing in it.
                inner => match open_folder(self.shelf(shelf), inner) {
                    Ok(inner_folder) => self.list(&inner_folder, shelf.name())?,
                    Err(_) => continue,
                },
            };
            for (name, is_folder) in opened {
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                if is_folder { folders.push(path) } else { files.push(FileName::stored(path, shelf)) }
            }
        }
        Ok(files)
    }

    /// Locks a file that was found. Returns nothing if another process has it locked.
    pub(crate) fn lock_found(&self, name: FileName) -> Result<Option<Locked<'_>>> {
        self.lock_file(name, IfMissing::Leave)
    }

    fn list(&self, folder: &std::os::fd::OwnedFd, shown: &str) -> Result<Vec<(String, bool)>> {
        let listed = |errno| failed(&format!("list {}/{shown}", self.path().display()), errno);
        let mut names = Vec::new();
        for entry in Dir::read_from(folder).map_err(listed)? {
            let entry = entry.map_err(listed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push((name, entry.file_type() == FileType::Directory));
            }
        }
        Ok(names)
    }
}
