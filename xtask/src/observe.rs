//! Runs servers, the workload and a Prometheus, to look at: `cargo xtask observe`.

use std::{
    env,
    net::{Ipv4Addr, SocketAddr},
    os::unix::process::CommandExt,
    process::{Child, ExitCode, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::{
    cargo, child,
    cli::{Engine, Observe, Server},
    interrupt,
    places::Places,
    prometheus::{self, Prometheus},
    servers::Servers,
    store::free_ports,
};

pub(crate) fn observe(places: &Places, options: &Observe) -> Result<ExitCode> {
    let mut build = cargo::cargo();
    build.args(["build", "--package", PACKAGE, "--all-features"]);
    if !child::run(&mut build, None)?.success() {
        bail!("the workload does not compile");
    }
    let [metrics, prometheus] = free_ports()?.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let metrics = options.metrics.unwrap_or(metrics);
    let prometheus = options.prometheus.unwrap_or(prometheus);
    // Dropped last: the workload gives back its locks before its servers go.
    let (_servers, urls) = servers(places, &options.engines)?;
    let _prometheus = Prometheus::start(places, prometheus, metrics)?;
    say_where(metrics, prometheus)?;
    workload(metrics, &urls)?.wait()
}

/// Starts the servers, and returns them with their URLs. If the user has chosen no engines, a server that cannot be started is left out.
fn servers(places: &Places, chosen: &[Engine]) -> Result<(Servers, Vec<String>)> {
    let is_chosen = |engine| chosen.is_empty() || chosen.contains(&engine);
    let (mut tried, mut running) = (Vec::new(), Vec::new());
    for (engine, server) in [
        (Engine::Redis, Server::Redis),
        (Engine::Zookeeper, Server::Zookeeper),
        (Engine::Cassandra, Server::Cassandra),
    ] {
        match is_chosen(engine).then(|| Servers::start(places, &[server])) {
            Some(Ok(servers)) => {
                tried.push(servers);
                running.push(server);
            }
            Some(Err(error)) if chosen.is_empty() && !interrupt::happened() => {
                eprintln!("{server:?} is left out: {error:#}");
            }
            Some(Err(error)) => return Err(error),
            None => {}
        }
    }
    // One object uses all servers: of several objects, each would leave its servers to the others when it ends.
    let servers = Servers::start(places, &running)?;
    drop(tried);
    let mut urls: Vec<_> = is_chosen(Engine::Memory).then(|| "memory://".to_owned()).into_iter().collect();
    for server in running {
        urls.push(url(server, &servers)?);
    }
    Ok((servers, urls))
}

fn url(server: Server, servers: &Servers) -> Result<String> {
    let (variable, scheme, rest) = match server {
        Server::Cassandra => ("YLOCK_TEST_CASSANDRA", "cassandra", "/ylock_observe?schema=create"),
        Server::Redis => ("YLOCK_TEST_REDIS", "redis", ""),
        Server::Zookeeper => ("YLOCK_TEST_ZOOKEEPER", "zookeeper", ""),
    };
    let ours = servers.environment()?.into_iter().find(|(name, _)| *name == variable);
    let address = ours.map(|(_, address)| address).or_else(|| env::var(variable).ok());
    Ok(format!("{scheme}://{}{rest}", address.with_context(|| format!("{variable} is not set"))?))
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
    command.args(["run", "--quiet", "--package", PACKAGE, "--all-features", "--", "run"]);
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

const PACKAGE: &str = "ylock-observability";

const LOOK: Duration = Duration::from_millis(50);

/// The time that the workload has to give its locks back.
const GRACE: Duration = Duration::from_secs(10);
