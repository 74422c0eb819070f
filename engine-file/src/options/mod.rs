//! The options of the engine: which folder, and who may use it.

use std::path::{Path, PathBuf};

use ylock_core::url::EngineUrl;
use ylock_core::{Error, ErrorKind, Options, Result};

/// The users whose processes share a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// One user.
    #[default]
    Owner,
    /// All users of the group that the folder belongs to.
    Group,
}

ylock_core::option_words!(Access: Owner = "0700", Group = "0770");

ylock_core::define_options! {
    /// Options of the engine: which folder the processes share. Nothing is checked before connecting.
    #[derive(Clone, Debug)]
    pub struct FileOptions {
        folder: PathBuf,
    }

    /// Which users share the folder: its owner (`0700`), or the group that it belongs to (`0770`).
    mode: Access = "0700";
}

impl FileOptions {
    /// Returns options with every default, for this folder. It is made if it is missing; the folder that it is in has to be there.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self::with_defaults(folder.into())
    }

    /// Sets which users share the folder, the option `mode`; one user by default.
    #[must_use]
    pub fn with_access(mut self, access: Access) -> Self {
        self.mode = access;
        self
    }

    /// Returns which users share the folder; see [`with_access`](Self::with_access).
    pub fn access(&self) -> Access {
        self.mode
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads options from `file:///folder?option=value`.
    ///
    /// `ylock_options` are the options of every engine from the same URL.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config) that names what is missing, unknown or wrong.
    pub fn from_url(url: &EngineUrl, ylock_options: &Options) -> Result<Self> {
        Self::read(url, ylock_options).map_err(|error| error.with_engine(crate::NAME))
    }

    fn read(url: &EngineUrl, ylock_options: &Options) -> Result<Self> {
        if url.user.is_some() {
            return Err(config("file:// has no user: the permissions of the folder say who may use it"));
        }
        if let Some(host) = url.hosts.first() {
            let message = format!(
                "file:// is for this host, and its path begins with a slash: file:///{} instead of file://{}",
                host.name, host.name
            );
            return Err(config(message));
        }
        if url.path.is_empty() {
            return Err(config("file:// names a folder, such as file:///run/ylock"));
        }
        let mut options = Self::new(format!("/{}", url.path));
        url.set_options(&Self::definitions(), |name, value| options.set(name, value))?;
        crate::check(ylock_options)?;
        Ok(options)
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn is_shared(&self) -> bool {
        self.mode == Access::Group
    }
}

fn config(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(url: &str) -> Result<FileOptions> {
        FileOptions::from_url(&EngineUrl::parse(url).unwrap(), &Options::default())
    }

    #[test]
    fn a_url_names_the_folder_and_who_shares_it() {
        let read = options("file:///run/ylock").unwrap();
        assert_eq!((read.folder(), read.access()), (Path::new("/run/ylock"), Access::Owner));
        let read = options("file:///srv/a%20b/?mode=0770").unwrap();
        assert_eq!((read.folder(), read.access()), (Path::new("/srv/a b/"), Access::Group));
    }

    #[test]
    fn what_is_wrong_with_a_url_is_named() {
        for (url, part) in [
            ("file://", "file:///run/ylock"),
            ("file://run/ylock", "file:///run"),
            ("file://me:secret@/run/ylock", "no user"),
            ("file:///run/ylock?mode=0777", "must be 0700 or 0770"),
            ("file:///run/ylock?mod=0770", "mode"),
        ] {
            let error = options(url).unwrap_err();
            assert_eq!((error.kind(), error.engine()), (ErrorKind::Config, Some("file")), "{url}");
            assert!(error.to_string().contains(part), "{url}: {error}");
        }
    }
}
