//! The endpoint that Prometheus scrapes, by the crate [`metrics_exporter_prometheus`].
//!
//! Its defaults do not fit: without buckets a histogram becomes a summary, whose quantiles cannot be added over processes; an idle timeout
//! cuts a layer off from its series; without upkeep the memory of histograms grows. [`install`] does what is right for ylock. Programs
//! with a recorder of their own take [`buckets`].

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use ylock_core::{Error, ErrorKind, Result};

use crate::MetricsLayer;
use crate::catalogue::{ALL, Kind};

/// Installs a recorder for the whole process, with the buckets of ylock, and answers scrapes at `address`, such as `127.0.0.1:9400`.
///
/// To be called inside a tokio runtime that lives as long as the program. Every path is answered, and every client that can reach the
/// address: there is no login.
///
/// # Errors
/// [`Config`](ErrorKind::Config) if the address is invalid or taken, if the process has a recorder already, or outside a runtime.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
/// let metrics = ylock::metrics::prometheus::install("127.0.0.1:0")?;
/// let ylock = ylock::Ylock::in_memory().layer(ylock::metrics::MetricsLayer::new());
/// assert!(ylock.locks("users").write("alice").await?.unlock().await?.is_released());
/// assert!(metrics.render().contains("ylock_hold_seconds_bucket"));
/// # Ok(()) }
/// ```
pub fn install(address: &str) -> Result<Installed> {
    let address = free_address(address)?;
    let runtime = tokio::runtime::Handle::try_current().map_err(|_| {
        config("prometheus::install must be called inside a tokio runtime, in which it answers scrapes")
    })?;
    let (recorder, exporter) = buckets(PrometheusBuilder::new())
        .with_http_listener(address)
        .build()
        .map_err(|error| failed(&error))?;
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(|_| {
        config(
            "the process has a recorder for metrics already: give its builder the buckets of \
             ylock::metrics::prometheus::buckets, and let it answer the scrapes",
        )
    })?;
    // What was measured until now went nowhere.
    MetricsLayer::new().begin_anew();
    #[allow(clippy::disallowed_methods, reason = "it serves the whole process, not one client")]
    runtime.spawn(async move {
        if exporter.await.is_err() {
            tracing::error!("the endpoint for Prometheus has ended");
        }
    });
    Ok(Installed { handle, address })
}

/// Gives a builder the buckets of ylock's histograms; the buckets of others stay as they are.
#[must_use]
pub fn buckets(builder: PrometheusBuilder) -> PrometheusBuilder {
    ALL.iter().fold(builder, |builder, metric| match metric.kind {
        // By its full name: the name as it is registered is the name as it is exported.
        Kind::Histogram(bounds) => {
            match builder.set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), bounds) {
                Ok(builder) => builder,
                Err(_) => unreachable!("the catalogue has buckets for every histogram"),
            }
        }
        Kind::Counter | Kind::Gauge => builder,
    })
}

/// The recorder of the process.
#[derive(Clone, Debug)]
pub struct Installed {
    handle: PrometheusHandle,
    address: SocketAddr,
}

impl Installed {
    /// Returns what a scrape would be answered now.
    pub fn render(&self) -> String {
        self.handle.render()
    }

    /// Returns the address at which scrapes are answered.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Returns the address, with a free port if it asks for port 0, or an error that names the address if it is taken.
fn free_address(address: &str) -> Result<SocketAddr> {
    let wrong = |error: std::io::Error| {
        config(format!(
            "{address:?} cannot answer scrapes: {error}; name a free address such as 127.0.0.1:9400"
        ))
    };
    let addresses: Vec<SocketAddr> = address.to_socket_addrs().map_err(wrong)?.collect();
    TcpListener::bind(&*addresses).and_then(|listener| listener.local_addr()).map_err(wrong)
}

fn failed(error: &BuildError) -> Error {
    config(format!("the endpoint for Prometheus cannot be made: {error}"))
}

fn config(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message)
}
