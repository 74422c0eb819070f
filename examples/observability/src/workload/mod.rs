//! The workload: tasks that use locks in different ways, so that every panel has something to show.

mod groups;
mod site;
mod tally;

use std::{future::Future, net::SocketAddr, time::Duration};

use anyhow::Result;
use tokio::{task::JoinSet, time::interval};

use self::site::Site;
pub use self::tally::Tally;

/// The settings of the workload: what runs, and for how long.
#[derive(Clone, Debug, clap::Args)]
#[non_exhaustive]
pub struct Settings {
    /// Stores to lock on, all at the same time
    #[arg(value_name = "URL", default_value = "memory://")]
    pub urls: Vec<String>,
    /// The address at which Prometheus may ask for the metrics
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9400")]
    pub listen: SocketAddr,
    /// Time to run; until Ctrl-C if not given
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    pub time: Option<Duration>,
    /// Time between two losses of a lock
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = humantime::parse_duration)]
    pub lose_every: Duration,
    /// Locks to lose on each store; without a limit if not given
    #[arg(long, value_name = "COUNT")]
    pub losses: Option<u32>,
}

/// Runs the workload until the time is over or `enough` ends, and gives all locks back.
///
/// # Errors
/// If the port is taken, or a store cannot be reached.
pub async fn run(settings: &Settings, enough: impl Future<Output = ()>) -> Result<()> {
    // Before the first lock: events before this call are not counted.
    let _metrics = ylock::metrics::prometheus::install(&settings.listen.to_string())?;
    let mut sites = Vec::new();
    for url in &settings.urls {
        sites.push(Site::connect(url).await?);
    }
    let mut tasks = JoinSet::new();
    sites.iter().for_each(|site| groups::start(site, settings, &mut tasks));
    let over = async {
        match settings.time {
            Some(time) => tokio::time::sleep(time).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = progress(&sites) => {}
        () = over => {}
        () = enough => {}
        Some(ended) = tasks.join_next() => ended?,
    }
    eprintln!();
    tasks.shutdown().await;
    for site in &sites {
        site.close().await;
    }
    Ok(())
}

async fn progress(sites: &[Site]) {
    let mut shown = tally::Shown::new();
    let mut seconds = interval(Duration::from_secs(1));
    loop {
        seconds.tick().await;
        shown.show(sites.iter().map(Site::tally));
    }
}
