//! The two sides: real servers in real time, simulated ones in virtual time.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Runtime;
use ylock_core::environment::{BoxFuture, Environment, Moment, SystemEnvironment};
use ylock_core::url::Host;
use ylock_engine_zookeeper::algorithm::store::Ensemble;
use ylock_engine_zookeeper::{ZookeeperEngine, ZookeeperOptions};
use ylock_simulation::chance::Chance;
use ylock_simulation::clocks::Clocks;
use ylock_simulation::store::Weather;
use ylock_simulation::world::World;
use ylock_simulation::zookeeper::{self, Clients, Mistakes, Rules};

use super::both_sides;

/// One side, as a test sees it.
pub(crate) struct Side {
    pub(crate) servers: Arc<dyn Ensemble>,
    pub(crate) clock: Arc<dyn Environment>,
    /// The same servers, for a client process of its own, and what kills that process.
    pub(crate) of_doomed: Arc<dyn Ensemble>,
    pub(crate) kill: Box<dyn Fn() + Send + Sync>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Real {
    One,
    Ensemble,
}

impl Real {
    pub(crate) fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::Ensemble => 3,
        }
    }

    fn options(self, session: Duration) -> ZookeeperOptions {
        let variable = match self {
            Self::One => "YLOCK_TEST_ZOOKEEPER",
            Self::Ensemble => "YLOCK_TEST_ZOOKEEPER_ENSEMBLE",
        };
        let servers = std::env::var(variable).expect(variable);
        let host = |server: &str| {
            let (name, port) = server.rsplit_once(':').expect("host:port");
            Host::new(name, port.parse::<u16>().expect("a port"))
        };
        ZookeeperOptions::new(servers.split(',').map(host)).with_session(session)
    }
}

/// The environment of a process that is killed: its connections end with the runtime that they live in.
struct Doomed {
    system: Arc<dyn Environment>,
    runtime: Mutex<Option<Runtime>>,
}

impl Environment for Doomed {
    fn now(&self) -> Moment {
        self.system.now()
    }

    fn wall_micros(&self) -> i64 {
        self.system.wall_micros()
    }

    fn random(&self) -> u64 {
        self.system.random()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture {
        self.system.sleep(duration)
    }

    fn spawn(&self, future: BoxFuture) {
        if let Some(runtime) = &*self.runtime.lock() {
            runtime.spawn(future);
        }
    }

    fn enter(&self) -> bool {
        true
    }
}

impl fmt::Debug for Doomed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Doomed")
    }
}

/// Plays on real servers.
pub(crate) fn real<T, F>(servers: Real, session: Duration, play: impl FnOnce(Side) -> F) -> T
where
    F: Future<Output = T>,
{
    let options = servers.options(session);
    let clock = SystemEnvironment::shared();
    let doomed =
        Arc::new(Doomed { system: Arc::clone(&clock), runtime: Mutex::new(Some(both_sides::runtime())) });
    let of_doomed: Arc<dyn Environment> = Arc::clone(&doomed) as _;
    let side = Side {
        servers: ZookeeperEngine::servers(&options, &clock),
        of_doomed: ZookeeperEngine::servers(&options, &of_doomed),
        clock,
        kill: Box::new(move || {
            let runtime = doomed.runtime.lock().take();
            runtime.into_iter().for_each(Runtime::shutdown_background);
        }),
    };
    both_sides::real(|| play(side))
}

/// Plays on simulated servers, which do nothing wrong.
pub(crate) fn simulated<T, F>(servers: usize, session: Duration, play: impl FnOnce(Side) -> F) -> T
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let (world, ms) = (World::new(false), Duration::from_millis);
    // Short, so that no lock is found empty in the moment in which it is.
    let weather = Weather::calm((Duration::from_micros(1), Duration::from_micros(2)));
    let rules = Rules { session, ticks: 4, patience: 3, lag: ms(0), rates: vec![1.0; servers] };
    let ensemble = zookeeper::Ensemble::new(&world, rules, weather, Chance::new(1));
    let (tester, doomed) = (world.new_actor(), world.new_actor());
    let [clock, of_doomed] = [tester, doomed].map(|actor| Clocks::new(&world, actor, 1.0, 0, Chance::new(2)));
    let clients = |clocks| Arc::new(Clients::new(&ensemble, clocks, session, Mistakes::default()));
    let killed = Arc::clone(&world);
    let side = Side {
        servers: clients(&clock),
        of_doomed: clients(&of_doomed),
        clock,
        kill: Box::new(move || killed.kill(doomed)),
    };
    both_sides::simulated(&world, tester, play(side))
}
