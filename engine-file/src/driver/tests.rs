//! What a folder says of itself, when it counts as removed, and what a child process has of it.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use ylock_core::Key;

use super::*;
use crate::client_id::ClientId;
use crate::options::{Access, FileOptions};

/// A folder that is there for as long as the test.
struct OfTest(PathBuf);

impl OfTest {
    /// Names a new one, in memory where the system has such a file system.
    fn new(name: &str) -> Self {
        let memory = Path::new("/dev/shm");
        let all = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let path = all.join(format!("ylock-driver-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn path(&self) -> PathBuf {
        self.0.join("locks of a test")
    }

    fn open(&self) -> Folder {
        self.open_for(Access::Owner)
    }

    fn open_for(&self, access: Access) -> Folder {
        Folder::open(&FileOptions::new(self.path()).with_access(access), 0, 0).unwrap().expect("not cleared")
    }
}

impl Drop for OfTest {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn client(number: u64) -> ClientId {
    number.to_string().parse().unwrap()
}

fn key() -> Key {
    Key::new("users", "alice").unwrap()
}

fn fact(folder: &Folder, name: &str) -> String {
    let facts = folder.facts();
    facts.into_iter().find(|(fact, _)| *fact == name).expect(name).1
}

#[test]
fn a_folder_says_what_it_is_and_who_uses_it() {
    let test = OfTest::new("facts");
    let folder = test.open();
    assert_eq!(fact(&folder, "folder"), test.path().display().to_string());
    if test.path().starts_with("/dev/shm") {
        assert_eq!(
            fact(&folder, "file system"),
            "tmpfs, in memory: empty when the machine was started again"
        );
    }
    assert_eq!(fact(&folder, "shared by"), "its owner (mode=0700)");
    let [_first, _second, dead] = [1, 2, 3].map(|number| folder.make_pipe(client(number)).unwrap());
    // Its pipe stays.
    drop(dead);
    assert_eq!(fact(&folder, "clients now"), "2");

    let test = OfTest::new("facts-of-a-group");
    assert_eq!(fact(&test.open_for(Access::Group), "shared by"), "its group (mode=0770)");
}

/// Other clients make it anew: what is looked for in the old one is elsewhere.
#[test]
fn a_folder_without_its_name_or_without_its_locks_is_gone() {
    let is_gone = |folder: &Folder| {
        let error = folder.check_is_there().err().map(|error| error.to_string());
        error.is_some_and(|error| error.contains("was removed while it was in use"))
    };
    let test = OfTest::new("removed");
    let folder = test.open();
    assert!(!is_gone(&folder));
    fs::remove_dir_all(test.path()).unwrap();
    assert!(is_gone(&folder));

    let folder = test.open();
    fs::remove_dir_all(test.path().join("locks")).unwrap();
    assert!(is_gone(&folder), "without its locks");

    let test = OfTest::new("moved");
    let folder = test.open();
    fs::rename(test.path().join("locks"), test.0.join("locks")).unwrap();
    fs::remove_dir_all(test.path()).unwrap();
    assert!(is_gone(&folder), "though its locks are there");
}

/// A child that had the pipe would be taken for its client, and one that had a file locked would stop the lock, for as long as it runs.
#[tokio::test]
async fn a_program_that_the_process_starts_inherits_nothing() {
    let test = OfTest::new("inherited");
    let folder = test.open();
    let pipe = folder.make_pipe(client(1)).unwrap();
    let (_reader, _watch) = (pipe.reader().unwrap(), folder.watch(client(1)).unwrap());
    let _locked = folder.lock(&key(), IfMissing::Create).unwrap().expect("not locked");
    let mut inherited = Vec::new();
    let mut found = Vec::new();
    for number in fs::read_dir("/proc/self/fd").unwrap() {
        let name = number.unwrap().file_name().into_string().unwrap();
        // One that another test has closed meanwhile is not there.
        let target = fs::read_link(format!("/proc/self/fd/{name}")).unwrap_or_default();
        let Ok(target) = target.strip_prefix(test.path()) else { continue };
        let target = target.display().to_string();
        let flags = fs::read_to_string(format!("/proc/self/fdinfo/{name}")).unwrap();
        let flags = flags.lines().find_map(|line| line.strip_prefix("flags:")).expect("flags");
        let flags = u32::from_str_radix(flags.trim(), 8).unwrap();
        if !OFlags::from_bits_retain(flags).contains(OFlags::CLOEXEC) {
            inherited.push(target.clone());
        }
        found.push(target);
    }
    found.sort_unstable();
    let pipe = format!("clients/{}", client(1));
    let all = ["", "clients", &*pipe, &*pipe, &*pipe, "layout", "locks", "locks/users=alice", "runs"];
    assert_eq!(found, all);
    assert!(inherited.is_empty(), "{inherited:?}");
}
