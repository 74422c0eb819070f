//! The quick ways of Redis's scripts do what the scripts do without them: the same operations at the same times, with and without, on two
//! simulated servers, whose data, answers and messages must not differ in a byte.

use std::sync::Arc;

use ylock_engine_redis::scripts;
use ylock_simulation::chance::Chance;
use ylock_simulation::faults::Plan;
use ylock_simulation::redis::Server;
use ylock_simulation::world::World;

const SEEDS: u64 = 200;
const OPERATIONS: u64 = 150;
const PLACE: &[u8] = b"a lock";
const SECOND: u64 = 1_000_000_000;
/// Two clients hear messages, one in a cluster. One polls, and one has lost its connection.
const CHANNELS: [&str; 4] = ["one", "{slot}two", "-", "lost"];

/// A server, and the names of the scripts that it runs.
struct Side {
    world: Arc<World>,
    server: Arc<Server>,
    names: [String; 3],
}

impl Side {
    fn new([acquire, release]: [String; 2]) -> Self {
        let (world, mut chance) = (World::new(false), Chance::new(1));
        let weather = Plan::new(&[], &mut chance).weather(&mut chance);
        let server = Server::start(&world, weather, 1.0, chance, None, false);
        CHANNELS[..2].iter().for_each(|channel| server.listen(format!("ylock:{channel}").as_bytes()));
        let names = [&*acquire, &release, scripts::RENEW].map(|text| {
            server.answer(&[b"SCRIPT", b"LOAD", text.as_bytes()]);
            redis::Script::new(text).get_hash().to_owned()
        });
        Self { world, server, names }
    }

    /// Returns all that the server sends, and what it then has stored.
    fn run(&self, operation: &Operation) -> (Vec<String>, Vec<u8>) {
        let name = self.names[operation.what as usize].as_bytes();
        let mut words = vec![&b"EVALSHA"[..], name, b"1", PLACE];
        words.extend(operation.arguments.iter().map(String::as_bytes));
        let sent = self.server.answer_all(&words);
        (sent.iter().map(|sent| String::from_utf8_lossy(sent).into_owned()).collect(), self.stored(PLACE))
    }

    fn stored(&self, place: &[u8]) -> Vec<u8> {
        self.server.answer(&[b"EVAL", b"return redis.call('HGETALL', KEYS[1])", b"1", place])
    }

    /// Returns a holder, if there is one.
    fn holder(&self) -> Option<String> {
        let stored = self.stored(PLACE);
        let text = String::from_utf8_lossy(&stored);
        let (_, after) = text.split_once("\r\nh:")?;
        after.split("\r\n").next().map(str::to_owned)
    }

    fn wait(&self, nanos: u64) {
        self.world.run(self.world.now() + nanos, || false);
    }
}

#[derive(Clone, Copy, Debug)]
enum What {
    Acquire,
    Release,
    Renew,
}

#[derive(Debug)]
struct Operation {
    what: What,
    arguments: Vec<String>,
}

/// Chooses operations, as several clients do them: what was acquired is renewed and released, sometimes more than once.
struct Clients {
    chance: Chance,
    ids: Vec<String>,
    /// How many in ten are readers.
    readers: u64,
    /// Whether requests that come late are feared.
    fears: bool,
}

impl Clients {
    fn next(&mut self, holder: Option<String>) -> Operation {
        let (what, arguments) = match self.chance.below(10) {
            0..5 => (What::Acquire, self.acquire()),
            5..9 => (What::Release, self.release(holder)),
            _ => (What::Renew, [self.known(), self.mode(), self.lease()].to_vec()),
        };
        Operation { what, arguments }
    }

    fn acquire(&mut self) -> Vec<String> {
        let id = if self.chance.below(3) == 0 { self.known() } else { self.new_id() };
        let [patience, fairness] = [self.one_of(["queue", "try"]), self.one_of(["fair", "unfair"])];
        let mut arguments = vec![id, self.mode(), self.lease(), patience, fairness];
        arguments.extend(self.place_and_who());
        arguments
    }

    /// Mostly of what is held.
    fn release(&mut self, holder: Option<String>) -> Vec<String> {
        let id = holder.filter(|_| self.chance.below(4) > 0).unwrap_or_else(|| self.known());
        let late = if self.fears && self.chance.below(10) == 0 { "60000" } else { "0" };
        let mut arguments = vec![id, late.to_owned()];
        if self.chance.below(8) == 0 {
            arguments.extend([self.new_id(), self.mode(), self.lease()]);
            arguments.extend(self.place_and_who());
        }
        arguments
    }

    /// Returns ticket, time for which a waiter counts as alive, owner, channel and client.
    fn place_and_who(&mut self) -> Vec<String> {
        let ticket = match self.chance.below(8) {
            0 => "1700000000000000".to_owned(),
            1 => "9000000000000000".to_owned(),
            _ => "-".to_owned(),
        };
        let channel = CHANNELS[(self.chance.below(60) as usize).saturating_sub(56)];
        let alive = if self.chance.below(20) == 0 { "50" } else { "4000" };
        [&ticket, alive, "owner", channel, "a client"].map(str::to_owned).to_vec()
    }

    /// Returns the first mostly.
    fn one_of(&mut self, words: [&str; 2]) -> String {
        words[usize::from(self.chance.below(6) == 0)].to_owned()
    }

    fn mode(&mut self) -> String {
        if self.chance.below(10) < self.readers { "r" } else { "w" }.to_owned()
    }

    fn lease(&mut self) -> String {
        self.one_of(["5000", "20000"])
    }

    fn new_id(&mut self) -> String {
        let id = format!("{:016x}{:06x}", self.chance.number(), self.chance.below(1 << 24));
        self.ids.push(id.clone());
        id
    }

    fn known(&mut self) -> String {
        let Some(last) = self.ids.len().checked_sub(1) else { return self.new_id() };
        let back = self.chance.below(12).min(last as u64) as usize;
        self.ids[last - back].clone()
    }
}

/// Returns the texts with the quick ways; each notes in a hash of its own for which acquisitions it was the way.
fn quick() -> [String; 2] {
    [(scripts::ACQUIRE, "wait"), (scripts::RELEASE, "hand_over")].map(|(text, way)| {
        let (before, then) = (format!("local answer = {way}()\n"), "if answer then return answer end");
        let counted = format!("{before}  if answer then redis.call('HSET', '{way}', ARGV[1], '') end\n");
        assert!(text.contains(&format!("{before}  {then}")), "{way}");
        text.replace(&before, &counted)
    })
}

/// Returns how often each way was taken.
fn play(seed: u64) -> [usize; 2] {
    let sides = [Side::new(quick()), Side::new(scripts::SLOW.map(str::to_owned))];
    let mut chance = Chance::new(seed);
    let (readers, fears) = ([0, 3, 8][chance.below(3) as usize], chance.below(3) == 0);
    let mut clients = Clients { readers, fears, ids: Vec::new(), chance };
    for step in 0..OPERATIONS {
        let operation = clients.next(sides[0].holder());
        let [with, without] = sides.each_ref().map(|side| side.run(&operation));
        assert_eq!(with, without, "seed {seed} step {step}: {operation:?}");
        let (nanos, set) = match clients.chance.below(40) {
            0 => (clients.chance.below(6 * SECOND), 0),
            1 => (0, -5_000_000),
            2 => (0, 2_000_000),
            _ => (clients.chance.below(SECOND / 50), 0),
        };
        for side in &sides {
            side.wait(nanos);
            side.server.set_forward(set);
        }
    }
    ends_alike(seed, &sides);
    ["wait", "hand_over"].map(|way| {
        let stored = sides[0].stored(way.as_bytes());
        String::from_utf8_lossy(&stored).matches("$22").count()
    })
}

/// Both expire in the same second.
fn ends_alike(seed: u64, sides: &[Side; 2]) {
    loop {
        let [with, without] = sides.each_ref().map(|side| side.stored(PLACE));
        assert_eq!(with, without, "seed {seed}, at the end");
        if with == b"*0\r\n" {
            return;
        }
        sides.iter().for_each(|side| side.wait(SECOND));
    }
}

#[test]
fn the_quick_ways_make_no_difference() {
    let taken = (0..SEEDS).map(play).fold([0, 0], |[waits, hands], [wait, hand]| [waits + wait, hands + hand]);
    println!("{SEEDS} seeds: {} waited and {} handed over in the quick way", taken[0], taken[1]);
    assert!(taken.iter().all(|taken| *taken > 1_000), "{taken:?}");
}
