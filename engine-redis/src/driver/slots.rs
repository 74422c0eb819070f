//! The slots of a cluster, and the server that keeps each of them.

use std::collections::HashSet;
use std::sync::Arc;

use redis::Value;
use ylock_core::url::Address;

use crate::place;

/// The number of slots, fixed by Redis.
const SLOTS: usize = 16_384;

/// The server of each slot, where it is known.
#[derive(Debug)]
pub(super) struct Slots(
    /// One address for all slots of a range: otherwise each look at the servers would copy 16 384 of them.
    Vec<Option<Arc<Address>>>,
);

/// Returns the slot of a key or channel: that of the part in braces.
pub(super) fn slot_of(key: &str) -> u16 {
    let tag = place::part_of(key).filter(|tag| !tag.is_empty()).unwrap_or(key);
    crc16::State::<crc16::XMODEM>::calculate(tag.as_bytes()) % SLOTS as u16
}

impl Slots {
    pub(super) fn unknown() -> Self {
        Self(vec![None; SLOTS])
    }

    /// Reads what `from` answered to `CLUSTER SLOTS`: ranges with their master and its replicas.
    pub(super) fn read(answer: &Value, from: &Address) -> Option<Self> {
        let mut slots = Self::unknown();
        for range in list(answer)? {
            let [first, last, master, ..] = list(range)? else { return None };
            let (first, last) = (number(first)?, number(last)?);
            let master = address(list(master)?, from).map(Arc::new);
            slots.0.get_mut(first..=last)?.fill(master);
        }
        Some(slots)
    }

    pub(super) fn get(&self, slot: u16) -> Option<&Address> {
        self.0.get(usize::from(slot))?.as_deref()
    }

    /// Returns any server.
    pub(super) fn any(&self) -> Option<&Address> {
        self.0.iter().find_map(Option::as_deref)
    }

    pub(super) fn set(&mut self, slot: u16, address: Address) {
        if let Some(place) = self.0.get_mut(usize::from(slot)) {
            *place = Some(Arc::new(address));
        }
    }

    pub(super) fn servers(&self) -> HashSet<&Address> {
        self.0.iter().filter_map(Option::as_deref).collect()
    }
}

/// Reads the address of a server from what `from` answered: that names neither its own host nor hosts that it does not know.
fn address(server: &[Value], from: &Address) -> Option<Address> {
    let [host, port, ..] = server else { return None };
    let host = match text(host) {
        Some("?") => return None,
        Some("") | None => &from.host,
        Some(host) => host,
    };
    Some(Address::new(host, u16::try_from(number(port)?).ok()?))
}

fn list(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(values) => Some(values),
        _ => None,
    }
}

fn number(value: &Value) -> Option<usize> {
    match value {
        Value::Int(number) => usize::try_from(*number).ok(),
        _ => None,
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn range(first: i64, last: i64, host: Value, port: i64) -> Value {
        let master = Value::Array(vec![host, Value::Int(port), bulk("id")]);
        Value::Array(vec![Value::Int(first), Value::Int(last), master])
    }

    /// From the specification of Redis Cluster, and a key as ours.
    #[test]
    fn slots_are_those_of_redis() {
        assert_eq!(slot_of("123456789"), 0x31c3);
        assert_eq!(slot_of("{user1000}.following"), slot_of("{user1000}.followers"));
        assert_eq!(slot_of("foo{}{bar}"), crc16::State::<crc16::XMODEM>::calculate(b"foo{}{bar}") % 16_384);
        assert_eq!(slot_of("ylock:{116}:5:users:alice"), slot_of("116"));
    }

    #[test]
    fn ranges_are_read() {
        let here = Address::new("here", 1);
        let answer = Value::Array(vec![
            range(0, 1, bulk("a"), 10),
            range(2, 2, Value::Nil, 11),
            range(3, 3, bulk("?"), 12),
        ]);
        let slots = Slots::read(&answer, &here).unwrap();
        assert_eq!(slots.get(1), Some(&Address::new("a", 10)));
        assert_eq!(slots.get(2), Some(&Address::new("here", 11)));
        assert_eq!((slots.get(3), slots.get(4)), (None, None));
        let odd = Value::Array(vec![range(0, 16_384, bulk("a"), 10)]);
        assert!(Slots::read(&odd, &here).is_none());
    }
}
