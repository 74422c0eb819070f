//! The scripts on the server.

use async_trait::async_trait;
use futures_util::StreamExt;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use ylock_core::Mode;
use ylock_core::engine::{AcquisitionId, LossReason, Renewal, Ticket};
use ylock_core::environment::Moment;
use ylock_engine_redis::scripts;

use ylock_testkit::model::{Asked, Driven, Hears, LEASE, Manner, Reply, Shown};

use super::server;

const CLIENT: &str = "a client";

/// See the [module](self).
pub(crate) struct Scripts {
    connection: MultiplexedConnection,
    hashes: [String; 5],
    /// The channel on which a connection of this test listens.
    channel: String,
}

impl Scripts {
    pub(crate) async fn connect() -> Self {
        let mut connection = server::raw().await;
        let mut hashes = [const { String::new() }; 5];
        let texts = [scripts::ACQUIRE, scripts::RELEASE, scripts::RENEW, scripts::REVOKE, scripts::INSPECT];
        for (hash, text) in hashes.iter_mut().zip(texts) {
            let mut load = redis::cmd("SCRIPT");
            load.arg("LOAD").arg(text);
            *hash = load.query_async(&mut connection).await.expect("loaded");
        }
        let channel = ylock_core::Owner::new().to_string();
        let client = redis::Client::open(server::address()).expect("an address");
        let mut listening = client.get_async_pubsub().await.expect("the server answers");
        listening.subscribe(format!("ylock:{channel}")).await.expect("subscribed");
        // A task must take the messages, or the connection is full one day.
        tokio::spawn(async move { while listening.on_message().next().await.is_some() {} });
        Self { connection, hashes, channel }
    }

    fn call(&self, script: usize, place: &str) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.hashes[script]).arg(1).arg(place);
        command
    }

    async fn ask<T: redis::FromRedisValue>(&mut self, call: Cmd) -> T {
        call.query_async(&mut self.connection).await.expect("an answer")
    }

    fn channel(&self, hears: Hears) -> &str {
        match hears {
            Hears::Told => &self.channel,
            Hears::Asks => "-",
            Hears::Nothing => "nobody",
        }
    }
}

#[async_trait]
impl Driven for Scripts {
    async fn acquire(&mut self, place: &str, asked: Asked, manner: Manner) -> (Reply, Option<u64>) {
        let Asked { id, mode, hears } = asked;
        let ticket = manner.ticket.map_or("-".to_owned(), |ticket| ticket.get().to_string());
        let mut call = self.call(0, place);
        call.arg(hex(id)).arg(word(mode)).arg(lease()).arg(if manner.tries { "try" } else { "queue" });
        call.arg(if manner.unfair { "unfair" } else { "fair" })
            .arg(ticket)
            .arg(lease())
            .arg(hex(id))
            .arg(self.channel(hears))
            .arg(CLIENT);
        let answer: Vec<Value> = self.ask(call).await;
        let text = |place: usize| text(&answer[place]);
        match text(0).as_str() {
            "granted" => (Reply::Granted { contended: text(2) == "1" }, Some(text(1).parse().unwrap())),
            "queued" => (Reply::Queued, None),
            "busy" => (Reply::Busy, None),
            "undone" => (Reply::Undone, None),
            other => panic!("{other}"),
        }
    }

    async fn release(&mut self, place: &str, id: AcquisitionId, is_late: bool, next: Option<Asked>) -> bool {
        let mut call = self.call(1, place);
        call.arg(hex(id)).arg(if is_late { lease() } else { 0 });
        if let Some(Asked { id: next, mode, hears }) = next {
            call.arg(hex(next))
                .arg(word(mode))
                .arg(lease())
                .arg("-")
                .arg(lease())
                .arg(hex(next))
                .arg(self.channel(hears))
                .arg(CLIENT);
        }
        self.ask::<i64>(call).await == 1
    }

    async fn renew(&mut self, place: &str, id: AcquisitionId, mode: Mode, behind: Option<Asked>) -> Renewal {
        let mut call = self.call(2, place);
        call.arg(hex(id)).arg(word(mode)).arg(lease());
        if let Some(Asked { id: behind, mode, hears }) = behind {
            call.arg(hex(behind))
                .arg(word(mode))
                .arg(lease())
                .arg("-")
                .arg(hex(behind))
                .arg(self.channel(hears))
                .arg(CLIENT);
        }
        let answer: Vec<Value> = self.ask(call).await;
        match (text(&answer[0]).as_str(), text(&answer[1]).as_str()) {
            ("1", contended) => Renewal::Renewed { sent: Moment::ZERO, contended: contended == "1" },
            (_, "revoked") => Renewal::Lost(LossReason::Revoked),
            _ => Renewal::Lost(LossReason::Gone),
        }
    }

    async fn revoke(&mut self, place: &str, id: AcquisitionId) -> bool {
        let mut call = self.call(3, place);
        call.arg(hex(id));
        self.ask::<i64>(call).await == 1
    }

    /// Returns what the hash shows; every waiter must have exactly one place, and every place a waiter.
    async fn show(&mut self, place: &str) -> Shown {
        let call = self.call(4, place);
        let (_, list): (String, Vec<String>) = self.ask(call).await;
        let fields: Fields<'_> =
            list.chunks_exact(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect();
        let of = |prefix: &'static str| {
            fields.iter().filter_map(move |(field, value)| Some((field.strip_prefix(prefix)?, *value)))
        };
        let first_word = |text: &str| mode(text.split(' ').next().unwrap());
        let holders: Vec<_> = of("h:").map(|(id, text)| (read(id), first_word(text))).collect();
        let places = queue(&fields);
        assert_eq!(places.len(), of("a:").count(), "a waiter has one place: {fields:?}");
        assert_eq!(places.len(), of("q:").count(), "nothing stays of waiters that have left: {fields:?}");
        assert_eq!(fields.get("k").map_or(0, |count| count.parse().unwrap()), places.len());
        assert_eq!(fields.get("hn").map_or(0, |count| count.parse().unwrap()), holders.len());
        let waiter = |id: &&str| {
            let ticket = Ticket::from_number(ticket(&fields, id).0);
            (read(id), first_word(fields[format!("a:{id}").as_str()]), ticket)
        };
        Shown { holders, queue: places.iter().map(waiter).collect() }
    }

    async fn remove(&mut self, place: &str) {
        redis::cmd("DEL").arg(place).exec_async(&mut self.connection).await.expect("removed");
    }
}

type Fields<'a> = std::collections::BTreeMap<&'a str, &'a str>;

/// Returns the waiters in order. Each level of the queue must have a part of the level below, in the order of the tickets.
fn queue<'a>(fields: &Fields<'a>) -> Vec<&'a str> {
    let after = |field: &str, level: usize| {
        let next = fields.get(field)?.split(' ').nth(level)?;
        (next != "-").then_some(next)
    };
    let mut levels = Vec::new();
    for level in 0..12 {
        let mut all = Vec::new();
        let mut next = after("f", level);
        while let Some(id) = next {
            all.push(id);
            assert!(all.len() <= fields.len(), "level {level} has no end: {fields:?}");
            next = after(&format!("q:{id}"), level);
        }
        assert!(all.is_sorted_by_key(|id| ticket(fields, id)), "level {level}: {fields:?}");
        assert_eq!(after("z", level), all.last().copied(), "the last of level {level}: {fields:?}");
        levels.push(all);
    }
    for pair in levels.windows(2) {
        assert!(pair[1].iter().all(|id| pair[0].contains(id)), "{fields:?}");
    }
    levels.swap_remove(0)
}

/// Returns the ticket of a waiter, and its number, which decides among equal tickets.
fn ticket(fields: &Fields<'_>, id: &str) -> (i64, u64) {
    let words: Vec<_> = fields[format!("a:{id}").as_str()].split(' ').collect();
    (words[4].parse().expect("a ticket"), words[5].parse().expect("a number"))
}

/// Returns an identity as the engine sends it.
fn hex(id: AcquisitionId) -> String {
    format!("{:032x}", id.as_u128())
}

fn read(hex: &str) -> AcquisitionId {
    AcquisitionId::from_u128(u128::from_str_radix(hex, 16).expect("an identity"))
}

/// Returns the lease of all, in milliseconds.
fn lease() -> u64 {
    LEASE.as_millis() as u64
}

fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Read => "r",
        Mode::Write => "w",
    }
}

fn mode(word: &str) -> Mode {
    if word == "w" { Mode::Write } else { Mode::Read }
}

fn text(value: &Value) -> String {
    redis::from_redis_value_ref::<String>(value).expect("a word or a number")
}
