//! Folders that are refused, files that are damaged, and what is left of an earlier run of the machine.
#![cfg(target_os = "linux")]

mod folder;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use folder::Folder;
use ylock_core::{Error, ErrorKind, Ylock};
use ylock_engine_file::options::Access;
use ylock_engine_file::{FileEngine, FileOptions};

async fn refusal(options: &FileOptions) -> Error {
    let error = FileEngine::connect(options).await.expect_err("refused");
    assert_eq!((error.kind(), error.engine()), (ErrorKind::Config, Some("file")), "{error}");
    error
}

async fn connect(folder: &Folder) -> Ylock {
    Ylock::new(folder.client().await)
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn layout(folder: &Folder) -> String {
    fs::read_to_string(folder.path().join("layout")).unwrap()
}

fn write_layout(folder: &Folder, text: &str) {
    fs::write(folder.path().join("layout"), text).unwrap();
}

#[tokio::test]
async fn a_folder_that_others_may_write_to_is_refused() {
    let folder = Folder::new();
    drop(folder.client().await);
    let (owner, group) =
        (FileOptions::new(folder.path()), FileOptions::new(folder.path()).with_access(Access::Group));
    for (mode, options, part) in [
        (0o777, &owner, "writable for all users"),
        (0o1777, &group, "writable for all users"),
        (0o770, &owner, "say mode=0770"),
        (0o700, &group, "is not writable for its group"),
        (0o770, &group, "does not belong to its group"),
    ] {
        allow(folder.path(), mode);
        let error = refusal(options).await;
        assert!(error.to_string().contains(part), "{mode:o}: {error}");
    }
    allow(folder.path(), 0o700);
    drop(folder.client().await);
}

#[tokio::test]
async fn a_folder_of_a_group_is_made_for_the_group_whatever_the_mask_is() {
    let folder = Folder::new();
    let options = FileOptions::new(folder.path()).with_access(Access::Group);
    let ylock = Ylock::new(FileEngine::connect(&options).await.unwrap());
    let long = "long".repeat(100);
    let _guards = (
        ylock.locks("users").write("alice").await.unwrap(),
        ylock.locks("users").write(&*long).await.unwrap(),
    );
    let mode = |path: &str| fs::metadata(folder.path().join(path)).unwrap().permissions().mode() & 0o7777;
    assert_eq!(["", "locks", "clients"].map(mode), [0o2770; 3]);
    let folders: Vec<_> = folder.locks().into_iter().filter(|name| name.ends_with('+')).collect();
    assert_eq!(folders.iter().map(|name| mode(&format!("locks/{name}"))).collect::<Vec<_>>(), [0o2770]);
    assert_eq!(["layout", "locks/users=alice"].map(mode), [0o1660; 2]);
    assert_eq!(mode(&format!("clients/{}", folder.clients()[0])), 0o1660);
}

#[tokio::test]
async fn a_folder_that_is_not_of_this_host_or_cannot_be_made_is_refused() {
    let error = refusal(&FileOptions::new("/proc")).await;
    assert!(error.to_string().contains("file system of /proc"), "{error}");
    let folder = Folder::new();
    let error =
        FileEngine::connect(&FileOptions::new(folder.path().join("not there/inner"))).await.unwrap_err();
    assert!(error.to_string().contains("make the folder"), "{error}");
}

#[tokio::test]
async fn a_folder_that_is_in_use_elsewhere_is_refused() {
    let folder = Folder::new();
    let ylock = connect(&folder).await;
    let guard = ylock.locks("users").write("alice").await.unwrap();
    let written = layout(&folder);
    let options = FileOptions::new(folder.path());
    for (name, instead, part) in [
        ("boot ", "boot x", "in use on another machine"),
        ("time ", "time x", "another time namespace"),
        (
            "ylock 2",
            "ylock 1",
            "is kept in version 1 by clients of another ylock, and this client works with version 2",
        ),
    ] {
        let changed = written.replace(name, instead);
        write_layout(&folder, &changed);
        let error = refusal(&options).await;
        assert!(error.to_string().contains(part), "{name}: {error}");
        // Nothing was cleared.
        assert!(layout(&folder) == changed && !folder.locks().is_empty() && guard.is_valid());
    }
    write_layout(&folder, &written);
    assert!(connect(&folder).await.locks("users").write("alice").now().await.unwrap().is_none());
}

#[tokio::test]
async fn what_is_left_of_an_earlier_run_is_void_but_its_tokens() {
    let folder = Folder::new();
    let ylock = connect(&folder).await;
    let guard = ylock.locks("users").write("alice").await.unwrap();
    let token = guard.token().unwrap();
    let (file, left) = (folder.path().join("locks/users=alice"), folder.path().join("left"));
    fs::copy(&file, &left).unwrap();
    drop(guard);
    ylock.close().await;
    drop(ylock);
    // As if the wall clock had been set back by a year meanwhile: the clock of the tokens begins there, if nothing else is known.
    let earlier = layout(&folder).replace("boot ", "boot x");
    write_layout(&folder, &earlier);
    let ahead = fs::read(&left).unwrap();
    let in_a_year = token.get() / 1024 + 365 * 24 * 3_600_000_000;
    fs::write(&file, with_token(&ahead, in_a_year)).unwrap();
    let ylock = connect(&folder).await;
    assert!(folder.locks().is_empty());
    let guard =
        ylock.locks("users").write("alice").now().await.unwrap().expect("its holder is of another run");
    assert!(guard.token().unwrap().get() / 1024 > in_a_year);
    assert!(layout(&folder) != earlier);
}

/// Returns a lock's file with another last token.
fn with_token(file: &[u8], token: i64) -> Vec<u8> {
    let text = String::from_utf8(file.to_vec()).unwrap();
    let begin = text.find("ylock 1 ").unwrap();
    let whole = &text[begin..text.len() - 44];
    let line = whole.lines().nth(1).unwrap();
    let changed = whole.replacen(line, &format!("token {token}"), 1);
    let header = format!("{:016x} {:08x} {:08x} ", 1, changed.len(), crc32fast::hash(changed.as_bytes()));
    let own = crc32fast::hash(&header.as_bytes()[..35]);
    let mut bytes = vec![0; 2048 - 44 - changed.len()];
    bytes.extend(format!("{changed}{header}{own:08x}\n").bytes());
    bytes
}

#[tokio::test]
async fn a_damaged_file_is_an_error_that_names_it_and_no_lock() {
    let folder = Folder::new();
    let ylock = connect(&folder).await;
    let users = ylock.locks("users");
    let guard = users.write("alice").await.unwrap();
    let file = folder.path().join("locks/users=alice");
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() = b'x';
    fs::write(&file, bytes).unwrap();
    let another = connect(&folder).await;
    let error = another.locks("users").write("alice").now().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unexpected);
    let error = error.to_string();
    assert!(
        error.contains("locks/users=alice is damaged") && error.contains("Who holds this lock"),
        "{error}"
    );
    // Other locks go on; and when the file is removed, so does this one.
    assert!(another.locks("users").write("bob").now().await.unwrap().is_some());
    fs::remove_file(&file).unwrap();
    assert!(another.locks("users").write("alice").now().await.unwrap().is_some());
    drop(guard);
}

/// One file that cannot be read must not keep all else that dead clients have left.
#[tokio::test]
async fn what_dead_clients_have_left_goes_beside_a_damaged_file() {
    let folder = Folder::new();
    let ylock = connect(&folder).await;
    let guard = ylock.locks("users").write("alice").await.unwrap();
    fs::write(folder.path().join("locks/users=bob"), [b'x'; 4096]).unwrap();
    drop(folder.client().await);
    assert_eq!(folder.clients().len(), 2);
    let another = connect(&folder).await;
    assert_eq!(folder.clients().len(), 2, "of the two that live");
    drop((guard, another));
}

#[tokio::test]
async fn the_file_of_another_lock_is_damage() {
    let folder = Folder::new();
    let ylock = connect(&folder).await;
    let users = ylock.locks("users");
    let _guard = users.write("alice").await.unwrap();
    fs::copy(folder.path().join("locks/users=alice"), folder.path().join("locks/users=bob")).unwrap();
    let error = users.write("bob").now().await.unwrap_err();
    assert!(error.to_string().contains("locks/users=bob is damaged"), "{error}");
}

#[tokio::test]
async fn names_of_any_characters_and_length_are_locks_of_their_own() {
    let folder = Folder::new();
    let ylock = connect(&folder).await;
    let long = "x".repeat(1024);
    let longer_by_one = format!("{}y", &long[1..]);
    let names = ["..", ".", "/etc/passwd", "a\0b", "a\nb", "ä", "A", "a", &long, &longer_by_one];
    let mut guards = Vec::new();
    for name in names {
        let guard = ylock.locks("../group").write(name).now().await.unwrap();
        guards.push(guard.unwrap_or_else(|| panic!("{name:?} is the lock of another name")));
    }
    let another = connect(&folder).await;
    for name in names {
        assert!(another.locks("../group").write(name).now().await.unwrap().is_none(), "{name:?}");
    }
    drop(guards);
    ylock.close().await;
    another.close().await;
    assert!(folder.locks().is_empty(), "{:?}", folder.locks());
}
