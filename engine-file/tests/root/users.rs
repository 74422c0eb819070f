//! Processes of several users: those of a group share a folder, others are refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::fs::Mode;
use ylock_core::{Error, Options, Ylock};
use ylock_engine_file::options::Access;
use ylock_engine_file::{FileEngine, FileOptions};
use ylock_testkit::ChildProcess;

use super::folder::Folder;
use super::{SOON, is_root, skip, within};

/// Numbers that no user of the machine has.
const ALICE: u32 = 61_001;
const BOB: u32 = 61_002;
const STRANGER: u32 = 61_003;
const GROUP: u32 = 62_001;
const OTHERS: u32 = 62_002;
/// So long that none waits for its end, nor looks by itself: a process that gets in was told by another user's.
const LEASE: Duration = Duration::from_secs(3600);

/// A folder of the group, and a copy of this program that all users may run.
struct Shared {
    folder: Folder,
    program: PathBuf,
}

impl Shared {
    fn new() -> Self {
        let folder = Folder::new();
        fs::create_dir(folder.path()).unwrap();
        std::os::unix::fs::chown(folder.path(), Some(0), Some(GROUP)).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o2770)).unwrap();
        // Not in memory, from where many systems run nothing.
        let test = folder.beside("").file_name().unwrap().to_owned();
        let program = std::env::temp_dir().join(test).with_extension("program");
        // Written by another process: a child that another test starts meanwhile would inherit the file that this one has open, and a
        // program that is open for writing is not started ("Text file busy").
        let mut install = Command::new("install");
        install.arg("--mode=0755").arg(std::env::current_exe().unwrap()).arg(&program);
        assert!(install.status().unwrap().success(), "a copy of this program");
        Self { folder, program }
    }

    /// Starts the test once more as this user, who has this part in it.
    fn start(&self, test: &str, part: &str, (user, group): (u32, u32)) -> ChildProcess {
        let mut command = Command::new(&self.program);
        // The other groups of root go with this.
        command.uid(user).gid(group).current_dir("/");
        ChildProcess::start_by(command, test, &format!("{part}\n{}", self.folder.path().display()))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.program);
    }
}

/// The part of this process in the test, and the folder.
fn told() -> Option<(String, PathBuf)> {
    let told = ChildProcess::told()?;
    // What this process makes is for its user alone, if nothing is done about it.
    rustix::process::umask(Mode::from_raw_mode(0o077));
    let (part, folder) = told.split_once('\n').unwrap();
    Some((part.to_owned(), folder.into()))
}

async fn connect(folder: &Path, access: Access) -> Result<Ylock, Error> {
    let engine = FileEngine::connect(&FileOptions::new(folder).with_access(access)).await?;
    Ok(Ylock::new(engine).with_options(Options::default().with_lease(LEASE)))
}

/// Gets in, and says so.
async fn enter(ylock: &Ylock) -> ylock_core::Guard {
    let guard = within("it gets in", ylock.locks("users").write("lock")).await.unwrap();
    ChildProcess::say(&format!("holds {}", guard.token().unwrap()));
    guard
}

async fn until_one_waits(ylock: &Ylock) {
    let waits = async || ylock.inspect("users", "lock").await.unwrap().queue.len() == 1;
    ylock_testkit::eventually(SOON, "another one waits", waits).await;
}

/// One user's process leaves when the other's waits, and comes back when that one is killed.
async fn take_turns(part: &str, folder: &Path) {
    let ylock = connect(folder, Access::Group).await.unwrap();
    let guard = enter(&ylock).await;
    until_one_waits(&ylock).await;
    if part == "is killed" {
        ChildProcess::say("is ready");
        return std::future::pending().await;
    }
    drop(guard);
    // Behind the other one, which is killed when this one waits.
    let guard = enter(&ylock).await;
    // Clears away what the other user's process has left.
    let another = connect(folder, Access::Group).await.unwrap();
    let pipes = fs::read_dir(folder.join("clients")).unwrap().count();
    drop(guard);
    another.close().await;
    ylock.close().await;
    ChildProcess::say(&format!("pipes {pipes}"));
}

#[tokio::test]
async fn two_users_of_a_group_take_turns_and_learn_of_each_others_end() {
    const TEST: &str = "users::two_users_of_a_group_take_turns_and_learn_of_each_others_end";
    if let Some((part, folder)) = told() {
        return take_turns(&part, &folder).await;
    }
    if !is_root() {
        return skip(TEST, "it needs root, for processes of other users");
    }
    let shared = Shared::new();
    for (first, second) in [(ALICE, BOB), (BOB, ALICE)] {
        let mut leaves = shared.start(TEST, "leaves", (first, GROUP));
        let mut tokens = vec![leaves.says_token("holds").await];
        let mut killed = shared.start(TEST, "is killed", (second, GROUP));
        tokens.push(killed.says_token("holds").await);
        killed.says("is ready").await;
        drop(killed);
        tokens.push(leaves.says_token("holds").await);
        assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
        assert_eq!(leaves.says("pipes").await, "2", "of two clients that live");
        assert!(shared.folder.locks().is_empty() && shared.folder.clients().is_empty());
    }
}

/// Says why this process is refused.
async fn say_why(part: &str, folder: &Path) {
    let access = if part == "group" { Access::Group } else { Access::Owner };
    let error = connect(folder, access).await.expect_err("refused");
    ChildProcess::say(&format!("{:?} {error}", error.kind()));
}

#[tokio::test]
async fn a_stranger_is_refused_and_told_why() {
    const TEST: &str = "users::a_stranger_is_refused_and_told_why";
    if let Some((part, folder)) = told() {
        return say_why(&part, &folder).await;
    }
    if !is_root() {
        return skip(TEST, "it needs root, for processes of other users");
    }
    let shared = Shared::new();
    for (part, user, why) in [
        ("group", (STRANGER, OTHERS), "Permission denied"),
        ("owner", (STRANGER, OTHERS), "Permission denied"),
        // One of the group that does not say that the group shares the locks.
        ("owner", (ALICE, GROUP), "say mode=0770"),
    ] {
        let said = shared.start(TEST, part, user).says("Config").await;
        let folder = shared.folder.path().display().to_string();
        assert!(said.contains(why) && said.contains(&folder), "{part} {user:?}: {said}");
    }
    // A folder of one user, whom the others can see.
    fs::set_permissions(shared.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let said = shared.start(TEST, "owner", (STRANGER, OTHERS)).says("Config").await;
    assert!(said.contains(&format!("runs as user {STRANGER}")), "{said}");
}
