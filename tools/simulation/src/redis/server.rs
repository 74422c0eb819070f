//! A Redis server: its clock, its data, and what it does with what arrives.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use ylock_engine_redis::scripts;

use super::database::{Database, Hash};
use super::end::{End, Inbox};
use super::interpreter::{Interpreter, MEMORY, name_of, time};
use super::member::Member;
use super::resp::{Reply, Request, take_request};
use super::undone::Undone;
use super::wire::Wire;
use crate::chance::Chance;
use crate::clocks::START;
use crate::store::Weather;
use crate::world::World;

/// The longest time for which the server remembers a hash that nothing is in any more: a request may have been a minute on its way.
const KEPT: i64 = 150_000;
/// The time for which it keeps the last run of a job: a day, and what its clock is set back.
const KEPT_RUN: i64 = 24 * 3_600_000 + 60_000;
/// How far the clock is set back in all, in microseconds: less than the time for which the server remembers the last token of a lock that is
/// not used.
const MOST_BACK: u64 = 25_000_000;
/// How far the data of a replica may be behind, at most.
const BEHIND: u64 = 2_000_000_000;

/// A mistake in the scripts: a text, and what stands in its place.
pub type Mistake = Option<(&'static str, &'static str)>;

/// A Redis server in memory.
pub struct Server {
    pub(super) world: Arc<World>,
    inner: Mutex<Inner>,
}

pub(super) struct Inner {
    pub(super) world: Arc<World>,
    pub(super) chance: Chance,
    pub(super) weather: Weather,
    pub(super) wires: BTreeMap<u64, Wire>,
    pub(super) last_wire: u64,
    pub(super) is_down: bool,
    /// True while the process does not run: what arrives waits.
    pub(super) hangs: bool,
    waiting: VecDeque<Arrival>,
    /// The speed of the clock, and its error in microseconds.
    rate: f64,
    offset: i64,
    pub(super) interpreter: Interpreter,
    has_replica: bool,
    /// The data as it was, and when: what a replica may have.
    past: VecDeque<(u64, Database)>,
    /// The name of the script that releases.
    pub(super) release: String,
    pub(super) undone: Undone,
    pub(super) member: Option<Member>,
    /// What no script may do.
    pub(super) wrong: Vec<String>,
}

/// What arrives at the server.
#[derive(Debug)]
pub(super) enum Arrival {
    Bytes(u64, Vec<u8>),
    HangUp(u64),
}

impl Server {
    /// Starts a server.
    ///
    /// # Panics
    /// If there is no interpreter for the scripts.
    pub fn start(
        world: &Arc<World>,
        weather: Weather,
        rate: f64,
        chance: Chance,
        mistake: Mistake,
        has_replica: bool,
    ) -> Arc<Self> {
        let interpreter = Interpreter::new(mistake).expect("an interpreter");
        let inner = Inner {
            world: Arc::clone(world),
            chance,
            weather,
            wires: BTreeMap::new(),
            last_wire: 0,
            is_down: false,
            hangs: false,
            waiting: VecDeque::new(),
            rate,
            offset: 0,
            interpreter,
            has_replica,
            past: VecDeque::new(),
            release: name_of(scripts::RELEASE.as_bytes()),
            undone: Undone::default(),
            member: None,
            wrong: Vec::new(),
        };
        Arc::new(Self { world: Arc::clone(world), inner: Mutex::new(inner) })
    }

    pub(super) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// Answers a request at once, as on a connection that takes no time: for comparing it with a real server.
    ///
    /// # Panics
    /// If the request has no answer of its own.
    pub fn answer(&self, words: &[&[u8]]) -> Vec<u8> {
        self.answer_all(words).pop().expect("an answer")
    }

    /// Answers a request as [`answer`](Self::answer) does. Returns the messages to those that listen, and the answer last.
    pub fn answer_all(&self, words: &[&[u8]]) -> Vec<Vec<u8>> {
        let request = words.iter().map(|word| word.to_vec()).collect();
        let replies = self.inner().carry_out(0, &request);
        replies.into_iter().map(|(_, reply)| reply.encode()).collect()
    }

    /// Opens a connection that listens to a channel, and is not read.
    pub fn listen(&self, channel: &[u8]) {
        let mut inner = self.inner();
        let (number, _) = inner.open(&Arc::default());
        inner.accept(number);
        inner.subscribe(number, channel, "subscribe");
    }

    /// Opens a connection. Returns the client's end of it, and how long that takes; `None` if the server is never reached.
    pub(super) fn dial(self: &Arc<Self>) -> (End, Option<Duration>) {
        let inbox = Arc::<Inbox>::default();
        let (number, time) = self.inner().open(&inbox);
        (End { server: Arc::clone(self), number, inbox }, time)
    }

    /// Ends the process, with its connections and all that is not stored. The clients hear of that, or not.
    pub(crate) fn stop(&self) {
        let mut inner = self.inner();
        let is_told = inner.chance.happens(0.5);
        inner.is_down = true;
        inner.hangs = false;
        inner.waiting.clear();
        inner.close_all(is_told);
        inner.interpreter.flush();
    }

    pub(crate) fn restart(&self) {
        self.inner().is_down = false;
    }

    /// Restarts without any data.
    pub(crate) fn restart_empty(&self) {
        let mut inner = self.inner();
        inner.is_down = false;
        inner.interpreter.reachable().database = Database::default();
    }

    /// A replica takes over, which lacks the last writes.
    pub(crate) fn fail_over(&self) {
        self.stop();
        let mut inner = self.inner();
        if let Some((_, data)) = inner.past.pop_front() {
            inner.interpreter.reachable().database = data;
        }
        inner.past.clear();
        inner.is_down = false;
    }

    /// The process does not run.
    pub(crate) fn hang(&self) {
        self.inner().hangs = true;
    }

    pub(crate) fn resume(self: &Arc<Self>) {
        let waiting = {
            let mut inner = self.inner();
            inner.hangs = false;
            std::mem::take(&mut inner.waiting)
        };
        waiting.into_iter().for_each(|arrival| self.arrives(arrival));
    }

    /// Sets the clock back, by up to half of what it may still be set back.
    pub(crate) fn set_back(&self) {
        let mut inner = self.inner();
        let left = MOST_BACK.saturating_add_signed(inner.offset);
        let by = inner.chance.below(left / 2 + 1);
        inner.offset = inner.offset.saturating_sub_unsigned(by);
    }

    /// Sets the clock forward, by so many microseconds; back, if they are negative.
    pub fn set_forward(&self, by: i64) {
        self.inner().offset += by;
    }

    /// Ends all trouble.
    pub(crate) fn calm_down(self: &Arc<Self>) {
        {
            let mut inner = self.inner();
            inner.is_down = false;
            inner.weather.calm_down();
            inner.mend();
        }
        self.resume();
    }

    /// Returns what is left that should not be: holders and waiters that count, data that stays for ever, scripts that failed.
    pub(super) fn left(&self) -> Vec<String> {
        let mut inner = self.inner();
        let now = inner.micros() / 1_000;
        let mut left = std::mem::take(&mut inner.wrong);
        let mut reachable = inner.interpreter.reachable();
        for (name, hash) in reachable.database.hashes(now).iter().filter(|(_, hash)| !is_version(hash)) {
            left.extend(
                what_counts(hash, now).map(|what| format!("{}: {what}", String::from_utf8_lossy(name))),
            );
        }
        left
    }

    /// Does what has arrived, or leaves it until the process runs.
    pub(super) fn arrives(self: &Arc<Self>, arrival: Arrival) {
        let number = {
            let mut inner = self.inner();
            if inner.hangs {
                inner.waiting.push_back(arrival);
                return;
            }
            match arrival {
                Arrival::HangUp(number) => return inner.close(number, false),
                Arrival::Bytes(number, bytes) => match inner.wires.get_mut(&number) {
                    Some(wire) => {
                        wire.unread.extend(bytes);
                        number
                    }
                    None => return,
                },
            }
        };
        while let Some(replies) = self.next_request(number) {
            for (to, reply) in replies {
                self.tell(to, reply.encode());
            }
        }
    }

    /// Carries out the next request of a connection that is there as a whole. Returns what is sent, and to which connections.
    fn next_request(&self, number: u64) -> Option<Vec<(u64, Reply)>> {
        let mut inner = self.inner();
        let request = take_request(&mut inner.wires.get_mut(&number)?.unread)?;
        let replies = inner.carry_out(number, &request);
        self.world.note(|| format!("connection {number}: {} -> {replies:?}", shown(&request)));
        Some(replies)
    }
}

impl Inner {
    pub(super) fn micros(&self) -> i64 {
        START + (self.world.now() as f64 / 1e3 * self.rate) as i64 + self.offset
    }

    fn carry_out(&mut self, number: u64, request: &Request) -> Vec<(u64, Reply)> {
        let words: Vec<_> = request.iter().map(Vec::as_slice).collect();
        // It counts for the next request alone, whatever that is.
        let is_asking = self.wires.get_mut(&number).is_some_and(|wire| std::mem::take(&mut wire.is_asking));
        if let Some(elsewhere) = self.elsewhere(&words, is_asking) {
            return vec![(number, elsewhere)];
        }
        let reply = match &words[..] {
            [b"EVALSHA", hash, b"1", key, ..] => {
                let hash = String::from_utf8_lossy(hash).into_owned();
                return self.run(number, &hash, key, &request[4..]);
            }
            [b"EVAL", text, b"1", key, ..] => match self.interpreter.load(text) {
                Ok(hash) => return self.run(number, &hash, key, &request[4..]),
                Err(error) => Reply::Error(format!("ERR {error}")),
            },
            [b"HGET", key, field] => self.get(key, field),
            [b"SCRIPT", b"LOAD", text] => match self.interpreter.load(text) {
                Ok(hash) => Reply::text(hash),
                Err(error) => Reply::Error(format!("ERR {error}")),
            },
            [b"SUBSCRIBE", channel] => self.subscribe(number, channel, "subscribe"),
            [b"SSUBSCRIBE", channel] => self.subscribe(number, channel, "ssubscribe"),
            [b"ASKING"] => {
                if let Some(wire) = self.wires.get_mut(&number) {
                    wire.is_asking = true;
                }
                Reply::Ok
            }
            [b"CLUSTER", b"INFO"] if let Some(member) = &self.member => {
                member.slots.lock().info(member.number)
            }
            [b"CLUSTER", b"SLOTS"] if let Some(member) = &self.member => {
                member.slots.lock().ranges(member.number)
            }
            [b"TIME"] => Reply::Array(time(self.micros()).map(Reply::text).to_vec()),
            [b"PING"] => Reply::Pong,
            [b"CLIENT", ..] => Reply::Ok,
            [b"HELLO", ..] => Reply::Map(vec![(Reply::text("server"), Reply::text("redis"))]),
            [b"INFO", ..] => {
                let is_member = u8::from(self.member.is_some());
                Reply::text(format!(
                    "redis_version:7.2.4\r\nrole:master\r\ncluster_enabled:{is_member}\r\n{MEMORY}"
                ))
            }
            _ => {
                self.wrong.push(format!("the simulated server does not know {}", shown(request)));
                Reply::Error("ERR unknown command".to_owned())
            }
        };
        vec![(number, reply)]
    }

    fn get(&mut self, key: &[u8], field: &[u8]) -> Reply {
        let now = self.micros() / 1_000;
        let found = self.interpreter.reachable().database.call(b"HGET", &[key.to_vec(), field.to_vec()], now);
        found.unwrap_or(Reply::Nil)
    }

    fn subscribe(&mut self, number: u64, channel: &[u8], word: &str) -> Reply {
        let Some(wire) = self.wires.get_mut(&number) else { return Reply::Nil };
        wire.channels.insert(channel.to_vec());
        let count = Reply::Integer(wire.channels.len() as i64);
        Reply::Push(vec![Reply::text(word), Reply::Bulk(channel.to_vec()), count])
    }

    fn run(&mut self, number: u64, hash: &str, key: &[u8], arguments: &[Vec<u8>]) -> Vec<(u64, Reply)> {
        self.keep_for_replica();
        let micros = self.micros();
        {
            let mut reachable = self.interpreter.reachable();
            reachable.micros = micros;
            reachable.listeners.clear();
            for channel in self.wires.values().flat_map(|wire| &wire.channels) {
                *reachable.listeners.entry(channel.clone()).or_default() += 1;
            }
        }
        let reply = match self.interpreter.run(hash, key, arguments) {
            None => Reply::Error("NOSCRIPT No matching script. Please use EVAL.".to_owned()),
            Some(Ok(reply)) => reply,
            Some(Err(error)) => {
                self.wrong.push(format!("a script failed: {error}"));
                Reply::Error("ERR a script failed".to_owned())
            }
        };
        self.look_for_undone(hash, key, arguments);
        let published = std::mem::take(&mut self.interpreter.reachable().published);
        let mut replies = Vec::new();
        let word = if self.member.is_some() { "smessage" } else { "message" };
        for (channel, text) in published {
            let hear = self.wires.iter().filter(|(_, wire)| wire.channels.contains(&channel));
            let message = [Reply::text(word), Reply::Bulk(channel.clone()), Reply::Bulk(text)];
            replies.extend(hear.map(|(&to, _)| (to, Reply::Push(message.to_vec()))));
        }
        replies.push((number, reply));
        replies
    }

    /// Keeps the data of the last seconds, as replicas may have them.
    fn keep_for_replica(&mut self) {
        if !self.has_replica {
            return;
        }
        let now = self.world.now();
        while self.past.get(1).is_some_and(|(since, _)| since + BEHIND < now) {
            self.past.pop_front();
        }
        let data = self.interpreter.reachable().database.clone();
        self.past.push_back((now, data));
    }
}

/// Returns whether this is what is kept of a job, and not of a lock.
pub(super) fn is_run(hash: &Hash) -> bool {
    hash.fields.keys().any(|field| field.as_slice() == b"run")
}

/// Returns whether this says in which version the locks are kept: it stays.
pub(super) fn is_version(hash: &Hash) -> bool {
    hash.fields.keys().any(|field| field.as_slice() == b"version")
}

/// Returns the holders and waiters of a lock that are not over, and what would never end.
fn what_counts(hash: &Hash, now: i64) -> impl Iterator<Item = String> {
    // The last run of a job is kept for longer.
    let kept = if is_run(hash) { KEPT_RUN } else { KEPT };
    let ends = hash.expires.is_none_or(|expires| expires > now + kept).then(|| "does not end".to_owned());
    let counts = hash.fields.iter().filter_map(move |(field, value)| {
        let (field, value) = (String::from_utf8_lossy(field), String::from_utf8_lossy(value));
        let is_one = field.starts_with("h:") || field.starts_with("a:");
        let until: i64 = value.split(' ').nth(1)?.parse().ok()?;
        (is_one && until > now).then(|| format!("{field} {value}"))
    });
    counts.chain(ends).collect::<Vec<_>>().into_iter()
}

/// Shows a request, without the texts of scripts.
fn shown(request: &Request) -> String {
    let word = |word: &Vec<u8>| match std::str::from_utf8(word) {
        Ok(text) if text.len() <= 64 => text.to_owned(),
        _ => format!("({} bytes)", word.len()),
    };
    request.iter().map(word).collect::<Vec<_>>().join(" ")
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server")
    }
}
