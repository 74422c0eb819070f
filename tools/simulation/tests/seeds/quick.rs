//! The quick ways of Redis's scripts do what the scripts do without them: the same operations at the same times, with and without, on two
//! simulated servers, whose data, answers and messages must not differ in a byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ylock_engine_redis::scripts;
use ylock_simulation::chance::Chance;
use ylock_simulation::faults::Plan;
use ylock_simulation::redis::Server;
use ylock_simulation::world::World;

use crate::support;

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
            _ => (What::Renew, self.renew(holder)),
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

    /// Mostly of what is held, and now and then with a waiter behind it.
    fn renew(&mut self, holder: Option<String>) -> Vec<String> {
        let mut arguments = vec![holder.unwrap_or_else(|| self.known()), self.mode(), self.lease()];
        if self.chance.below(3) == 0 {
            arguments.extend([self.new_id(), self.mode(), self.lease()]);
            let mut others = self.place_and_who();
            others.remove(1);
            arguments.extend(others);
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

/// Returns the texts with the quick ways, and this in place of that; each notes in a hash of its own for which acquisitions it was the way.
fn quick((right, wrong): (&str, &str)) -> [String; 2] {
    [(scripts::ACQUIRE, "wait"), (scripts::RELEASE, "hand_over")].map(|(text, way)| {
        let then = format!("local answer = {way}()\n");
        assert!(text.contains(&then), "{way}");
        let counted = format!("{then}  if answer then redis.call('HSET', '{way}', ARGV[1], '') end\n");
        text.replace(right, wrong).replace(&then, &counted)
    })
}

/// Returns how often each way was taken, or the first difference.
fn play(seed: u64, mistake: (&str, &str)) -> Result<[usize; 2], String> {
    let sides = [Side::new(quick(mistake)), Side::new(scripts::SLOW.map(str::to_owned))];
    let mut chance = Chance::new(seed);
    let (readers, fears) = ([0, 3, 8][chance.below(3) as usize], chance.below(3) == 0);
    let mut clients = Clients { readers, fears, ids: Vec::new(), chance };
    for step in 0..OPERATIONS {
        let operation = clients.next(sides[0].holder());
        let [with, without] = sides.each_ref().map(|side| side.run(&operation));
        if with != without {
            return Err(format!(
                "seed {seed} step {step}: {operation:?}: {with:?}, and without: {without:?}"
            ));
        }
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
    end_alike(&sides).map_err(|()| format!("seed {seed}: they expire at different times"))?;
    Ok(["wait", "hand_over"].map(|way| {
        let stored = sides[0].stored(way.as_bytes());
        String::from_utf8_lossy(&stored).matches("$22").count()
    }))
}

/// Both expire in the same second.
fn end_alike(sides: &[Side; 2]) -> Result<(), ()> {
    loop {
        let [with, without] = sides.each_ref().map(|side| side.stored(PLACE));
        if with != without {
            return Err(());
        }
        if with == b"*0\r\n" {
            return Ok(());
        }
        sides.iter().for_each(|side| side.wait(SECOND));
    }
}

#[test]
fn the_quick_ways_make_no_difference() {
    let what = "redis, the quick ways";
    let taken = [AtomicUsize::new(0), AtomicUsize::new(0)];
    support::none_fails(what, |seed| match play(seed, ("", "")) {
        Ok(of_seed) => {
            taken.iter().zip(of_seed).for_each(|(all, more)| _ = all.fetch_add(more, Ordering::Relaxed));
            None
        }
        Err(difference) => Some(difference),
    });
    let (taken, seeds) = (taken.map(AtomicUsize::into_inner), support::seeds_of(what).count());
    println!("{} waited and {} handed over in the quick way", taken[0], taken[1]);
    assert!(taken.iter().all(|taken| *taken > 5 * seeds), "{taken:?} in {seeds} seeds");
}

/// What stands in the quick ways, what stands there in its place, and the seed that found it last.
const MISTAKES: &[(&str, &str, u64)] = &[
    // A waiter that is usual.
    ("or tonumber(alive) <= now", "", 2),
    ("if behind == '-' and tonumber(alive) > now + lease then return nil end", "", 4),
    // Waiting.
    ("if not w or xn or held", "if xn or held", 1),
    ("if not w or xn or held", "if not w or held", 3),
    ("if not w or xn or held", "if not w or xn", 0),
    ("or ARGV[4] ~= 'queue'", "", 2),
    ("if writer_ends <= now or", "if", 86),
    ("or writer_ends > now + l then", "then", 3),
    ("if not usual_waiter(ends[1], now) or", "if", 19),
    ("if not its_ticket or", "if", 2),
    ("or tonumber(its_ticket) > tonumber(ticket)", "", 2),
    ("whole(math.min(tonumber(ARGV[6]) or micros, micros))", "whole(tonumber(ARGV[6]) or micros)", 0),
    ("if levels == 1 and tail then", "if tail then", 0),
    ("z = id .. string.sub(queue.z, #tail + 1)", "z = queue.z", 0),
    ("if mode == 'w' then fields[7]", "if mode == 'r' then fields[7]", 0),
    ("    tails[level] = id\n", "", 0),
    ("table.concat({ mode, alive, lease, since, ticket, number, '-' }, ' ') }, ticket", "own }, ticket", 2),
    ("'a:' .. first, 'a:' .. tail, 'q:' .. tail", "'a:' .. tail, 'a:' .. tail, 'q:' .. tail", 19),
    // Handing over.
    ("ARGV[2] ~= '0' or ", "", 0),
    ("or ARGV[3] then return nil end", "then return nil end", 0),
    ("if hn ~= '1' or not held", "if not held", 1),
    ("or not held or stander", "or stander", 0),
    ("or stander or not k", "or not k", 0),
    ("if not its_mode or (mode", "if (mode", 4),
    ("or (mode == 'r' and its_mode == 'r')", "", 0),
    ("return tonumber(listeners) > 0 and", "return", 1),
    ("sharded and 'SPUBLISH' or 'PUBLISH', channel, text }", "'PUBLISH', channel, 'text' }", 0),
    ("local rivals = mode == 'w' and k - 1 or", "local rivals = mode == 'w' and tonumber(k) or", 0),
    ("if mode == 'w' then set('w', '1') else del('w') end", "set('w', '1')", 0),
    ("levels * (#first + 1)", "(#first + 1)", 0),
    ("if after == '-' then z = with_word", "if false then z = with_word", 0),
    ("if mode == 'w' then set('kw', kw - 1) end", "", 0),
    ("math.max((t or 0) + 1, micros)", "micros", 0),
    ("return ends_at > now and 1 or 0", "return 1", 41),
    // Both.
    ("if tonumber(ends or 0) >= now + lease + RETENTION / 2 then", "if true then", 10),
    ("  redis.call('PEXPIREAT', KEYS[1], gone)\nend", "end", 10),
];

#[test]
fn every_condition_of_the_quick_ways_is_needed() {
    for (right, wrong, at) in MISTAKES {
        assert!([scripts::ACQUIRE, scripts::RELEASE].concat().contains(right), "{right:?}");
        let mistake = format!("{wrong:?} for {right:?}");
        support::must_be_found(&mistake, *at, 600, |seed| play(seed, (right, wrong)).err());
    }
}
