//! Finds Prometheus for tests, which start their own server, and starts a Prometheus that watches the workload of the example.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{
    cargo, daemon,
    file_lock::FileLock,
    places::Places,
    progress::Step,
    store::{self, Process, until},
    tools,
};

const VARIABLE: &str = "YLOCK_TEST_PROMETHEUS";

/// Returns the variable that tells tests the program of Prometheus. Returns `None` if the user has set this variable.
pub(crate) fn variable(places: &Places) -> Result<Option<(&'static str, String)>> {
    if store::is_given(VARIABLE) {
        return Ok(None);
    }
    Ok(Some((VARIABLE, program(places)?.display().to_string())))
}

fn program(places: &Places) -> Result<PathBuf> {
    let _alone = FileLock::exclusive(&places.change_lock())?;
    tools::prometheus()
}

/// A running Prometheus with the configuration of the example. It is stopped when dropped.
#[derive(Debug)]
pub(crate) struct Prometheus {
    process: Process,
}

impl Prometheus {
    /// Starts a Prometheus that watches the workload at `metrics`.
    pub(crate) fn start(places: &Places, at: SocketAddr, metrics: SocketAddr) -> Result<Self> {
        let program = program(places)?;
        let folder = places.root().join("prometheus");
        let data = format!("--storage.tsdb.path={}", folder.join("data").display());
        let prometheus = Self { process: Process::new(folder, data.clone()) };
        prometheus.process.forget("data")?;
        let configuration = prometheus.process.write("prometheus.yml", &configuration(metrics)?)?;
        let step = Step::begin("starting Prometheus");
        let mut command = Command::new(program);
        command.arg(format!("--config.file={}", configuration.display())).arg(data);
        command.arg(format!("--web.listen-address={at}"));
        prometheus.process.start(&mut command, at.port())?;
        until(std::slice::from_ref(&prometheus.process), || check_ready(at))?;
        step.done("started Prometheus");
        Ok(prometheus)
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        if let Err(error) = daemon::stop_all(&[self.process.daemon()]) {
            eprintln!("Prometheus could not be stopped: {error:#}");
        }
    }
}

/// Returns the folder of the example.
pub(crate) fn example() -> PathBuf {
    cargo::workspace().join("examples/observability")
}

/// Returns the configuration of the example, with the address of this workload and with the full paths of the rules.
fn configuration(metrics: SocketAddr) -> Result<String> {
    let folder = example().join("prometheus").canonicalize()?;
    let text = fs::read_to_string(folder.join("prometheus.yml"))?;
    if !text.contains(TARGET) {
        bail!("the example's prometheus.yml does not watch {TARGET}");
    }
    let rules = format!("- {}/rules/", folder.display());
    Ok(text.replace(TARGET, &metrics.to_string()).replace("- rules/", &rules))
}

fn check_ready(at: SocketAddr) -> Result<()> {
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /-/ready HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.lines().next().context("Prometheus gives an empty answer")?;
    if status.contains(" 200 ") { Ok(()) } else { bail!("Prometheus answers {status}") }
}

/// The address at which the workload answers by default.
const TARGET: &str = "127.0.0.1:9400";

const PATIENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_watches_this_workload_with_the_rules_of_the_example() {
        let text = configuration(([127, 0, 0, 1], 7070).into()).unwrap();
        assert!(text.contains("127.0.0.1:7070") && !text.contains("9400"));
        let rules: Vec<_> = text.lines().filter_map(|line| line.trim().strip_prefix("- /")).collect();
        assert!(!rules.is_empty() && rules.iter().all(|rule| PathBuf::from(format!("/{rule}")).is_file()));
    }
}
