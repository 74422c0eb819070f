//! Runs servers, the workload and a Prometheus, to look at: `cargo xtask observe`.

use std::{
    net::{Ipv4Addr, SocketAddr},
    os::unix::process::CommandExt,
    process::{Child, ExitCode, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::{
    ENGINES, cargo, child,
    cli::Observe,
    engine::{self, Engine},
    interrupt,
    places::Places,
    prometheus::{self, Prometheus},
    servers::Servers,
    store::free_ports,
};

pub(crate) fn observe(places: &Places, options: &Observe) -> Result<ExitCode> {
    let mut build = cargo::cargo();
    build.arg("build").args(package());
    if !child::run(&mut build, None)?.success() {
        bail!("the workload does not compile");
    }
    let [metrics, prometheus] = free_ports().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let metrics = options.metrics.unwrap_or(metrics);
    let prometheus = options.prometheus.unwrap_or(prometheus);
    // Dropped last: the workload gives back its locks before its servers go.
    let servers = servers(places, &options.engines)?;
    let _prometheus = Prometheus::start(places, prometheus, metrics)?;
    say_where(metrics, prometheus)?;
    workload(metrics, &servers.urls()?)?.wait()
}

/// Starts the servers. If the user has chosen no engines, one that cannot be started is left out.
fn servers(places: &Places, named: &[&'static Engine]) -> Result<Servers> {
    let (mut tried, mut running) = (Vec::new(), Vec::new());
    for engine in engine::chosen(named) {
        match Servers::start(places, &[engine]) {
            Ok(servers) => {
                tried.push(servers);
                running.push(engine);
            }
            Err(error) if named.is_empty() && !interrupt::happened() => {
                eprintln!("{} is left out: {error:#}", engine.name);
            }
            Err(error) => return Err(error),
        }
    }
    // One object uses all servers: of several objects, each would leave its servers to the others when it ends.
    let servers = Servers::start(places, &running)?;
    drop(tried);
    Ok(servers)
}

fn say_where(metrics: SocketAddr, prometheus: SocketAddr) -> Result<()> {
    let grafana = prometheus::example().join("grafana").canonicalize()?;
    eprintln!("\nPrometheus  http://{prometheus}/graph   alerts: http://{prometheus}/alerts");
    eprintln!("metrics     http://{metrics}/metrics");
    eprintln!("Grafana     is not started. Data source: http://{prometheus}; dashboards to import:");
    eprintln!("            {}/dashboards, or start a Grafana of your own with", grafana.display());
    eprintln!("            GF_PATHS_PROVISIONING={}/provisioning", grafana.display());
    eprintln!("Ctrl-C ends all of these.\n");
    Ok(())
}

fn workload(metrics: SocketAddr, urls: &[String]) -> Result<Workload> {
    let mut command = cargo::cargo();
    command.args(["run", "--quiet"]).args(package()).args(["--", "run"]);
    command.args(["--listen", &metrics.to_string()]).args(urls);
    let spawned = command.stdin(Stdio::null()).process_group(0).spawn();
    Ok(Workload(spawned.context("cannot run the workload")?))
}

/// The workload, in a process group of its own, so that Ctrl-C reaches it through us, and it can give its locks back.
#[derive(Debug)]
struct Workload(Child);

impl Workload {
    fn wait(mut self) -> Result<ExitCode> {
        loop {
            if let Some(status) = self.0.try_wait()? {
                bail!("the workload ended with {status}");
            }
            if interrupt::pause(LOOK).is_err() {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        let group = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        let signal = |signal| group.map(|group| kill_process_group(group, signal));
        let began = Instant::now();
        // Errors mean that the workload has ended.
        let _ = signal(Signal::INT);
        while began.elapsed() < GRACE && matches!(self.0.try_wait(), Ok(None)) {
            std::thread::sleep(LOOK);
        }
        let _ = signal(Signal::KILL);
        let _ = self.0.wait();
    }
}

/// Returns the arguments that name the package, with every engine that has servers.
fn package() -> [String; 2] {
    let features = ENGINES.iter().filter(|engine| engine.has_servers());
    let features: Vec<_> = features.map(|engine| format!("ylock/{}", engine.name)).collect();
    ["--package=ylock-observability".to_owned(), format!("--features={}", features.join(","))]
}

const LOOK: Duration = Duration::from_millis(50);

/// The time that the workload has to give its locks back.
const GRACE: Duration = Duration::from_secs(10);
