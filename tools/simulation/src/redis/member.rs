//! A server's part in a cluster: where requests must go, and locks that come and go.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::database::Hash;
use super::resp::Reply;
use super::server::{Inner, Server, is_run, is_version};
use super::slots::{PORT, Slots, host, slot_of};
use super::undone::Undone;

/// A server's part in a cluster.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) number: usize,
    pub(super) slots: Arc<Mutex<Slots>>,
}

impl Server {
    /// Makes the server a part of a cluster.
    pub(super) fn joins(&self, number: usize, slots: &Arc<Mutex<Slots>>, undone: &Undone) {
        let mut inner = self.inner();
        inner.undone = Arc::clone(undone);
        inner.member = Some(Member { number, slots: Arc::clone(slots) });
    }

    /// Returns whether the process is there and runs.
    pub(super) fn runs(&self) -> bool {
        let inner = self.inner();
        !inner.is_down && !inner.hangs
    }

    /// Gives a hash of a slot away, with the time for which it is to live on, in milliseconds.
    pub(super) fn give_away(&self, slot: u16) -> Option<(Vec<u8>, Hash, Option<i64>)> {
        let inner = self.inner();
        let now = inner.micros() / 1_000;
        let mut reachable = inner.interpreter.reachable();
        let name = reachable.database.hashes(now).keys().find(|name| slot_of(name) == slot)?.clone();
        let hash = reachable.database.remove(&name)?;
        let lives = hash.expires.map(|expires| expires - now);
        Some((name, hash, lives))
    }

    /// Takes a hash over from another server, as `MIGRATE` does: the time to live counts by the own clock.
    pub(super) fn take_over(&self, name: Vec<u8>, mut hash: Hash, lives: Option<i64>) {
        let mut inner = self.inner();
        let now = inner.micros() / 1_000;
        hash.expires = lives.map(|lives| now + lives);
        let was_there = {
            let mut reachable = inner.interpreter.reachable();
            reachable.database.hashes(now);
            reachable.database.insert(name, hash).is_some()
        };
        if was_there {
            inner
                .wrong
                .push("a lock was made on the server that it moves to, and is on the old one".to_owned());
        }
    }

    /// Tells the clients that listen to channels of a slot that these are not here any more.
    pub(super) fn unsubscribes(self: &Arc<Self>, slot: u16) {
        let mut told = Vec::new();
        for (&number, wire) in &mut self.inner().wires {
            let channels = std::mem::take(&mut wire.channels);
            let (gone, stay) = channels.into_iter().partition(|channel| slot_of(channel) == slot);
            wire.channels = stay;
            let gone: BTreeSet<_> = gone;
            told.extend(gone.into_iter().map(|channel| (number, channel, wire.channels.len() as i64)));
        }
        for (number, channel, left) in told {
            let push = [Reply::text("sunsubscribe"), Reply::Bulk(channel), Reply::Integer(left)];
            self.tell(number, Reply::Push(push.to_vec()).encode());
        }
    }

    /// Returns the names of the hashes of all locks.
    pub(super) fn names(&self) -> Vec<Vec<u8>> {
        let inner = self.inner();
        let now = inner.micros() / 1_000;
        let mut reachable = inner.interpreter.reachable();
        let hashes = reachable.database.hashes(now).iter();
        hashes.filter(|(_, hash)| !is_run(hash) && !is_version(hash)).map(|(name, _)| name.clone()).collect()
    }
}

impl Inner {
    /// Returns where a request must go instead, as servers of a cluster say it.
    pub(super) fn elsewhere(&self, words: &[&[u8]], is_asking: bool) -> Option<Reply> {
        let (key, is_channel) = match words {
            [b"EVALSHA" | b"EVAL", _, b"1", key, ..] | [b"HGET", key, _] => (key, false),
            [b"SSUBSCRIBE", channel] => (channel, true),
            _ => return None,
        };
        let member = self.member.as_ref()?;
        let (slot, slots) = (slot_of(key), member.slots.lock());
        let owner = slots.owner(slot, member.number);
        let to = |word: &str, server| Some(Reply::Error(format!("{word} {slot} {}:{PORT}", host(server))));
        if owner != member.number {
            return if is_asking && slots.comes_to(slot, member.number) { None } else { to("MOVED", owner) };
        }
        let target = slots.goes_to(slot, member.number).filter(|_| !is_channel)?;
        let now = self.micros() / 1_000;
        let is_here = self.interpreter.reachable().database.hashes(now).contains_key(*key);
        if is_here { None } else { to("ASK", target) }
    }
}
