//! One lock, used by its scripts, whose hash a test can read and change: what takes time, or is hard to bring about, is written into it.

use std::collections::BTreeMap;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue, Value};
use ylock_engine_redis::scripts;

use super::server;

/// So long that nothing that counts from now ends in a test. In milliseconds, as all times here.
pub(crate) const LONG: u64 = 3_600_000;

/// An acquisition that comes along with a release or a renewal: its id, its mode, and its lease.
pub(crate) type ChildProcess<'a> = Option<(&'a str, &'a str, u64)>;

/// See the [module](self).
pub(crate) struct Lock {
    pub(crate) connection: MultiplexedConnection,
    place: String,
}

impl Lock {
    pub(crate) async fn new() -> Self {
        let place = format!("ylock-scripts:{}", ylock_core::Owner::new());
        Self { connection: server::raw().await, place }
    }

    /// Asks as a waiter that listens nowhere, and returns the words of the answer.
    pub(crate) async fn acquire(&mut self, id: &str, mode: &str, lease: u64) -> Vec<String> {
        self.acquire_with(id, mode, lease, "-", "-").await
    }

    pub(crate) async fn acquire_with(
        &mut self,
        id: &str,
        mode: &str,
        lease: u64,
        ticket: &str,
        channel: &str,
    ) -> Vec<String> {
        let lease = lease.to_string();
        let words = [id, mode, &lease, "queue", "fair", ticket, &lease, id, channel, "a client"];
        self.run(scripts::ACQUIRE, &words).await
    }

    /// Returns whether there was something to give back. `late` is for how long the acquisition is remembered as undone.
    pub(crate) async fn release(&mut self, id: &str, late: u64, next: ChildProcess<'_>) -> bool {
        let late = late.to_string();
        let mut words = vec![id, &late];
        let lease = next.map_or(String::new(), |(.., lease)| lease.to_string());
        if let Some((next, mode, _)) = next {
            words.extend([next, mode, &lease, "-", &lease, next, "-", "a client"]);
        }
        self.run(scripts::RELEASE, &words).await == ["1"]
    }

    /// Returns whether the script found something that no script writes.
    pub(crate) async fn release_fails(&mut self, id: &str) -> bool {
        let mut call = redis::cmd("EVAL");
        call.arg(scripts::RELEASE).arg(1).arg(&self.place).arg(&[id, "0"]);
        call.query_async::<Value>(&mut self.connection).await.is_err()
    }

    /// Returns whether the grant was renewed.
    pub(crate) async fn renew(&mut self, id: &str, mode: &str, lease: u64, behind: ChildProcess<'_>) -> bool {
        let lease = lease.to_string();
        let mut words = vec![id, mode, &lease];
        let its_lease = behind.map_or(String::new(), |(.., lease)| lease.to_string());
        if let Some((behind, mode, _)) = behind {
            words.extend([behind, mode, &its_lease, "-", behind, "-", "a client"]);
        }
        self.run(scripts::RENEW, &words).await[0] == "1"
    }

    /// Returns whether a try may get the lock.
    pub(crate) async fn may_be_free(&mut self) -> bool {
        self.run(scripts::MAY_BE_FREE, &[]).await == ["1"]
    }

    /// Returns whether the acquisition held the lock.
    pub(crate) async fn revoke(&mut self, id: &str) -> bool {
        self.run(scripts::REVOKE, &[id]).await == ["1"]
    }

    async fn run(&mut self, script: &str, words: &[&str]) -> Vec<String> {
        let mut call = redis::cmd("EVAL");
        call.arg(script).arg(1).arg(&self.place).arg(words);
        match self.ask(&call).await {
            Value::Array(values) => values.iter().map(text).collect(),
            value => vec![text(&value)],
        }
    }

    /// Makes the hash expire after this time, and its scripts know that.
    pub(crate) async fn expires_in(&mut self, time: u64) {
        let soon = (self.now().await + time).to_string();
        self.set(&[("e", &soon)]).await;
        let expires = self.with_place("PEXPIREAT").arg(&soon).to_owned();
        self.ask::<()>(&expires).await;
    }

    /// Returns for how long the hash lives.
    pub(crate) async fn lives_for(&mut self) -> u64 {
        let question = self.with_place("PTTL");
        self.ask(&question).await
    }

    pub(crate) async fn set(&mut self, fields: &[(&str, &str)]) {
        let write = self.with_place("HSET").arg(fields).to_owned();
        self.ask::<()>(&write).await;
    }

    pub(crate) async fn field(&mut self, field: &str) -> Option<String> {
        let read = self.with_place("HGET").arg(field).to_owned();
        self.ask(&read).await
    }

    /// Returns the whole hash.
    pub(crate) async fn all(&mut self) -> BTreeMap<String, String> {
        let read = self.with_place("HGETALL");
        self.ask(&read).await
    }

    /// Returns a time, or another number, out of a record: the word at this place, counted from zero.
    pub(crate) async fn word(&mut self, field: &str, place: usize) -> u64 {
        let text = self.field(field).await.expect("the field is there");
        text.split(' ').nth(place).expect("it has so many words").parse().expect("a number")
    }

    /// Replaces one word of a record.
    pub(crate) async fn set_word(&mut self, field: &str, place: usize, word: u64) {
        let (text, word) = (self.field(field).await.expect("the field is there"), word.to_string());
        let mut words: Vec<_> = text.split(' ').collect();
        words[place] = &word;
        self.set(&[(field, &words.join(" "))]).await;
    }

    /// Returns the server's time.
    pub(crate) async fn now(&mut self) -> u64 {
        let (seconds, micros): (u64, u64) = self.ask(&redis::cmd("TIME")).await;
        seconds * 1_000 + micros / 1_000
    }

    fn with_place(&self, command: &str) -> Cmd {
        redis::cmd(command).arg(&self.place).to_owned()
    }

    pub(crate) async fn ask<T: FromRedisValue>(&mut self, call: &Cmd) -> T {
        call.query_async(&mut self.connection).await.expect("an answer")
    }

    pub(crate) async fn remove(mut self) {
        let remove = self.with_place("DEL");
        self.ask::<()>(&remove).await;
    }
}

fn text(value: &Value) -> String {
    redis::from_redis_value_ref::<String>(value).expect("a word or a number")
}
