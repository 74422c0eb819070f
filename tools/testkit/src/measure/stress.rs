//! Eight processes that take locks from each other, one of them killed every moment: no two are inside at the same time, and no
//! increment is lost.
//!
//! The locks protect files, so that nothing of it depends on the store.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ylock_core::{Owner, Ylock};

/// The lease of the workers.
pub const LEASE: Duration = Duration::from_secs(2);

const WORKERS: usize = 8;
const NAMES: u64 = 3;
const BETWEEN_KILLS: Duration = Duration::from_millis(700);

/// Runs this program again as eight workers, with `role`, a folder and a name as arguments, for the minutes that
/// `YLOCK_STRESS_MINUTES` says, or five. Returns the group that they used.
///
/// # Panics
/// If anything went wrong.
pub async fn run(role: &str) -> String {
    let minutes = std::env::var("YLOCK_STRESS_MINUTES").ok().and_then(|minutes| minutes.parse().ok());
    let time = Duration::from_secs_f64(60.0 * minutes.unwrap_or(5.0));
    let folder = std::env::temp_dir().join(super::group());
    fs::create_dir_all(&folder).expect("a folder");
    let mut workers: Vec<_> = (0..WORKERS).map(|_| Worker::start(role, &folder)).collect();
    let (mut killed, mut next) = (Vec::new(), 0);
    let start = Instant::now();
    while start.elapsed() < time {
        tokio::time::sleep(BETWEEN_KILLS).await;
        next = (next + 3) % WORKERS;
        let victim = std::mem::replace(&mut workers[next], Worker::start(role, &folder));
        killed.push(victim.kill());
    }
    File::create(folder.join("stop")).expect("a mark");
    let ended = workers.into_iter().map(Worker::wait).filter(|ended| *ended).count();
    println!("{WORKERS} processes for {time:?}: {} killed, {ended} ended in peace", killed.len());
    report(&folder, &killed);
    assert_eq!(ended, WORKERS, "a worker failed");
    let group = group_of(&folder);
    fs::remove_dir_all(&folder).expect("removed");
    tokio::time::sleep(LEASE * 2).await;
    group
}

fn report(folder: &Path, killed: &[String]) {
    let (mut value, mut acknowledged) = (0, 0);
    for name in 0..NAMES {
        value += number(&folder.join(format!("value-{name}")));
        acknowledged += fs::read(folder.join(format!("acknowledged-{name}"))).unwrap_or_default().len();
    }
    let met = fs::read_to_string(folder.join("met")).unwrap_or_default();
    // A worker that was killed inside could not take its mark away.
    let overlaps = met.lines().filter(|name| !killed.iter().any(|dead| dead == name)).count();
    println!("{value} increments, {acknowledged} acknowledged, {overlaps} overlaps");
    assert!(overlaps == 0, "two workers were inside at the same time");
    assert!(acknowledged <= value && value <= acknowledged + killed.len(), "an increment was lost");
}

/// Does the work of a worker, with the arguments that it was started with: takes locks and increments until it is told to stop.
///
/// # Panics
/// If the files cannot be written.
pub async fn work(ylock: Ylock, folder: &str, name: &str) {
    let folder = PathBuf::from(folder);
    let locks = ylock.locks(group_of(&folder));
    let mut round = 0u64;
    while !folder.join("stop").exists() {
        round += 1;
        let lock = (round * 7 + u64::from(name.as_bytes()[0])) % NAMES;
        let Ok(guard) = locks.write(lock.to_string()).await else { continue };
        increment(&folder, name, lock, || guard.is_valid()).await;
        drop(guard.unlock().await);
    }
    ylock.close().await;
}

async fn increment(folder: &Path, name: &str, lock: u64, is_valid: impl Fn() -> bool) {
    let (inside, value) = (folder.join(format!("inside-{lock}")), folder.join(format!("value-{lock}")));
    mark(folder, &inside, name);
    let read = number(&value);
    tokio::time::sleep(Duration::from_millis(1)).await;
    if is_valid() {
        let next = folder.join(format!("next-{lock}-{name}"));
        fs::write(&next, (read + 1).to_string()).expect("written");
        // A worker that is killed has written all of it or nothing.
        fs::rename(&next, &value).expect("renamed");
        append(&folder.join(format!("acknowledged-{lock}")), "+");
    }
    fs::remove_file(&inside).expect("unmarked");
}

/// Marks that this worker is inside, and notes a worker that it meets there. A mark is there with its name or not at all, also if its
/// writer is killed.
fn mark(folder: &Path, inside: &Path, name: &str) {
    let own = folder.join(format!("mark-{name}"));
    fs::write(&own, name).expect("written");
    match fs::hard_link(&own, inside) {
        Ok(()) => fs::remove_file(&own).expect("removed"),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let met = fs::read_to_string(inside).unwrap_or_default();
            append(&folder.join("met"), &format!("{met}\n"));
            fs::rename(&own, inside).expect("marked");
        }
        Err(error) => panic!("{error}"),
    }
}

fn append(file: &Path, text: &str) {
    let mut file = File::options().create(true).append(true).open(file).expect("opened");
    file.write_all(text.as_bytes()).expect("written");
}

fn number(file: &Path) -> usize {
    fs::read_to_string(file).map_or(0, |text| text.parse().expect("a number"))
}

fn group_of(folder: &Path) -> String {
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

struct Worker {
    name: String,
    child: Child,
}

impl Worker {
    fn start(role: &str, folder: &Path) -> Self {
        let name = Owner::new().to_string();
        let executable = std::env::current_exe().expect("this program");
        let mut command = Command::new(executable);
        let child = command.arg(role).arg(folder).arg(&name).stdout(Stdio::null()).spawn().expect("started");
        Self { name, child }
    }

    fn kill(mut self) -> String {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
        self.name
    }

    fn wait(mut self) -> bool {
        self.child.wait().is_ok_and(|status| status.success())
    }
}
