//! The processes of a test: killed when dropped, and every wait has an end.

use std::{
    env, fs,
    io::Write,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use ylock_observability::{
    prometheus::{self, Prometheus},
    rules,
};
use ylock_testkit::quiet_time;

/// A process that is killed when dropped.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::null()).spawn();
        Self(child.unwrap_or_else(|error| panic!("{}: {error}", command.get_program().display())))
    }

    pub(crate) fn assert_alive(&mut self) {
        assert!(self.0.try_wait().unwrap().is_none(), "a process of the test has ended");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A Prometheus of this test, in a folder of its own.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) process: Process,
    pub(crate) prometheus: Prometheus,
    folder: PathBuf,
}

impl Server {
    /// Starts a Prometheus that scrapes `metrics` every four seconds, with the rules of the example, whose
    /// window is this in place of minutes. On a busy machine a scrape takes seconds.
    pub(crate) fn start(metrics: SocketAddr, window: &str) -> Self {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("prometheus-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("recording.yml"), shortened(&rules::recording_yaml(), window)).unwrap();
        fs::write(folder.join("alerts.yml"), shortened(&rules::alerts_yaml(), window)).unwrap();
        let configuration = format!(
            "global: {{ scrape_interval: 4s, scrape_timeout: 4s, evaluation_interval: 1s }}\n\
             rule_files: [recording.yml, alerts.yml]\n\
             scrape_configs:\n  - job_name: ylock\n    static_configs: [{{ targets: [\"{metrics}\"] }}]\n"
        );
        fs::write(folder.join("prometheus.yml"), configuration).unwrap();
        let address = free_address();
        let log = fs::File::create(folder.join("log")).unwrap();
        let mut command = Command::new(program());
        command
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        let process = Process::start(&mut command);
        let mut server = Self { process, prometheus: Prometheus::at(address), folder };
        server.until("Prometheus is ready", |prometheus| {
            let said = prometheus::get(prometheus.address, "/-/ready");
            let is_ready = said.as_ref().is_ok_and(|said| said.contains("is Ready"));
            (!is_ready).then(|| format!("{said:?}"))
        });
        server
    }

    /// Looks again and again until nothing is missing. Fails when for too long no less is missing than
    /// before.
    pub(crate) fn until(&mut self, what: &str, mut missing: impl FnMut(Prometheus) -> Option<String>) {
        let began = Instant::now();
        let (mut least, mut since) = (usize::MAX, quiet_time());
        while let Some(missing) = missing(self.prometheus) {
            self.process.assert_alive();
            if missing.len() < least {
                (least, since) = (missing.len(), quiet_time());
            }
            assert!(quiet_time() - since < PATIENCE, "not within {PATIENCE:?}: {what}; {missing}");
            thread::sleep(Duration::from_millis(200));
        }
        println!("after {:.1} s: {what}", began.elapsed().as_secs_f32());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A failed test keeps its log.
        if !thread::panicking() {
            let _ = self.process.0.kill();
            let _ = self.process.0.wait();
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Returns rules that look back for seconds where the rules of the example look back for minutes; nothing else is changed.
fn shortened(rules: &str, window: &str) -> String {
    let mut short = rules.replace("[15m]", "[5m]").replace("[5m]", &format!("[{window}]"));
    short = short.replace("offset 5m", &format!("offset {window}"));
    let lines = short.lines().map(|line| match line.split_once("for: ") {
        Some((indent, _)) if indent.trim().is_empty() => format!("{indent}for: 0s\n"),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

fn program() -> PathBuf {
    let program = env::var_os("YLOCK_TEST_PROMETHEUS");
    program.expect("YLOCK_TEST_PROMETHEUS is not set: run the tests with `cargo xtask test`").into()
}

/// Runs `promtool`, and checks that it finds nothing wrong.
pub(crate) fn promtool(arguments: &[&str], input: &str) {
    let mut command = Command::new(program().with_file_name("promtool"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "promtool {arguments:?}: {}", String::from_utf8_lossy(&said));
}

pub(crate) fn free_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, ylock_testkit::own_servers::free_port("127.0.0.1")).into()
}

/// Several times the window of the rules, and a scrape that failed.
const PATIENCE: Duration = Duration::from_secs(90);
