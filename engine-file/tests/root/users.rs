//! Processes of several users: those of a group share a folder, others are refused.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use ylock_core::{Error, Options, Period, Ylock};
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

/// Uses the folder, and says how that went.
async fn use_it(folder: &Path) {
    let used = async {
        let ylock = connect(folder, Access::Group).await?;
        let users = ylock.locks("users");
        drop((users.write("alice").now().await?, users.write("long".repeat(200)).now().await?));
        let hourly = Period::of(Duration::from_secs(3600));
        ylock.locks("jobs").once_per("report", hourly, |_| async {}).await?;
        ylock.close().await;
        Ok::<_, Error>(())
    };
    let said = match used.await {
        Ok(()) => "used".to_owned(),
        Err(error) => format!("refused {error}"),
    };
    ChildProcess::say(&said);
}

/// Returns the paths below a folder, each with its owner, its permissions and what is in it.
fn all_of(folder: &Path) -> Vec<String> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .flat_map(|path| {
            let is = fs::symlink_metadata(&path).unwrap();
            let inner = if is.is_dir() { all_of(&path) } else { vec![fs::read_to_string(&path).unwrap()] };
            [format!("{} {:o} {}", path.display(), is.mode(), is.uid())].into_iter().chain(inner)
        })
        .collect();
    found.sort_unstable();
    found
}

/// The place, and what puts something there.
type Attack = (&'static str, Box<dyn Fn()>);

/// What one of the group may have put in the place of what a client makes.
fn attacks(folder: &Path, private: &Path) -> Vec<Attack> {
    let put = |name: &'static str, how: fn(&Path, &Path)| {
        let (place, private) = (folder.join(name), private.to_owned());
        let attack = move || {
            let _ = fs::remove_dir_all(&place);
            let _ = fs::remove_file(&place);
            how(&private, &place);
        };
        (name, Box::new(attack) as Box<dyn Fn()>)
    };
    let link: fn(&Path, &Path) = |private, place| symlink(private, place).unwrap();
    let link_of_file: fn(&Path, &Path) = |private, place| symlink(private.join("key"), place).unwrap();
    // Where the system lets users do that.
    let hard_link: fn(&Path, &Path) = |private, place| fs::hard_link(private.join("key"), place).unwrap();
    let moved: fn(&Path, &Path) = |private, place| {
        fs::create_dir(place).unwrap();
        fs::hard_link(private.join("key"), place.join("key")).unwrap();
        fs::hard_link(private.join("key"), place.join("+users=alice")).unwrap();
    };
    let pipe: fn(&Path, &Path) =
        |_, place| mknodat(CWD, place, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    vec![
        put("locks", link),
        put("runs", link),
        put("clients", link),
        put("layout", link_of_file),
        put("layout", hard_link),
        put("layout", pipe),
        put("locks/users=alice", link_of_file),
        put("locks/users=alice", hard_link),
        put("locks/users=alice", pipe),
        put("runs/jobs=report", link_of_file),
        put("runs/jobs=report", hard_link),
        put("runs/jobs=report", pipe),
        put("locks/inner+", link),
        put("locks/inner+", moved),
        put("clients/0000000000000001", hard_link),
    ]
}

/// A user of the group may take locks away, and make them fail. What else another user has is out of reach.
#[tokio::test]
async fn a_hostile_user_of_the_group_reaches_nothing_but_locks() {
    const TEST: &str = "users::a_hostile_user_of_the_group_reaches_nothing_but_locks";
    if let Some((_, folder)) = told() {
        return use_it(&folder).await;
    }
    if !is_root() {
        return skip(TEST, "it needs root, for processes of other users");
    }
    let shared = Shared::new();
    let private = shared.folder.beside("private");
    fs::create_dir_all(private.join("inner+")).unwrap();
    // Of a form that looks like a file that nothing was written to yet.
    for file in ["key", "inner+/users=alice", "users=alice"] {
        fs::write(private.join(file), "secret").unwrap();
    }
    for path in ["", "key", "inner+", "inner+/users=alice", "users=alice"] {
        let (path, mode) =
            (private.join(path), if path.contains('=') || path == "key" { 0o600 } else { 0o700 });
        std::os::unix::fs::chown(&path, Some(ALICE), Some(OTHERS)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let before = all_of(&private);
    // Alice of both groups: her own, and that of the folder.
    let uses = || shared.start(TEST, "", (ALICE, GROUP));
    for (place, attack) in attacks(shared.folder.path(), &private) {
        uses().says("used").await;
        attack();
        let said = uses().says_until_it_ends().await;
        assert!(
            said.iter().any(|said| said.starts_with("used") || said.starts_with("refused")),
            "{place}: {said:?}"
        );
        assert_eq!(all_of(&private), before, "{place}: {said:?}");
        for name in ["locks", "runs", "clients", "layout"] {
            let path = shared.folder.path().join(name);
            let _ = fs::remove_dir_all(&path);
            let _ = fs::remove_file(&path);
        }
    }
}
