//! Runs test files of several crates side by side, which `cargo test` cannot: it runs one after the other.

use std::{
    io::{Write, stdout},
    panic::resume_unwind,
    process::Command,
    thread::{self, ScopedJoinHandle},
    time::Instant,
};

use anyhow::Result;

use super::{
    output::{Executable, Reader},
    plan::{CONFORMANCE, Pass},
};
use crate::{cassandra, child, interrupt};

/// Runs the conformance suites in two lanes: that of Cassandra takes as long as all others. They wait for leases nearly all of the time, but
/// all at once they would be too much for a small machine. Returns what went wrong, if anything did.
pub(super) fn run(
    pass: &Pass,
    variables: &[(&str, String)],
    limit: Instant,
    reader: &mut Reader,
) -> Result<Vec<String>> {
    let is_slow = |one: &Executable| cassandra::ENGINE.packages.contains(&one.target.package.as_str());
    let (slow, others): (Vec<_>, Vec<_>) = reader.executables_of(CONFORMANCE).into_iter().partition(is_slow);
    let ran = thread::scope(|threads| {
        let begin = |lane: Vec<Executable>| {
            let mut reader = reader.another();
            threads.spawn(move || (run_lane(&lane, pass, variables, limit, &mut reader), reader))
        };
        let lanes = [begin(slow), begin(others)];
        lanes.map(ScopedJoinHandle::join)
    });
    let mut problems = Vec::new();
    for lane in ran {
        let (found, read) = lane.unwrap_or_else(|panic| resume_unwind(panic));
        problems.extend(found);
        reader.add(read);
    }
    interrupt::check()?;
    Ok(problems)
}

/// Runs the test files of a lane one after the other. Returns what went wrong.
fn run_lane(
    lane: &[Executable],
    pass: &Pass,
    variables: &[(&str, String)],
    limit: Instant,
    reader: &mut Reader,
) -> Vec<String> {
    let mut problems = Vec::new();
    for executable in lane {
        let mut shown = WholeLines::default();
        let mut sink = |bytes: &[u8]| {
            reader.feed(bytes);
            shown.show(bytes);
        };
        // As Cargo says it: the reader learns which test file it is.
        sink(format!("     Running tests/{CONFORMANCE}.rs ({})\n", executable.path.display()).as_bytes());
        match child::run_into(&mut command(executable, pass, variables), Some(limit), sink) {
            Ok(status) if status.success() => {}
            Ok(status) => {
                problems
                    .push(format!("the {} of {} ended with {status}", pass.what, executable.target.package));
            }
            Err(error) => problems.push(format!("{error:#}")),
        }
    }
    problems
}

fn command(executable: &Executable, pass: &Pass, variables: &[(&str, String)]) -> Command {
    let mut command = Command::new(&executable.path);
    // As Cargo runs tests.
    command.current_dir(&executable.folder).env("CARGO_MANIFEST_DIR", &executable.folder);
    command.args(&pass.libtest).envs(variables.iter().map(|(name, value)| (name, value)));
    command
}

/// Output that is shown line by line, so that lanes do not write into each other's lines.
#[derive(Default)]
struct WholeLines {
    /// The beginning of a line that has not ended yet.
    kept: Vec<u8>,
}

impl WholeLines {
    fn show(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
        let end = self.kept.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        // The reader of our output may be gone, which is no reason to stop.
        let _ = stdout().write_all(&self.kept[..end]).and_then(|()| stdout().flush());
        self.kept.drain(..end);
    }
}
