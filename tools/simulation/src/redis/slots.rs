//! Which server of a cluster keeps which slot, as each server knows it.

use std::collections::BTreeMap;

use super::resp::Reply;

/// The number of slots, fixed by Redis.
const SLOTS: u16 = 16_384;
/// All servers have this port; their hosts differ.
pub(super) const PORT: u16 = 6379;

/// The slots of a cluster.
#[derive(Debug)]
pub(super) struct Slots {
    servers: usize,
    /// The number of the last move.
    epoch: u64,
    /// For each server: the slots of which it knows that they have moved, by which move, and where they are.
    known: Vec<BTreeMap<u16, News>>,
    /// The slots that are being moved, from one server to another.
    moving: BTreeMap<u16, (usize, usize)>,
}

/// The number of a move, and the server that keeps the slot since.
pub(super) type News = (u64, usize);

/// Returns the slot of a key or channel: that of the part in braces.
pub(super) fn slot_of(key: &[u8]) -> u16 {
    let part = key.iter().position(|&byte| byte == b'{').and_then(|begin| {
        let rest = &key[begin + 1..];
        rest.iter().position(|&byte| byte == b'}').filter(|end| *end > 0).map(|end| &rest[..end])
    });
    crc16(part.unwrap_or(key)) % SLOTS
}

/// Returns the checksum that Redis uses, XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(
            crc ^ u16::from(*byte) << 8,
            |crc, _| {
                if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 }
            },
        )
    })
}

/// Returns the host of a server.
pub(super) fn host(server: usize) -> String {
    format!("server-{server}")
}

/// Returns the number of the server with this host.
pub(super) fn server_at(host: &str) -> Option<usize> {
    host.strip_prefix("server-")?.parse().ok()
}

impl Slots {
    pub(super) fn new(servers: usize) -> Self {
        Self { servers, epoch: 0, known: vec![BTreeMap::new(); servers], moving: BTreeMap::new() }
    }

    /// Returns the server that keeps a slot, as one of them knows it.
    pub(super) fn owner(&self, slot: u16, as_known_by: usize) -> usize {
        let first = usize::from(slot) * self.servers / usize::from(SLOTS);
        self.known[as_known_by].get(&slot).map_or(first, |(_, owner)| *owner)
    }

    /// Begins to move a slot, from the server that keeps it to the next one. Returns these two; `None` if it is being moved already,
    /// or there is no other server.
    pub(super) fn begin(&mut self, slot: u16) -> Option<(usize, usize)> {
        let is_owner = |server: &usize| self.owner(slot, *server) == *server;
        let from = (0..self.servers).find(is_owner)?;
        let both = (from, (from + 1) % self.servers);
        if self.moving.contains_key(&slot) || self.servers < 2 {
            return None;
        }
        self.moving.insert(slot, both);
        Some(both)
    }

    /// Returns where a slot is being moved to from this server.
    pub(super) fn goes_to(&self, slot: u16, from: usize) -> Option<usize> {
        self.moving.get(&slot).filter(|both| both.0 == from).map(|both| both.1)
    }

    /// Returns whether a slot is being moved to this server.
    pub(super) fn comes_to(&self, slot: u16, to: usize) -> bool {
        self.moving.get(&slot).is_some_and(|both| both.1 == to)
    }

    /// The new owner hears that a slot has moved to it. Returns what the others are to hear.
    pub(super) fn arrives(&mut self, slot: u16, at: usize) -> News {
        self.epoch += 1;
        let news = (self.epoch, at);
        self.hears(at, slot, news);
        news
    }

    /// A server hears that a slot has moved. It believes the later move: what is told of an earlier one may come after it.
    pub(super) fn hears(&mut self, server: usize, slot: u16, news: News) {
        let known = self.known[server].entry(slot).or_default();
        *known = (*known).max(news);
    }

    /// The slot is not being moved any more.
    pub(super) fn ends(&mut self, slot: u16) {
        self.moving.remove(&slot);
    }

    pub(super) fn info(&self, as_known_by: usize) -> Reply {
        let epoch = self.known[as_known_by].values().map(|(epoch, _)| *epoch).max().unwrap_or_default();
        Reply::text(format!("cluster_state:ok\r\ncluster_current_epoch:{epoch}\r\n"))
    }

    /// Returns the ranges of slots with their servers, as one of them knows it.
    pub(super) fn ranges(&self, as_known_by: usize) -> Reply {
        let mut ranges: Vec<(u16, u16, usize)> = Vec::new();
        for slot in 0..SLOTS {
            let owner = self.owner(slot, as_known_by);
            match ranges.last_mut() {
                Some((_, last, of)) if *of == owner => *last = slot,
                _ => ranges.push((slot, slot, owner)),
            }
        }
        let number = |number: u16| Reply::Integer(i64::from(number));
        let server = |of| Reply::Array(vec![Reply::text(host(of)), number(PORT), Reply::text(host(of))]);
        let range = |(first, last, of)| Reply::Array(vec![number(first), number(last), server(of)]);
        Reply::Array(ranges.into_iter().map(range).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the specification of Redis Cluster.
    #[test]
    fn slots_are_those_of_redis() {
        assert_eq!(slot_of(b"123456789"), 0x31c3);
        assert_eq!(slot_of(b"{user1000}.following"), slot_of(b"user1000"));
        assert_eq!(slot_of(b"foo{}{bar}"), crc16(b"foo{}{bar}") % SLOTS);
    }

    #[test]
    fn a_slot_that_moves_is_known_to_one_server_after_the_other() {
        let mut slots = Slots::new(3);
        assert_eq!((slots.begin(5), slots.begin(5)), (Some((0, 1)), None));
        assert_eq!((slots.goes_to(5, 0), slots.comes_to(5, 1)), (Some(1), true));
        let news = slots.arrives(5, 1);
        assert_eq!([0, 1, 2].map(|server| slots.owner(5, server)), [0, 1, 0]);
        slots.hears(0, 5, news);
        slots.ends(5);
        assert_eq!(slots.begin(5), Some((1, 2)));
    }

    #[test]
    fn what_is_told_of_an_earlier_move_is_no_news() {
        let mut slots = Slots::new(3);
        slots.begin(5);
        let first = slots.arrives(5, 1);
        slots.ends(5);
        slots.begin(5);
        let second = slots.arrives(5, 2);
        slots.hears(2, 5, first);
        slots.hears(1, 5, second);
        assert_eq!([1, 2].map(|server| slots.owner(5, server)), [2, 2]);
    }
}
