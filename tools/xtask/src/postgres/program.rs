//! The programs of PostgreSQL, and the user that they run as.

use std::{
    env, fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::tools;

/// The oldest version that the engine works with.
const OLDEST: u32 = 14;

/// The user that the package of Debian makes. The programs refuse to run as root.
const USER: &str = "postgres";

/// Finds or installs the programs, and returns the folder that they are in.
pub(super) fn folder() -> Result<PathBuf> {
    if let Some(found) = find() {
        return Ok(found);
    }
    let found = tools::find_or_install(find, || vec!["postgresql"])?;
    // The package also starts a service, which the user did not ask for. The command fails if no service runs.
    let _ = Command::new("invoke-rc.d").args(["postgresql", "stop"]).output();
    Ok(found)
}

/// Returns the newest version that Debian's package has installed, or that is among the user's programs.
fn find() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let installed = versions.filter_map(|entry| {
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        let folder = entry.path().join("bin");
        (version >= OLDEST && is_complete(&folder)).then_some((version, folder))
    });
    let newest = installed.max_by_key(|(version, _)| *version).map(|(_, folder)| folder);
    let own = || env::split_paths(&env::var_os("PATH")?).find(|folder| is_complete(folder));
    newest.or_else(own)
}

/// Finds or installs the pooler that some tests put before the server.
pub(super) fn pooler() -> Result<PathBuf> {
    if let Some(found) = find_pooler() {
        return Ok(found);
    }
    let found = tools::find_or_install(find_pooler, || vec!["pgbouncer"])?;
    let _ = Command::new("invoke-rc.d").args(["pgbouncer", "stop"]).output();
    Ok(found)
}

fn find_pooler() -> Option<PathBuf> {
    let folders = env::split_paths(&env::var_os("PATH")?).collect::<Vec<_>>();
    // Where Debian's package has it, also if this user does not look there.
    let folders = folders.into_iter().chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join("pgbouncer")).find(|program| program.is_file())
}

fn is_complete(folder: &Path) -> bool {
    ["initdb", "postgres", "pg_isready"].iter().all(|program| folder.join(program).is_file())
}

/// The user and group that a server runs as, where this process may not be the one.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunsAs {
    uid: u32,
    gid: u32,
}

impl RunsAs {
    /// Returns the user of the package, if this is root; otherwise nothing is changed.
    pub(super) fn find() -> Result<Option<Self>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let users = fs::read_to_string("/etc/passwd")?;
        let found = read(&users)
            .with_context(|| format!("there is no user {USER}, as which the server could run"))?;
        Ok(Some(found))
    }

    pub(super) fn apply(self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid).current_dir("/");
    }

    pub(super) fn give(self, folder: &Path) -> Result<()> {
        std::os::unix::fs::chown(folder, Some(self.uid), Some(self.gid))
            .with_context(|| format!("cannot give {} to {USER}", folder.display()))
    }
}

fn read(users: &str) -> Option<RunsAs> {
    let line = users.lines().find_map(|line| line.strip_prefix(USER)?.strip_prefix(':'))?;
    let mut fields = line.split(':').skip(1);
    Some(RunsAs { uid: fields.next()?.parse().ok()?, gid: fields.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_user_of_the_package() {
        let users = "root:x:0:0::/root:/bin/sh\npostgres2:x:5:6::/:/bin/sh\npostgres:x:101:104:PostgreSQL:/var:/bin/bash\n";
        let found = read(users).unwrap();
        assert_eq!((found.uid, found.gid), (101, 104));
        assert!(read("root:x:0:0::/root:/bin/sh\n").is_none());
    }
}
