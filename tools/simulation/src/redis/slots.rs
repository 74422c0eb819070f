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
    /// The number of the last change.
    epoch: u64,
    /// For each server: the slots of which it knows that they have moved, and where they are.
    known: Vec<BTreeMap<u16, usize>>,
    /// The slots that are being moved, from one server to another.
    moving: BTreeMap<u16, (usize, usize)>,
}

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

/// Returns the server with this host; the first one if it is none of theirs.
pub(super) fn server_at(host: &str) -> usize {
    host.strip_prefix("server-").and_then(|number| number.parse().ok()).unwrap_or_default()
}

impl Slots {
    pub(super) fn new(servers: usize) -> Self {
        Self { servers, epoch: 1, known: vec![BTreeMap::new(); servers], moving: BTreeMap::new() }
    }

    /// Returns the server that keeps a slot, as one of them knows it.
    pub(super) fn owner(&self, slot: u16, as_known_by: usize) -> usize {
        let first = usize::from(slot) * self.servers / usize::from(SLOTS);
        self.known[as_known_by].get(&slot).copied().unwrap_or(first)
    }

    /// Begins to move a slot, from the server that keeps it to the next one. Returns these two; `None` if it is being moved already.
    pub(super) fn begin(&mut self, slot: u16) -> Option<(usize, usize)> {
        let is_owner = |server: &usize| self.owner(slot, *server) == *server;
        let from = (0..self.servers).find(is_owner)?;
        let both = (from, (from + 1) % self.servers);
        if self.moving.contains_key(&slot) {
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

    /// The server hears that a slot has moved.
    pub(super) fn hears(&mut self, server: usize, slot: u16, owner: usize) {
        if server == owner {
            self.epoch += 1;
        }
        self.known[server].insert(slot, owner);
    }

    /// The slot is not being moved any more.
    pub(super) fn ends(&mut self, slot: u16) {
        self.moving.remove(&slot);
    }

    pub(super) fn info(&self) -> Reply {
        Reply::text(format!("cluster_state:ok\r\ncluster_current_epoch:{}\r\n", self.epoch))
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
        slots.hears(1, 5, 1);
        assert_eq!([0, 1, 2].map(|server| slots.owner(5, server)), [0, 1, 0]);
        slots.hears(0, 5, 1);
        slots.ends(5);
        assert_eq!(slots.begin(5), Some((1, 2)));
    }
}
