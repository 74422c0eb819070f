//! The gap between two holders in different processes. Each process notes when it came in and when it left, by the clock that all of them read.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use ylock_testkit::measure::Times;

use crate::{client, folder::Folder, raw};

/// The arguments that make a process a contender.
pub(crate) const OWN: &str = "contender";
pub(crate) const FLOCK: &str = "flock-contender";

const LEASE: Duration = Duration::from_secs(30);
const HOLD: Duration = Duration::from_millis(1);
const TIME: Duration = Duration::from_secs(5);
/// The variable that names the program of `tools/peers`: other locks, in a program of its own.
const PEERS: &str = "YLOCK_BENCH_PEERS";
/// The first part of the time, which does not count.
const WARM_UP: Duration = Duration::from_millis(1500);

pub(crate) fn run() {
    let own = std::env::current_exe().expect("this program");
    let mut all = vec![
        Lock { what: "ylock", program: own.clone(), role: OWN },
        Lock { what: "flock alone, which waits in a thread", program: own, role: FLOCK },
    ];
    match std::env::var_os(PEERS).map(PathBuf::from) {
        Some(program) => all.extend([
            Lock { what: "fd-lock, which waits in a thread", program: program.clone(), role: "fd-lock" },
            Lock { what: "SQLite, BEGIN IMMEDIATE, busy timeout", program, role: "sqlite" },
        ]),
        None => println!("without fd-lock and SQLite, which `cargo xtask bench file` compiles"),
    }
    for processes in [2, 8, 32] {
        for lock in &all {
            let _folder = Folder::new();
            report(&format!("{processes:2} processes, {}", lock.what), lock.contend(processes));
        }
    }
}

/// One turn: when its holder came in, and when it began to leave.
type Turn = (u64, u64);

/// A lock, and the program and its argument that make a process a contender for it.
struct Lock {
    what: &'static str,
    program: PathBuf,
    role: &'static str,
}

impl Lock {
    fn contend(&self, processes: usize) -> Vec<Vec<Turn>> {
        let start = |_| {
            let mut command = Command::new(&self.program);
            command.args([self.role, &TIME.as_millis().to_string()]).arg(Folder::path().join("peer"));
            command.stdout(Stdio::piped()).spawn().expect("started")
        };
        let children: Vec<Child> = (0..processes).map(start).collect();
        children.into_iter().map(turns_of).collect()
    }
}

fn turns_of(mut child: Child) -> Vec<Turn> {
    let mut said = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut said).expect("it says");
    assert!(child.wait().expect("ended").success());
    let turn = |line: &str| {
        let (came, left) = line.split_once(' ').expect("two times");
        (came.parse().expect("a time"), left.parse().expect("a time"))
    };
    said.lines().map(turn).collect()
}

fn report(what: &str, each: Vec<Vec<Turn>>) {
    let first = each.iter().flatten().map(|turn| turn.0).min().unwrap_or(0) + WARM_UP.as_nanos() as u64;
    // Until the first one stops.
    let last = each.iter().filter_map(|turns| turns.last()).map(|turn| turn.0).min().unwrap_or(0);
    let counted = |turn: &&Turn| (first..last).contains(&turn.0);
    let turns: Vec<_> = each.iter().map(|turns| turns.iter().filter(counted).count()).collect();
    let of_one = |(process, turns): (usize, &Vec<Turn>)| -> Vec<(Turn, usize)> {
        turns.iter().filter(counted).map(|turn| (*turn, process)).collect()
    };
    let mut all: Vec<_> = each.iter().enumerate().flat_map(of_one).collect();
    all.sort_unstable();
    let overlaps = all.windows(2).filter(|pair| pair[1].0.0 < pair[0].0.1).count();
    let (most, fewest) = (turns.iter().max().unwrap_or(&0), turns.iter().min().unwrap_or(&0));
    let (between_all, _) = gaps(&all, |_, _| true);
    println!(
        "{what:52} gap {between_all}  {:6} turns  most/fewest {most}/{fewest}  {overlaps} overlaps",
        all.len()
    );
    // Whoever takes a lock again at once, before those that wait, hands nothing over.
    let (between, handed_over) = gaps(&all, |one, next| one != next);
    println!("{:52} gap {between}  {handed_over:6} of them", "   of turns that follow another process's");
}

/// Returns the gaps between turns of these processes, as text, and how many there are.
fn gaps(all: &[(Turn, usize)], which: impl Fn(usize, usize) -> bool) -> (String, usize) {
    let mut gaps = Times::default();
    for pair in all.windows(2).filter(|pair| which(pair[0].1, pair[1].1)) {
        gaps.push(Duration::from_nanos(pair[1].0.0.saturating_sub(pair[0].0.1)));
    }
    if gaps.is_empty() {
        return ("none".to_owned(), 0);
    }
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let (middle, most) = (us(gaps.quantile(0.5)), us(gaps.quantile(0.99)));
    (format!("p50 {middle:7.1} µs  p99 {most:8.1} µs"), gaps.len())
}

/// The clock that all processes read.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn told(time: &str) -> Duration {
    Duration::from_millis(time.parse().expect("milliseconds"))
}

fn say(turns: Vec<Turn>) {
    turns.into_iter().for_each(|(came, left)| println!("{came} {left}"));
}

/// The work of a contender.
pub(crate) async fn take_turns(time: &str) {
    let ylock = client(LEASE).await.ylock;
    let locks = ylock.locks("group");
    let (mut turns, end) = (Vec::new(), Instant::now() + told(time));
    while Instant::now() < end {
        let guard = locks.write("hot").await.expect("granted");
        let came = now();
        tokio::time::sleep(HOLD).await;
        turns.push((came, now()));
        assert!(guard.unlock().await.expect("released").is_released());
    }
    say(turns);
    ylock.close().await;
}

/// The work of a contender that waits in `flock`.
pub(crate) fn take_turns_by_flock(time: &str) {
    let path: PathBuf = Folder::path().join("hot");
    let file: File = raw::open(&path);
    let (mut turns, end) = (Vec::new(), Instant::now() + told(time));
    while Instant::now() < end {
        raw::lock(&file);
        let came = now();
        std::thread::sleep(HOLD);
        turns.push((came, now()));
        raw::unlock(&file);
    }
    say(turns);
}
