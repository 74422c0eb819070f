//! The gauges: what all clients together have in use, sampled once a second.
//!
//! They are set, not counted up and down: an event that was missed, or a series that the recorder forgot, would leave them wrong for ever.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::environment::{BackgroundTask, Environment};
use ylock_core::layer::ClientView;

use crate::group::Sum;
use crate::layer::{ClientInfo, Shared};

const PERIOD: Duration = Duration::from_secs(1);

/// The sampler of the gauges; see the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    clients: Mutex<Vec<ClientView>>,
    /// The task that looks. It goes on in another runtime when its own has ended; when no client is left it ends, and is started anew.
    sampling: BackgroundTask,
}

impl Sampler {
    pub(crate) fn add(&self, client: &ClientView) {
        let mut clients = self.clients.lock();
        if !clients.iter().any(|known| known.is_same(client)) {
            clients.push(client.clone());
        }
    }

    pub(crate) fn sample(&self, shared: &Shared) {
        let mut usages = Vec::new();
        let mut clients: HashMap<&'static str, Vec<ClientInfo>> = HashMap::new();
        self.clients.lock().retain(|client| match client.usage() {
            Some(usage) => {
                usages.push((client.engine(), usage));
                clients.entry(client.engine()).or_default().push(ClientInfo::of(client));
                true
            }
            None => false,
        });
        for (engine, meters) in &*shared.engines() {
            let mut sums: HashMap<usize, Sum> = HashMap::new();
            let of_engine = usages.iter().filter(|(name, _)| name == engine).flat_map(|(_, usage)| usage);
            for usage in of_engine {
                // Several groups may share their meters.
                let place = meters.groups.find(&usage.group, |meters| std::ptr::from_ref(meters) as usize);
                sums.entry(place).or_default().add(usage);
            }
            for group in meters.groups.all() {
                group.show(&sums.remove(&(Arc::as_ptr(&group) as usize)).unwrap_or_default());
            }
            meters.show_clients(clients.get(engine).map_or(&[], Vec::as_slice));
        }
    }

    /// Returns the engines of all clients.
    #[cfg(feature = "prometheus")]
    pub(crate) fn engines(&self) -> Vec<&'static str> {
        self.clients.lock().iter().map(ClientView::engine).collect()
    }

    /// Starts the task that looks, unless it runs.
    pub(crate) fn ensure_running(shared: &Arc<Shared>) {
        let running = &shared.sampler.sampling;
        if running.is_running() {
            return;
        }
        let client = shared.sampler.clients.lock().iter().find_map(ClientView::environment);
        let Some(environment) = client.filter(|environment| environment.enter()) else { return };
        let (shared, time) = (Arc::downgrade(shared), Arc::clone(&environment));
        running.start(&environment, move || Box::pin(look(Weak::clone(&shared), Arc::clone(&time))));
    }
}

impl ClientInfo {
    fn of(client: &ClientView) -> Self {
        let name = client.name().map(|name| name.to_string());
        let address = client.address().unwrap_or_else(|| "this process".to_owned());
        Self { client: name.unwrap_or_default(), address }
    }
}

async fn look(shared: Weak<Shared>, environment: Arc<dyn Environment>) {
    while let Some(shared) = shared.upgrade() {
        shared.sampler.sample(&shared);
        // After the last look everything is at zero, and the next client starts another task.
        if shared.sampler.clients.lock().is_empty() {
            return;
        }
        drop(shared);
        environment.sleep(PERIOD).await;
    }
}
