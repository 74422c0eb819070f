//! The network between clients, which carries hints: it loses them, doubles them, brings them late, and brings what an adversary has forged.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use ylock_engine_cassandra::hints::{Carrier, Datagram, Endpoint, Hint, Key, Receiver};

use crate::chance::Chance;
use crate::world::{Actor, Kind, Thread, World};

/// The number of addresses that clients have: few, so that one that starts has that of one that has died.
const ADDRESSES: u16 = 24;
/// The longest time for which a late datagram is on its way.
const LATEST: Duration = Duration::from_secs(60);

/// The fate of datagrams.
#[derive(Clone, Debug)]
pub struct HintWeather {
    /// The shortest and the longest time that a datagram normally takes.
    pub latency: (Duration, Duration),
    /// The probability that one is lost.
    pub loss: f64,
    /// The probability that one comes twice.
    pub duplicates: f64,
    /// The probability that one is late, by up to a minute.
    pub late: f64,
    /// The addresses that nothing reaches, of a hundred: their clients send all the same.
    pub unreachable: u64,
    /// The address from which nothing comes: its client is told all the same.
    pub mute: Option<SocketAddr>,
    /// The longest time between two datagrams that an adversary forges, who knows all keys; none are forged without one.
    pub forged: Option<Duration>,
}

impl HintWeather {
    /// Returns the weather in which nothing is wrong.
    pub fn calm() -> Self {
        let latency = (Duration::from_micros(50), Duration::from_micros(250));
        Self { latency, loss: 0.0, duplicates: 0.0, late: 0.0, unreachable: 0, mute: None, forged: None }
    }

    /// Returns any weather.
    pub fn any(chance: &mut Chance) -> Self {
        let mut one_of = |of: &[f64]| of[chance.below(of.len() as u64) as usize];
        let (loss, duplicates, late) =
            (one_of(&[0.0, 0.0, 0.1, 0.5, 1.0]), one_of(&[0.0, 0.2, 0.5]), one_of(&[0.0, 0.2, 0.5]));
        let unreachable = if chance.happens(0.3) { 50 } else { 0 };
        let forged = [Duration::from_millis(5), Duration::from_secs(1)];
        let forged = if chance.happens(0.5) { Some(forged[chance.below(2) as usize]) } else { None };
        // Nothing else that would make waiters doubt all clients.
        let mute = Some(address(ADDRESSES / 2)).filter(|_| loss == 0.0 && unreachable == 0);
        Self { loss, duplicates, late, unreachable, mute, forged, ..Self::calm() }
    }
}

/// Which program has which address.
type Programs = BTreeMap<SocketAddr, (Actor, Weak<dyn Receiver>)>;

/// The network; see the [module](self).
pub struct Network {
    world: Arc<World>,
    weather: Mutex<HintWeather>,
    chance: Mutex<Chance>,
    programs: Mutex<Programs>,
    /// Every endpoint that was ever in the table.
    known: Mutex<Vec<Endpoint>>,
    forges: AtomicBool,
    delivered: AtomicU64,
}

impl Network {
    /// Creates a calm network.
    pub fn new(world: &Arc<World>) -> Arc<Self> {
        Arc::new(Self {
            world: Arc::clone(world),
            weather: Mutex::new(HintWeather::calm()),
            chance: Mutex::new(Chance::new(0)),
            programs: Mutex::default(),
            known: Mutex::default(),
            forges: AtomicBool::new(false),
            delivered: AtomicU64::new(0),
        })
    }

    /// Lets the weather be like this from now on.
    pub fn begin(self: &Arc<Self>, weather: HintWeather, chance: Chance) {
        *self.chance.lock() = chance;
        let forges = weather.forged.is_some();
        *self.weather.lock() = weather;
        if !self.forges.swap(forges, Ordering::Relaxed) && forges {
            self.forge();
        }
    }

    /// Ends all trouble.
    pub fn calm_down(&self) {
        *self.weather.lock() = HintWeather::calm();
        self.forges.store(false, Ordering::Relaxed);
    }

    /// Returns how many datagrams were delivered.
    pub fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    /// Returns the way of one client to the others.
    pub fn carrier(self: &Arc<Self>, actor: Actor) -> Arc<Wire> {
        let address = self.free_address();
        Arc::new(Wire { network: Arc::clone(self), actor, address })
    }

    /// Notes what is in the table.
    pub(super) fn is_written(&self, endpoint: Option<Endpoint>) {
        let mut known = self.known.lock();
        if let Some(endpoint) = endpoint.filter(|endpoint| !known.contains(endpoint)) {
            known.push(endpoint);
        }
    }

    fn free_address(&self) -> SocketAddr {
        let programs = self.programs.lock();
        let is_free = |address: &SocketAddr| {
            programs.get(address).is_none_or(|(actor, _)| !self.world.is_alive(*actor))
        };
        let first = self.chance.lock().below(u64::from(ADDRESSES)) as u16;
        let mut all = (0..u16::MAX - 10_000).map(|number| match number {
            0..ADDRESSES => (first + number) % ADDRESSES,
            more => more,
        });
        all.find_map(|number| Some(address(number)).filter(is_free)).unwrap_or(address(0))
    }

    fn send(self: &Arc<Self>, from: SocketAddr, to: SocketAddr, datagram: Datagram) {
        let (copies, delays) = {
            let (weather, mut chance) = (self.weather.lock(), self.chance.lock());
            let is_unreachable = u64::from(to.port()) * 37 % 100 < weather.unreachable;
            if is_unreachable || weather.mute == Some(from) || chance.happens(weather.loss) {
                return;
            }
            let copies = 1 + usize::from(chance.happens(weather.duplicates));
            let delays = [(); 2].map(|()| match chance.happens(weather.late) {
                true => chance.between(Duration::ZERO, LATEST),
                false => chance.between(weather.latency.0, weather.latency.1),
            });
            (copies, delays)
        };
        for delay in delays.into_iter().take(copies) {
            let network = Arc::clone(self);
            self.world.after(delay, move || network.deliver(from, to, datagram));
        }
    }

    /// Delivers to the program that has the address now, when it runs.
    fn deliver(&self, from: SocketAddr, to: SocketAddr, datagram: Datagram) {
        let Some((actor, receiver)) = self.programs.lock().get(&to).cloned() else { return };
        self.delivered.fetch_add(1, Ordering::Relaxed);
        self.world.note(|| format!("{actor:?} is told {:?}", Hint::read(&datagram).map(|(_, hint)| hint)));
        let receiving = async move {
            if let Some(receiver) = receiver.upgrade() {
                receiver.receive(from, &datagram);
            }
        };
        self.world.spawn_as((actor, Thread::Own), Kind::Work, Box::pin(receiving), false);
    }

    /// Sends a forged datagram, and later the next one.
    fn forge(self: &Arc<Self>) {
        let Some(longest) = self.weather.lock().forged.filter(|_| self.forges.load(Ordering::Relaxed)) else {
            return;
        };
        let pause = {
            let (known, mut chance) = (self.known.lock(), self.chance.lock());
            // The last ones are those of acquisitions that take part.
            let last = known.len().min(12) as u64;
            if last > 0 {
                let any = |chance: &mut Chance| known[known.len() - 1 - chance.below(last) as usize];
                let (to, from) = (any(&mut chance), any(&mut chance));
                let hint = any_hint(&mut chance, from.key);
                drop((known, chance));
                self.deliver(from.address, to.address, hint.to(to.key));
                self.chance.lock().between(Duration::ZERO, longest)
            } else {
                longest
            }
        };
        let network = Arc::clone(self);
        self.world.after(pause, move || network.forge());
    }
}

fn any_hint(chance: &mut Chance, from: Key) -> Hint {
    let flag = chance.happens(0.5);
    match chance.below(5) {
        0 => Hint::Wait { from, reads: flag },
        1 | 2 => Hint::Free { second: flag },
        3 => Hint::Next,
        _ => Hint::End,
    }
}

fn address(number: u16) -> SocketAddr {
    ([10, 0, 0, 1], 10_000 + number).into()
}

/// The way of one client to the others.
#[derive(Debug)]
pub struct Wire {
    network: Arc<Network>,
    actor: Actor,
    address: SocketAddr,
}

impl Carrier for Wire {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn send(&self, to: SocketAddr, datagram: &Datagram) {
        self.network.send(self.address, to, *datagram);
    }

    fn deliver_to(&self, receiver: Weak<dyn Receiver>) {
        self.network.programs.lock().insert(self.address, (self.actor, receiver));
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Network")
    }
}
