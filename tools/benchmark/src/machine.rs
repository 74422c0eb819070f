//! The machine on which the real points are measured: what a reader must know to judge the numbers.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// Returns what this machine says of itself, as far as it does.
pub(crate) fn describe() -> BTreeMap<String, String> {
    let cores = std::thread::available_parallelism().ok().map(|cores| cores.to_string());
    let found = [
        ("processor", field("/proc/cpuinfo", "model name")),
        ("cores", cores),
        ("memory", field("/proc/meminfo", "MemTotal")),
        (
            "system",
            fs::read_to_string("/proc/sys/kernel/osrelease")
                .ok()
                .map(|text| format!("Linux {}", text.trim())),
        ),
        ("compiler", output("rustc", "--version")),
        ("ylock", Some(env!("CARGO_PKG_VERSION").to_owned())),
    ];
    found.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn output(program: &str, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).output().ok()?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}
