//! The bytes of a hint: forty-four, whichever hint it is.
//!
//! Address and key of a receiver are what another client has written into the table. So a program with rights on the table chooses to which address
//! datagrams go, and most of what is in them; and it may have no other way to that address. All bytes but the first four have their highest bit
//! set: no line, word or number of ASCII text can be put into a datagram, for a program at that address that reads one.

use std::fmt;

/// The first bytes of each datagram: the protocol and its version.
const MAGIC: [u8; 4] = *b"ylk2";
/// The highest bit of a byte.
const NO_TEXT: u8 = 0x80;
/// The bytes of a key, seven bits in each.
const KEY: usize = 19;
const TO: usize = 6;
const FROM: usize = TO + KEY;
/// The length of a datagram.
const LENGTH: usize = FROM + KEY;

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

    fn write(self, bytes: &mut [u8]) {
        let mut left = self.0;
        for byte in bytes.iter_mut().rev() {
            *byte = NO_TEXT | left.to_le_bytes()[0];
            left >>= 7;
        }
    }

    fn read(bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(0, |number, byte| number << 7 | u128::from(byte ^ NO_TEXT)))
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
        let mut bytes = [NO_TEXT; LENGTH];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] |= kind;
        bytes[5] |= detail;
        to.write(&mut bytes[TO..FROM]);
        Key(from).write(&mut bytes[FROM..]);
        bytes
    }

    /// Reads a datagram. Returns the key that it is for, and the hint; nothing if it is none.
    pub fn read(bytes: &[u8]) -> Option<(Key, Self)> {
        let bytes: &Datagram = bytes.try_into().ok()?;
        let is_text = bytes[4..].iter().any(|byte| byte & NO_TEXT == 0);
        if bytes[..4] != MAGIC || is_text {
            return None;
        }
        let detail = bytes[5] ^ NO_TEXT == 1;
        let hint = match bytes[4] ^ NO_TEXT {
            1 => Self::Wait { from: Key::read(&bytes[FROM..]), reads: detail },
            2 => Self::Free { second: detail },
            3 => Self::Next,
            4 => Self::End,
            _ => return None,
        };
        Some((Key::read(&bytes[TO..FROM]), hint))
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
        let datagram = Hint::Wait { from: Key(0x82), reads: true }.to(Key(u128::MAX));
        let mut meant = b"ylk2\x81\x81\x83".to_vec();
        meant.extend([0xff; 18]);
        meant.extend([0x80; 17]);
        meant.extend([0x81, 0x82]);
        assert_eq!(datagram[..], meant);
    }

    /// Whatever key another client has written into the table.
    #[test]
    fn no_key_puts_ascii_text_into_a_datagram() {
        for key in [u128::from_be_bytes(*b"\nflush_all\r\nxxxx"), 0, u128::MAX] {
            let datagram = Hint::Wait { from: Key(key), reads: false }.to(Key(key));
            assert!(datagram[4..].iter().all(|byte| !byte.is_ascii()), "{datagram:?}");
        }
    }

    #[test]
    fn anything_else_is_no_hint() {
        let hint = Hint::Next.to(Key(1));
        assert_eq!(Hint::read(&hint[..LENGTH - 1]), None);
        assert_eq!(Hint::read(&[&hint[..], &[NO_TEXT]].concat()), None);
        assert_eq!(Hint::read(&[]), None);
        for (place, byte) in [(0, b'x'), (3, b'1'), (4, 0x80), (4, 0x85), (4, 3), (LENGTH - 1, 1)] {
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
