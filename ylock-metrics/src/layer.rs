//! The layer that measures.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use metrics::{Gauge, Histogram, Recorder};
use parking_lot::Mutex;
use ylock_core::layer::{Acquisition, ClientEvent, ClientView, Outcome};
use ylock_core::{Layer, Result};

use crate::catalogue::{CLIENT_INFO, CLIENTS, RENEWAL_LAG, STORE_REQUEST, STORE_REQUESTS};
use crate::group::GroupMeters;
use crate::groups::Groups;
use crate::outcome::{Each, Request};
use crate::recorder::Sink;
use crate::sampler::Sampler;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The number of groups that are measured one by one, unless the program sets another.
const GROUPS: usize = 200;

/// A layer that measures the locks that it lies over, and the clients that it was added to.
///
/// All layers made by [`new`](Self::new) are one: clients of one process add up. So are the clones of a layer made by [`to`](Self::to).
/// The gauges are sampled once a second, while there is a client and a tokio runtime.
///
/// # Groups
/// Series are labelled by group, never by name, owner or token. At most 200 groups are told apart
/// ([`with_groups`](Self::with_groups)); further groups are counted as `group="other"`, and `ylock_acquisitions_in_other_total` counts
/// how often that happened. Names of groups are cut after 128 bytes. The documentation of the crate says how many series a group has.
///
/// # Order
/// The recorder comes first: a layer that has measured something before `metrics::set_global_recorder` goes on measuring into nothing.
///
/// # Cost
/// Less than a microsecond per acquisition and release together, no allocation in the layer, and no lock that keys share.
#[derive(Clone)]
pub struct MetricsLayer(Arc<Shared>);

pub(crate) struct Shared {
    sink: Sink,
    groups: usize,
    engines: ArcSwap<HashMap<&'static str, Arc<EngineMeters>>>,
    growing: Mutex<()>,
    pub(crate) sampler: Sampler,
}

/// The meters of one engine.
pub(crate) struct EngineMeters {
    pub(crate) groups: Groups,
    clients: Gauge,
    /// The infos of the clients that there are. Clients that are gone have left it, with their gauge at zero: the crate `metrics` has no way
    /// to remove a series.
    infos: Mutex<HashMap<ClientInfo, Gauge>>,
    engine: &'static str,
    sink: Sink,
    lag: Histogram,
    /// The meters of requests, by operation. There are few operations, and each engine names its own.
    requests: ArcSwap<HashMap<&'static str, Arc<RequestMeters>>>,
}

/// The labels that tell the clients of one engine apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientInfo {
    pub(crate) client: String,
    pub(crate) address: String,
}

struct RequestMeters {
    ended: Each<Request>,
    took: Histogram,
}

impl MetricsLayer {
    /// Creates a layer that reports to the recorder of the process.
    pub fn new() -> Self {
        static OF_THE_PROCESS: OnceLock<MetricsLayer> = OnceLock::new();
        OF_THE_PROCESS.get_or_init(|| Self::over(Sink::default(), GROUPS)).clone()
    }

    /// Creates a layer that reports to this recorder, installed or not.
    pub fn to(recorder: Arc<dyn Recorder + Send + Sync>) -> Self {
        Self::over(Sink::to(recorder), GROUPS)
    }

    /// Creates a layer that tells this many groups apart, and is not one with layers that have another limit.
    #[must_use]
    pub fn with_groups(&self, groups: usize) -> Self {
        Self::over(self.0.sink.clone(), groups)
    }

    fn over(sink: Sink, groups: usize) -> Self {
        Self(Arc::new(Shared {
            sink,
            groups,
            engines: ArcSwap::default(),
            growing: Mutex::new(()),
            sampler: Sampler::default(),
        }))
    }

    /// Samples all clients now, instead of within a second. For programs that push their metrics before they end.
    pub fn sample(&self) {
        self.0.sampler.sample(&self.0);
    }

    /// Registers everything again, with the recorder that there is now.
    #[cfg(feature = "prometheus")]
    pub(crate) fn begin_anew(&self) {
        self.0.engines.store(Arc::default());
        for client in self.0.sampler.engines() {
            drop(self.0.engine(client));
        }
    }

    fn with_group<T>(
        &self,
        engine: &'static str,
        group: &str,
        use_them: impl FnOnce(&GroupMeters) -> T,
    ) -> T {
        self.0.engine(engine).groups.find(group, use_them)
    }
}

impl Default for MetricsLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MetricsLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsLayer").field("sink", &self.0.sink).field("groups", &self.0.groups).finish()
    }
}

impl Layer for MetricsLayer {
    fn attached(&self, client: &ClientView) {
        // The series of the engine are there before anything happens.
        drop(self.0.engine(client.engine()));
        self.0.sampler.add(client);
        Sampler::ensure_running(&self.0);
    }

    fn acquiring(&self, _: &Acquisition) -> Result<()> {
        Sampler::ensure_running(&self.0);
        Ok(())
    }

    fn acquired(&self, acquisition: &Acquisition, outcome: &Outcome, waited: Duration) {
        let (engine, group) = (self.0.engine(acquisition.engine), acquisition.key.group());
        engine.groups.find(group, |meters| {
            let tried = acquisition.max_wait.is_some_and(|longest| longest.is_zero());
            meters.acquired(acquisition.mode, outcome, tried, waited);
        });
    }

    fn client_event(&self, client: &ClientView, event: &ClientEvent) {
        let engine = client.engine();
        match event {
            ClientEvent::HoldEnded { key, mode, held, end, .. } => {
                self.with_group(engine, key.group(), |meters| meters.hold_ended(*mode, *held, *end));
            }
            ClientEvent::HandedOver { key } => self.with_group(engine, key.group(), GroupMeters::handed_over),
            ClientEvent::Renewed { key, outcome } => {
                self.with_group(engine, key.group(), |meters| meters.renewed(outcome));
            }
            ClientEvent::ReleaseEnded { key, held: true, confirmed: true, took, .. } => {
                self.with_group(engine, key.group(), |meters| meters.released(*took));
            }
            ClientEvent::Renewing { lag, .. } => self.0.engine(engine).lag.record(*lag),
            ClientEvent::Requested { operation, took, error } => {
                self.0.engine(engine).requested(operation, *took, error.is_some());
            }
            _ => {}
        }
    }
}

impl Shared {
    pub(crate) fn engine(&self, engine: &'static str) -> Arc<EngineMeters> {
        if let Some(meters) = self.engines.load().get(engine) {
            return Arc::clone(meters);
        }
        let _growing = self.growing.lock();
        let mut engines = HashMap::clone(&self.engines.load());
        if let Some(meters) = engines.get(engine) {
            return Arc::clone(meters);
        }
        if engines.is_empty() {
            self.sink.describe();
        }
        let meters = Arc::new(EngineMeters::new(&self.sink, engine, self.groups));
        engines.insert(engine, Arc::clone(&meters));
        self.engines.store(Arc::new(engines));
        meters
    }

    pub(crate) fn engines(&self) -> Arc<HashMap<&'static str, Arc<EngineMeters>>> {
        self.engines.load_full()
    }
}

impl EngineMeters {
    fn new(sink: &Sink, engine: &'static str, groups: usize) -> Self {
        Self {
            groups: Groups::new(sink, engine, groups),
            clients: sink.gauge(&CLIENTS, &[("engine", engine), ("version", VERSION)]),
            infos: Mutex::default(),
            engine,
            sink: sink.clone(),
            lag: sink.histogram(&RENEWAL_LAG, &[("engine", engine)]),
            requests: ArcSwap::default(),
        }
    }

    /// Shows the clients that there are.
    pub(crate) fn show_clients(&self, clients: &[ClientInfo]) {
        self.clients.set(clients.len() as f64);
        let mut infos = self.infos.lock();
        infos.retain(|info, gauge| {
            let is_there = clients.contains(info);
            if !is_there {
                gauge.set(0.0);
            }
            is_there
        });
        for info in clients {
            let gauge = infos.entry(info.clone()).or_insert_with(|| {
                let (client, address) = (info.client.as_str(), info.address.as_str());
                let labels =
                    [("engine", self.engine), ("client", client), ("address", address), ("version", VERSION)];
                self.sink.gauge(&CLIENT_INFO, &labels)
            });
            gauge.set(1.0);
        }
    }

    fn requested(&self, operation: &'static str, took: Duration, failed: bool) {
        let requests = self.requests.load();
        match requests.get(operation) {
            Some(meters) => meters.ended(took, failed),
            None => {
                let meters = Arc::new(RequestMeters::new(&self.sink, self.engine, operation));
                meters.ended(took, failed);
                self.requests.rcu(|known| {
                    let mut known = HashMap::clone(known);
                    known.entry(operation).or_insert_with(|| Arc::clone(&meters));
                    known
                });
            }
        }
    }
}

impl RequestMeters {
    fn new(sink: &Sink, engine: &'static str, operation: &'static str) -> Self {
        let labels = [("engine", engine), ("operation", operation)];
        let counter = |outcome: Request| {
            sink.counter(&STORE_REQUESTS, &[labels[0], labels[1], ("outcome", outcome.as_str())])
        };
        Self { ended: Each::new(Request::ALL, counter), took: sink.histogram(&STORE_REQUEST, &labels) }
    }

    fn ended(&self, took: Duration, failed: bool) {
        self.ended.count(if failed { Request::Failed } else { Request::Ok });
        self.took.record(took);
    }
}
