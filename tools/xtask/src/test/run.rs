//! Calls `cargo test`.

use std::{
    io::{Write, stdout},
    panic::resume_unwind,
    path::Path,
    process::ExitStatus,
    thread::{self, ScopedJoinHandle},
    time::Instant,
};

use anyhow::{Result, bail};
use serde_json::Value;

use super::{
    output::{Executables, Reader, Target},
    plan::{Pass, Plan},
};
use crate::{cargo, child, interrupt};

/// Builds everything, and learns which executable belongs to which crate: `cargo test` itself prints only file names.
pub(crate) fn build(plan: &Plan, limit: Instant) -> Result<Executables> {
    let mut command = cargo::cargo();
    command.args(["test", "--no-run", "--message-format=json-render-diagnostics"]).args(plan.build());
    let mut messages = Vec::new();
    let status = child::stdout_into(&mut command, Some(limit), |bytes| messages.extend_from_slice(bytes))?;
    if !status.success() {
        bail!("the tests do not compile");
    }
    let messages = messages.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    Ok(messages.filter_map(|message: Value| executable(plan, &message)).collect())
}

fn executable(plan: &Plan, message: &Value) -> Option<(String, Target)> {
    let file = Path::new(message["executable"].as_str()?).file_name()?.to_string_lossy().into_owned();
    let package = plan.package_named(message["package_id"].as_str()?)?;
    let is_test_file = message["target"]["kind"].as_array()?.iter().any(|kind| kind == "test");
    let name = if is_test_file { message["target"]["name"].as_str()? } else { "unit tests" };
    Some((file, Target { package: package.to_owned(), name: name.to_owned() }))
}

/// Runs a pass, shows its output as it comes and reads along. Returns what went wrong, if anything did.
pub(crate) fn run(
    pass: &Pass,
    variables: &[(&str, String)],
    limit: Instant,
    reader: &mut Reader,
) -> Result<Vec<String>> {
    let called = thread::scope(|threads| {
        let begin = |call| {
            let mut reader = reader.another();
            threads.spawn(move || (run_call(pass, call, variables, limit, &mut reader), reader))
        };
        let calls: Vec<_> = pass.calls.iter().map(|call| begin(call)).collect();
        calls.into_iter().map(ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    let mut problems = Vec::new();
    for call in called {
        let (outcome, read) = call.unwrap_or_else(|panic| resume_unwind(panic));
        // Also of a call that was killed: it shows which test did not end.
        reader.add(read);
        match outcome {
            Ok(status) if status.success() => {}
            Ok(status) => problems.push(format!("`cargo test` of the {} ended with {status}", pass.what)),
            Err(error) => problems.push(format!("{error:#}")),
        }
    }
    interrupt::check()?;
    Ok(problems)
}

fn run_call(
    pass: &Pass,
    call: &[String],
    variables: &[(&str, String)],
    limit: Instant,
    reader: &mut Reader,
) -> Result<ExitStatus> {
    let mut command = cargo::cargo();
    command.args(["test", "--no-fail-fast"]).args(call).arg("--").args(&pass.libtest);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    // Colours would hide the words from the reader.
    command.env("CARGO_TERM_COLOR", "never");
    eprintln!("\n{}", cargo::shown(&command));
    let mut shown = Shown { whole_lines: pass.calls.len() > 1, kept: Vec::new() };
    child::run_into(&mut command, Some(limit), |bytes| {
        reader.feed(bytes);
        shown.show(bytes);
    })
}

/// The output of one call, as the user sees it.
struct Shown {
    /// Whether it is shown line by line, so that calls side by side do not write into each other's lines. A call alone shows the name of a
    /// test before the test runs.
    whole_lines: bool,
    /// The beginning of a line that has not ended yet.
    kept: Vec<u8>,
}

impl Shown {
    fn show(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
        let end = if self.whole_lines {
            self.kept.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1)
        } else {
            self.kept.len()
        };
        // The reader of our output may be gone, which is no reason to stop.
        let _ = stdout().write_all(&self.kept[..end]).and_then(|()| stdout().flush());
        self.kept.drain(..end);
    }
}
