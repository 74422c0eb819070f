//! What a folder says of itself, when it counts as removed, and what a child process has of it.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FlockOperation, OFlags, Timestamps, flock, utimensat};
use rustix::time::Timespec;
use ylock_core::Key;
use ylock_core::engine::AcquisitionId;
use ylock_core::environment::SystemEnvironment;

use super::*;
use crate::client_id::ClientId;
use crate::message::Message;
use crate::options::{Access, FileOptions};

/// A folder that is there for as long as the test.
struct OfTest(PathBuf);

impl OfTest {
    /// Names a new one, in memory where the system has such a file system.
    fn new(name: &str) -> Self {
        let memory = Path::new("/dev/shm");
        let all = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let path = all.join(format!("ylock-driver-{name}-{}", ylock_core::Owner::new()));
        fs::create_dir(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.join("locks of a test")
    }

    fn open(&self) -> Folder {
        self.open_at(0, 0)
    }

    /// Opens it at this time of the wall clock, and this long after the machine was started.
    fn open_at(&self, wall_micros: i64, boot_micros: u64) -> Folder {
        let opened = Folder::open(&FileOptions::new(self.path()), wall_micros, boot_micros);
        opened.unwrap().expect("not busy")
    }

    fn open_for_group(&self) -> Folder {
        let options = FileOptions::new(self.path()).with_access(Access::Group);
        Folder::open(&options, 0, 0).unwrap().expect("not busy")
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
    assert_eq!(fact(&test.open_for_group(), "shared by"), "its group (mode=0770)");
}

#[test]
fn a_file_in_the_place_of_the_folder_is_named() {
    let test = OfTest::new("file");
    fs::write(test.path(), "").unwrap();
    fs::set_permissions(test.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let error = Folder::open(&FileOptions::new(test.path()), 0, 0).unwrap_err().to_string();
    assert!(error.contains("open the folder"), "{error}");
}

/// Other clients make it anew: what is looked for in the old one is elsewhere.
#[test]
fn a_folder_without_its_name_or_without_its_locks_is_gone() {
    let is_gone = |folder: &Folder| {
        let error = folder.check_is_there().err().map(|error| error.to_string());
        error.is_some_and(|error| error.contains("was removed, moved or mounted over"))
    };
    let test = OfTest::new("removed");
    let folder = test.open();
    assert!(!is_gone(&folder));
    fs::remove_dir_all(test.path()).unwrap();
    assert!(is_gone(&folder));

    let folder = test.open();
    fs::remove_dir_all(test.path().join("locks")).unwrap();
    assert!(is_gone(&folder), "without its locks");
    // Connecting again makes them anew, also while the client that has lost them lives.
    assert!(!is_gone(&test.open()) && is_gone(&folder));

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

/// A name so long that its file is in two folders is no name that another client has removed just now.
#[test]
fn a_long_name_in_a_folder_that_is_gone_is_not_looked_for_again_and_again() {
    let test = OfTest::new("long");
    let folder = test.open();
    let long = Key::new("users", "long".repeat(200)).unwrap();
    fs::remove_dir_all(test.path()).unwrap();
    let error = folder.lock(&long, IfMissing::Create).unwrap_err();
    assert!(error.to_string().contains("was removed, moved or mounted over"), "{error}");
}

#[test]
fn a_link_in_the_place_of_a_file_is_not_followed() {
    use std::os::unix::fs::symlink;
    let test = OfTest::new("links");
    let folder = test.open();
    let elsewhere = test.0.join("elsewhere");
    fs::write(&elsewhere, "").unwrap();

    symlink(&elsewhere, test.path().join("locks/users=alice")).unwrap();
    let error = folder.lock(&key(), IfMissing::Create).unwrap_err();
    assert!(error.to_string().contains("locks/users=alice"), "{error}");

    // The other client's pipe, under the name of one that has none.
    let dead = folder.make_pipe(client(1)).unwrap();
    drop(dead);
    symlink(client(1).to_string(), test.path().join("clients").join(client(2).to_string())).unwrap();
    assert!(folder.is_dead(client(1)) && !folder.is_dead(client(2)));

    drop(folder);
    fs::remove_file(test.path().join("layout")).unwrap();
    symlink(&elsewhere, test.path().join("layout")).unwrap();
    let error = Folder::open(&FileOptions::new(test.path()), 0, 0).unwrap_err();
    assert!(error.to_string().contains("/layout"), "{error}");
    assert_eq!(fs::read_to_string(elsewhere).unwrap(), "");
}

/// Whatever the wall clock did, as long as the machine was not started again: then that clock is all there is.
#[test]
fn the_clock_of_the_tokens_goes_on_from_client_to_client() {
    let test = OfTest::new("tokens");
    let folder = test.open_at(5_000, 1_000);
    assert_eq!(folder.token_clock(1_000), 5_000);
    drop(folder);
    // Set back, and set forward.
    for wall_micros in [0, 9_000_000] {
        assert_eq!(test.open_at(wall_micros, 2_000).token_clock(2_000), 6_000, "{wall_micros}");
    }
    let layout = test.path().join("layout");
    let of_another_run = fs::read_to_string(&layout).unwrap().replace("boot ", "boot x");
    fs::write(layout, of_another_run).unwrap();
    assert_eq!(test.open_at(7_000, 100).token_clock(100), 7_000);
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// A user of the group may have put it there, to have another user clear what it leads to.
#[test]
fn a_link_in_the_place_of_a_folder_is_neither_cleared_nor_opened_to_the_group() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    for name in ["locks", "clients", "runs"] {
        let test = OfTest::new("linked-folder");
        drop(test.open_for_group());
        let elsewhere = test.0.join("elsewhere");
        fs::create_dir_all(elsewhere.join("inner+")).unwrap();
        fs::write(elsewhere.join("inner+/users=alice"), "").unwrap();
        fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o700)).unwrap();
        fs::remove_dir_all(test.path().join(name)).unwrap();
        symlink(&elsewhere, test.path().join(name)).unwrap();
        let options = FileOptions::new(test.path()).with_access(Access::Group);
        let error = Folder::open(&options, 0, 0).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        assert!(elsewhere.join("inner+/users=alice").exists(), "{name}");
        assert_eq!(mode(&elsewhere), 0o700, "{name}");
    }
}

/// The file of a long name is in folders: a link in the place of any of them leads elsewhere, too.
#[test]
fn a_link_in_the_place_of_a_folder_of_a_long_name_is_not_followed() {
    use std::os::unix::fs::symlink;
    let test = OfTest::new("linked-long");
    let folder = test.open();
    let long = Key::new("users", "long".repeat(200)).unwrap();
    let locked = folder.lock(&long, IfMissing::Create).unwrap().expect("not locked");
    let outermost = test.path().join("locks").join(locked.title().split('/').next().unwrap());
    locked.remove().unwrap();
    drop(locked);
    let elsewhere = test.0.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &outermost).unwrap();
    for if_missing in [IfMissing::Create, IfMissing::Leave] {
        let error = folder.lock(&long, if_missing).unwrap_err();
        assert!(error.to_string().contains("locks/"), "{error}");
    }
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    assert_eq!(folder.files(Shelf::Locks).unwrap(), []);
}

/// A user of the group may have moved a folder into this one that has other files of this user's in it.
#[test]
fn what_this_engine_has_not_made_is_not_cleared_away() {
    let test = OfTest::new("foreign");
    drop(test.open());
    let locks = test.path().join("locks");
    fs::create_dir_all(locks.join("inner+/private")).unwrap();
    for kept in ["thesis", "inner+/thesis", "inner+/private/key"] {
        fs::write(locks.join(kept), "").unwrap();
    }
    for cleared in ["users=alice", "inner+/+users=alice"] {
        fs::write(locks.join(cleared), "").unwrap();
    }
    // As in the folder of another program, which was named by mistake.
    let clients = test.path().join("clients");
    fs::create_dir_all(clients.join("a=b")).unwrap();
    let customers = ["1001", "2024", "notes.new", "a=b/1002"].map(|name| clients.join(name));
    customers.iter().for_each(|customer| fs::write(customer, "").unwrap());
    let folder = test.open();
    assert!(customers.iter().all(|customer| customer.exists()), "{:?}", fs::read_dir(&clients));
    assert!(["thesis", "inner+/thesis", "inner+/private/key"].iter().all(|kept| locks.join(kept).exists()));
    assert!(!locks.join("users=alice").exists() && !locks.join("inner+/+users=alice").exists());
    assert_eq!(folder.files(Shelf::Locks).unwrap(), []);
}

/// A pipe without another end in the place of a file would hold up the process that opens it.
#[test]
fn a_pipe_in_the_place_of_a_file_is_an_error_at_once() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let test = OfTest::new("pipe");
    let folder = test.open();
    let file = test.path().join("locks/users=alice");
    mknodat(CWD, &file, FileType::Fifo, Mode::from_raw_mode(0o660), 0).unwrap();
    let error = folder.lock(&key(), IfMissing::Create).unwrap_err();
    assert!(error.to_string().contains("was not made by ylock"), "{error}");
}

/// A user of the group may have given it this second name.
#[test]
fn no_message_is_written_into_a_file() {
    let test = OfTest::new("told");
    let folder = test.open();
    let (pipe, file) = (folder.make_pipe(client(1)).unwrap(), test.0.join("file"));
    fs::write(&file, "what is in it").unwrap();
    fs::hard_link(&file, test.path().join("clients").join(client(2).to_string())).unwrap();
    let message = Message { waiter: AcquisitionId::new(&*SystemEnvironment::shared()), let_in: None };
    [1, 2].into_iter().for_each(|number| folder.tell(client(number), message));
    assert_eq!(fs::read_to_string(&file).unwrap(), "what is in it");
    drop(pipe);
}

/// As where another program was started whose folder has the same path, or a file system was mounted over it.
#[test]
fn a_folder_whose_path_names_another_one_is_gone() {
    let test = OfTest::new("moved-away");
    for moved in ["", "locks", "clients", "runs"] {
        let folder = test.open();
        let path = test.path().join(moved);
        assert!(folder.is_there(), "{moved}");
        fs::rename(&path, test.0.join("moved")).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(folder.is_there(), moved == "runs", "{moved}");
        assert!(folder.check_runs_are_there().is_err(), "{moved}");
        fs::remove_dir(&path).unwrap();
        fs::rename(test.0.join("moved"), &path).unwrap();
        assert!(folder.is_there(), "{moved}");
    }
}

/// A cleaner of old files, or an operator, has removed the file that shows that clients live.
#[test]
fn a_folder_is_not_cleared_beside_a_client_whose_layout_was_removed() {
    let test = OfTest::new("layout-removed");
    let folder = test.open();
    let pipe = folder.make_pipe(client(1)).unwrap();
    let locked = folder.lock(&key(), IfMissing::Create).unwrap().expect("not locked");
    locked.write("held").unwrap();
    drop(locked);
    fs::remove_file(test.path().join("layout")).unwrap();
    let again = || Folder::open(&FileOptions::new(test.path()), 0, 0).unwrap();
    assert_eq!(again().err(), Some(Busy::Replaced(1)));
    assert!(test.path().join("locks/users=alice").exists());
    drop(pipe);
    assert!(again().is_ok() && !test.path().join("locks/users=alice").exists());
}

/// Two would be inside: this one would hold locks while that one clears them away.
#[test]
fn no_client_joins_while_another_one_is_clearing_the_folder() {
    let test = OfTest::new("clearing");
    drop(test.open());
    let clears = fs::File::open(test.path().join("layout")).unwrap();
    flock(&clears, FlockOperation::LockExclusive).unwrap();
    let joined = Folder::open(&FileOptions::new(test.path()), 0, 0).unwrap();
    assert_eq!(joined.err(), Some(Busy::Clearing));
}

/// `systemd-tmpfiles` passes over files with the sticky bit, and other cleaners go by the age of a file.
#[test]
fn files_have_the_sticky_bit_and_a_client_keeps_its_own_young() {
    let test = OfTest::new("cleaner");
    let folder = test.open();
    let pipe = folder.make_pipe(client(1)).unwrap();
    drop(folder.lock(&key(), IfMissing::Create).unwrap());
    drop(folder.lock_run(&key(), IfMissing::Create).unwrap());
    let own = format!("clients/{}", client(1));
    for path in ["layout", &*own, "locks/users=alice", "runs/users=alice"] {
        // A user who may only read a file may lock it, and keep its owner from it.
        assert_eq!(mode(&test.path().join(path)), 0o1600, "{path}");
    }
    let written = |path: &str| fs::metadata(test.path().join(path)).unwrap().modified().unwrap();
    let begun = written("layout") - std::time::Duration::from_secs(1);
    let long_ago = Timestamps {
        last_access: Timespec { tv_sec: 1, tv_nsec: 0 },
        last_modification: Timespec { tv_sec: 1, tv_nsec: 0 },
    };
    let all = ["", "locks", "clients", "runs", "layout", &*own];
    for path in all {
        utimensat(CWD, test.path().join(path), &long_ago, AtFlags::empty()).unwrap();
        assert!(written(path) < begun);
    }
    folder.touch();
    pipe.touch();
    assert!(all.iter().all(|path| written(path) > begun));
    let cleaner = fs::File::open(test.path().join("runs")).unwrap();
    assert_eq!(flock(&cleaner, FlockOperation::NonBlockingLockExclusive), Err(rustix::io::Errno::WOULDBLOCK));
}

/// A user of the group has put a private file or folder of this user's in the place of what is to be opened to the group.
#[test]
fn only_what_a_client_has_made_is_opened_to_the_group() {
    use std::os::unix::fs::PermissionsExt;
    let test = OfTest::new("private");
    let folder = test.open_for_group();
    let clients = test.path().join("clients");
    fs::write(clients.join("file.new"), "secret").unwrap();
    fs::create_dir_all(clients.join("folder.new/inner")).unwrap();
    let [file, private] = ["file.new", "folder.new"].map(|name| clients.join(name));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).unwrap();
    folder.open_and_name("file.new", "file").unwrap_err();
    open::open_and_name_folder(&folder.clients, Path::new("folder.new"), Path::new("folder")).unwrap_err();
    assert_eq!((mode(&file), mode(&private) & 0o777), (0o600, 0o700));
}
