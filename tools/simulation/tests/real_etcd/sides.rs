//! The two sides: real servers in real time, simulated ones in virtual time.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ylock_core::environment::{Environment, SystemEnvironment};
use ylock_core::url::Host;
use ylock_engine_etcd::algorithm::store::Store;
use ylock_engine_etcd::{EtcdEngine, EtcdOptions};
use ylock_simulation::chance::Chance;
use ylock_simulation::clocks::Clocks;
use ylock_simulation::etcd::{Client, Cluster, Mistakes, Rules};
use ylock_simulation::store::Weather;
use ylock_simulation::world::World;

use super::both_sides;

/// Longer than a busy machine lets a request wait.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// One side, as a test sees it.
pub(crate) struct Side {
    pub(crate) servers: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Environment>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Real {
    One,
    Cluster,
}

impl Real {
    fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::Cluster => 3,
        }
    }

    fn options(self) -> EtcdOptions {
        let variable = match self {
            Self::One => "YLOCK_TEST_ETCD",
            Self::Cluster => "YLOCK_TEST_ETCD_CLUSTER",
        };
        let servers = std::env::var(variable).expect(variable);
        let host = |server: &str| {
            let (name, port) = server.rsplit_once(':').expect("host:port");
            Host::new(name, port.parse::<u16>().expect("a port"))
        };
        EtcdOptions::new(servers.split(',').map(host)).with_request_timeout(REQUEST_TIMEOUT)
    }
}

/// Plays on real servers.
pub(crate) fn real<T, F>(servers: Real, play: impl FnOnce(Side) -> F) -> T
where
    F: Future<Output = T>,
{
    let (options, clock) = (servers.options(), SystemEnvironment::shared());
    both_sides::real(|| {
        let servers = EtcdEngine::servers(&options, &clock).expect("options of servers");
        play(Side { servers, clock })
    })
}

/// Plays on simulated servers, which do nothing wrong.
pub(crate) fn simulated<T, F>(servers: Real, play: impl FnOnce(Side) -> F) -> T
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let (world, ms) = (World::new(false), Duration::from_millis);
    let rules =
        Rules { patience: ms(3_000), trust: ms(3_000), lag: ms(0), rates: vec![1.0; servers.count()] };
    let cluster = Cluster::new(&world, rules, Weather::calm((ms(1), ms(2))), Chance::new(1));
    let tester = world.new_actor();
    let clock = Clocks::new(&world, tester, 1.0, 0, Chance::new(2));
    let client = Client::new(&cluster, &clock, REQUEST_TIMEOUT, Mistakes::default());
    both_sides::simulated(&world, tester, play(Side { servers: Arc::new(client), clock }))
}
