//! The clients of a folder that have ended, and what they have left.

use std::os::fd::OwnedFd;

use rustix::fs::{Dir, FileType};
use rustix::io::Errno;
use ylock_core::Result;

use super::errors::failed;
use super::file_name::{FileName, Shelf, is_folder_of_keys};
use super::folder::Folder;
use super::key_file::{IfMissing, Locked};
use super::open::open_inner;
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

    /// Returns the files of keys of a shelf.
    pub(crate) fn files(&self, shelf: Shelf) -> Result<Vec<FileName>> {
        self.check_process()?;
        let mut files = Vec::new();
        self.add_files(self.shelf(shelf), "", shelf, &mut files)?;
        Ok(files)
    }

    /// Adds the files of keys that are in a folder, whose own name below that of the shelf is `path`, and in the folders in it. One folder after
    /// another: there may be more of them than this process may have files open.
    fn add_files(&self, folder: &OwnedFd, path: &str, shelf: Shelf, files: &mut Vec<FileName>) -> Result<()> {
        for (name, is_folder) in self.list(folder, shelf.name())? {
            let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            if !is_folder {
                let file = FileName::stored(path, shelf);
                // Another program's stays as it is.
                files.extend(file.key().is_some().then_some(file));
            } else if is_folder_of_keys(&name) {
                match open_inner(folder, &name) {
                    Ok(inner) => self.add_files(&inner, &path, shelf, files)?,
                    // One that is gone has nothing in it.
                    Err(Errno::NOENT | Errno::NOTDIR) => {}
                    Err(errno) => {
                        let what = format!("list {}/{}/{path}", self.path().display(), shelf.name());
                        return Err(failed(&what, errno));
                    }
                }
            }
        }
        Ok(())
    }

    /// Locks a file that was found. Returns nothing if another process has it locked.
    pub(crate) fn lock_found(&self, name: FileName) -> Result<Option<Locked<'_>>> {
        self.lock_file(name, IfMissing::Leave)
    }

    fn list(&self, folder: &OwnedFd, shown: &str) -> Result<Vec<(String, bool)>> {
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
