//! The program of this example: `cargo run -p ylock-observability -- run` runs the workload and shows its metrics; `-- files` writes
//! dashboards and rules, `-- pictures` draws them.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use ylock_observability::{
    dashboards, files, picture,
    prometheus::Prometheus,
    query,
    workload::{self, Settings},
};

/// Show the metrics of ylock: a workload, dashboards, rules and pictures
#[derive(Debug, Parser)]
#[command(name = "ylock-observability")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Use locks in different ways, and serve the metrics to Prometheus
    Run(Settings),
    /// Write the dashboards, the rules and their tests
    Files,
    /// Draw what the dashboards show, without a Grafana
    Pictures(Pictures),
}

#[tokio::main]
async fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Run(settings) => workload::run(&settings, interrupted()).await,
        Command::Files => {
            let count = files::write(Path::new(env!("CARGO_MANIFEST_DIR")))?;
            println!("{count} files written");
            Ok(())
        }
        Command::Pictures(options) => draw(&options),
    }
}

#[derive(Args, Debug)]
struct Pictures {
    /// The Prometheus to ask
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9090")]
    prometheus: SocketAddr,
    /// Time that the pictures go back
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = humantime::parse_duration)]
    last: Duration,
    /// The group that the dashboard of one group shows
    #[arg(long, value_name = "GROUP", default_value = "busy")]
    group: String,
    /// The folder to write the pictures to
    #[arg(long, value_name = "FOLDER", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/docs"))]
    to: PathBuf,
}

fn draw(options: &Pictures) -> Result<()> {
    for dashboard in dashboards::all() {
        let group = if dashboard.uid == dashboards::GROUP { &options.group } else { query::ALL };
        let svg = picture::draw(&dashboard, group, Prometheus::at(options.prometheus), options.last)?;
        let file = options.to.join(format!("{}.svg", dashboard.uid));
        std::fs::write(&file, svg).with_context(|| format!("cannot write {}", file.display()))?;
        println!("{}", file.display());
    }
    Ok(())
}

/// Waits until the user presses Ctrl-C.
async fn interrupted() {
    // Where the program cannot listen for it, the workload ends at once, rather than never.
    let _ = tokio::signal::ctrl_c().await;
}
