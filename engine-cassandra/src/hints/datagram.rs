//! The bytes of a hint: forty, whichever hint it is.

use std::fmt;

/// The first bytes of each datagram: the protocol and its version.
const MAGIC: [u8; 4] = *b"ylk1";
/// The length of a datagram.
const LENGTH: usize = 40;

/// The bytes of a datagram.
pub type Datagram = [u8; LENGTH];

/// The key of one acquisition: 128 random bits, never used again. A hint without a known one is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(u128);

/// What a hint says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "one for each occasion")]
pub enum Hint {
    /// From a waiter to a client before it: tell me when you enter or leave.
    Wait {
        /// The key of the waiter.
        from: Key,
        /// True if it waits to read.
        reads: bool,
    },
    /// From a client that has left to the first in line: look now. To the second in line: look in a moment, if the first does not enter.
    Free {
        /// True for the second in line.
        second: bool,
    },
    /// From a client that has entered to the next in line: look now.
    Next,
    /// From a client that has revoked a grant to its holder: renew now.
    End,
}

impl Key {
    /// Returns the key with this number.
    pub fn from_u128(number: u128) -> Self {
        Self(number)
    }

    /// Returns the key as a number, as the table keeps it.
    pub fn as_u128(self) -> u128 {
        self.0
    }
}

/// Not the key itself: a log must not say how to tell a client something.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Hint {
    /// Returns the datagram of this hint for the acquisition with this key.
    pub fn to(self, to: Key) -> Datagram {
        let (kind, detail, from) = match self {
            Self::Wait { from, reads } => (1, u8::from(reads), from.0),
            Self::Free { second } => (2, u8::from(second), 0),
            Self::Next => (3, 0, 0),
            Self::End => (4, 0, 0),
        };
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&MAGIC);
        (bytes[4], bytes[5]) = (kind, detail);
        bytes[8..24].copy_from_slice(&to.0.to_be_bytes());
        bytes[24..].copy_from_slice(&from.to_be_bytes());
        bytes
    }

    /// Reads a datagram. Returns the key that it is for, and the hint; nothing if it is none.
    pub fn read(bytes: &[u8]) -> Option<(Key, Self)> {
        let bytes: &Datagram = bytes.try_into().ok()?;
        if bytes[..4] != MAGIC {
            return None;
        }
        let key = |place: usize| {
            let mut number = [0; 16];
            number.copy_from_slice(&bytes[place..place + 16]);
            Key(u128::from_be_bytes(number))
        };
        let hint = match bytes[4] {
            1 => Self::Wait { from: key(24), reads: bytes[5] == 1 },
            2 => Self::Free { second: bytes[5] == 1 },
            3 => Self::Next,
            4 => Self::End,
            _ => return None,
        };
        Some((key(8), hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let (to, from) = (Key(u128::MAX - 7), Key(1 << 100));
        for hint in [
            Hint::Wait { from, reads: true },
            Hint::Wait { from, reads: false },
            Hint::Free { second: true },
            Hint::Free { second: false },
            Hint::Next,
            Hint::End,
        ] {
            assert_eq!(Hint::read(&hint.to(to)), Some((to, hint)));
        }
    }

    /// Clients of all versions send each other these bytes.
    #[test]
    fn the_bytes_are_these() {
        let datagram = Hint::Wait { from: Key(2), reads: true }.to(Key(1));
        let mut meant = b"ylk1\x01\x01\0\0".to_vec();
        meant.extend(1u128.to_be_bytes());
        meant.extend(2u128.to_be_bytes());
        assert_eq!(datagram[..], meant);
    }

    #[test]
    fn anything_else_is_no_hint() {
        let hint = Hint::Next.to(Key(1));
        assert_eq!(Hint::read(&hint[..39]), None);
        assert_eq!(Hint::read(&[&hint[..], &[0]].concat()), None);
        assert_eq!(Hint::read(&[]), None);
        for (place, byte) in [(0, b'x'), (3, b'2'), (4, 0), (4, 5)] {
            let mut wrong = hint;
            wrong[place] = byte;
            assert_eq!(Hint::read(&wrong), None, "{place}");
        }
    }

    #[test]
    fn a_key_is_not_shown() {
        assert!(!format!("{:?}", Key(12_345)).contains("12345"));
    }
}
