//! The scripts on the server.

use futures_util::StreamExt;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use ylock_engine_redis::scripts;

use super::reference::{Hears, Mode, Other, Renewal, Reply, Shown};
use super::server;

/// The lease is so long that none ends while operations are compared.
const CLIENT: &str = "a client";
const LEASE: &str = "3600000";

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

    #[allow(clippy::too_many_arguments, reason = "as many as the script has")]
    pub(crate) async fn acquire(
        &mut self,
        place: &str,
        id: &str,
        mode: Mode,
        tries: bool,
        unfair: bool,
        ticket: Option<i64>,
        hears: Hears,
    ) -> Reply {
        let ticket = ticket.map_or("-".to_owned(), |ticket| ticket.to_string());
        let mut call = self.call(0, place);
        call.arg(id).arg(word(mode)).arg(LEASE).arg(if tries { "try" } else { "queue" });
        call.arg(if unfair { "unfair" } else { "fair" })
            .arg(ticket)
            .arg(LEASE)
            .arg(id)
            .arg(self.channel(hears))
            .arg(CLIENT);
        let answer: Vec<Value> = self.ask(call).await;
        let text = |place: usize| text(&answer[place]);
        match text(0).as_str() {
            "granted" => Reply::Granted { token: text(1).parse().unwrap(), contended: text(2) == "1" },
            "queued" => Reply::Queued { ticket: text(1).parse().unwrap() },
            "busy" => Reply::Busy,
            other => panic!("{other}"),
        }
    }

    pub(crate) async fn release(&mut self, place: &str, id: &str, next: Other<'_>) -> bool {
        let mut call = self.call(1, place);
        call.arg(id).arg(0);
        if let Some((next, mode, hears)) = next {
            call.arg(next)
                .arg(word(mode))
                .arg(LEASE)
                .arg("-")
                .arg(LEASE)
                .arg(next)
                .arg(self.channel(hears))
                .arg(CLIENT);
        }
        self.ask::<i64>(call).await == 1
    }

    pub(crate) async fn renew(&mut self, place: &str, id: &str, mode: Mode, behind: Other<'_>) -> Renewal {
        let mut call = self.call(2, place);
        call.arg(id).arg(word(mode)).arg(LEASE);
        if let Some((behind, mode, hears)) = behind {
            call.arg(behind)
                .arg(word(mode))
                .arg(LEASE)
                .arg("-")
                .arg(behind)
                .arg(self.channel(hears))
                .arg(CLIENT);
        }
        let answer: Vec<Value> = self.ask(call).await;
        match (text(&answer[0]).as_str(), text(&answer[1]).as_str()) {
            ("1", contended) => Renewal::Renewed { contended: contended == "1" },
            (_, "revoked") => Renewal::Revoked,
            _ => Renewal::Gone,
        }
    }

    pub(crate) async fn revoke(&mut self, place: &str, id: &str) -> bool {
        let mut call = self.call(3, place);
        call.arg(id);
        self.ask::<i64>(call).await == 1
    }

    /// Returns what the hash shows; every waiter must have exactly one place, and every place a waiter.
    pub(crate) async fn show(&mut self, place: &str) -> (Shown, Vec<i64>) {
        let call = self.call(4, place);
        let (_, list): (String, Vec<String>) = self.ask(call).await;
        let fields: Fields<'_> =
            list.chunks_exact(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect();
        let of = |prefix: &'static str| {
            fields.iter().filter_map(move |(field, value)| Some((field.strip_prefix(prefix)?, *value)))
        };
        let first_word = |text: &str| mode(text.split(' ').next().unwrap());
        let holders: Vec<_> = of("h:").map(|(id, text)| (id.to_owned(), first_word(text))).collect();
        let places = queue(&fields);
        assert_eq!(places.len(), of("a:").count(), "a waiter has one place: {fields:?}");
        assert_eq!(places.len(), of("q:").count(), "nothing stays of waiters that have left: {fields:?}");
        assert_eq!(fields.get("k").map_or(0, |count| count.parse().unwrap()), places.len());
        assert_eq!(fields.get("hn").map_or(0, |count| count.parse().unwrap()), holders.len());
        let tickets = places.iter().map(|id| ticket(&fields, id).0).collect();
        let queue =
            places.iter().map(|id| ((*id).to_owned(), first_word(fields[format!("a:{id}").as_str()])));
        ((holders, queue.collect()), tickets)
    }

    pub(crate) async fn remove(&mut self, place: &str) {
        redis::cmd("DEL").arg(place).exec_async(&mut self.connection).await.expect("removed");
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
