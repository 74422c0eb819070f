//! The protocol of Redis: requests as clients send them, and replies.

use std::fmt;

/// A reply, or what a server tells by itself.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Reply {
    Ok,
    Pong,
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Nil,
    Array(Vec<Self>),
    Push(Vec<Self>),
    /// The server's answer to `HELLO 3`: pairs.
    Map(Vec<(Self, Self)>),
}

impl Reply {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Bulk(text.into().into_bytes())
    }

    /// Returns the bytes of the reply.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        bytes
    }

    fn write(&self, to: &mut Vec<u8>) {
        match self {
            Self::Ok => to.extend(b"+OK\r\n"),
            Self::Pong => to.extend(b"+PONG\r\n"),
            Self::Error(text) => to.extend(format!("-{text}\r\n").bytes()),
            Self::Integer(number) => to.extend(format!(":{number}\r\n").bytes()),
            Self::Bulk(bytes) => {
                to.extend(format!("${}\r\n", bytes.len()).bytes());
                to.extend(bytes);
                to.extend(b"\r\n");
            }
            Self::Nil => to.extend(b"$-1\r\n"),
            Self::Array(all) => write_all(b'*', all, to),
            Self::Push(all) => write_all(b'>', all, to),
            Self::Map(pairs) => {
                to.extend(format!("%{}\r\n", pairs.len()).bytes());
                for (key, value) in pairs {
                    key.write(to);
                    value.write(to);
                }
            }
        }
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("OK"),
            Self::Pong => f.write_str("PONG"),
            Self::Error(text) => write!(f, "error {text}"),
            Self::Integer(number) => number.fmt(f),
            Self::Bulk(bytes) => f.write_str(&String::from_utf8_lossy(bytes)),
            Self::Nil => f.write_str("nil"),
            Self::Array(all) | Self::Push(all) => f.debug_list().entries(all).finish(),
            Self::Map(pairs) => f.debug_list().entries(pairs).finish(),
        }
    }
}

fn write_all(kind: u8, all: &[Reply], to: &mut Vec<u8>) {
    to.push(kind);
    to.extend(format!("{}\r\n", all.len()).bytes());
    all.iter().for_each(|one| one.write(to));
}

/// A request: the command and its arguments.
pub(super) type Request = Vec<Vec<u8>>;

/// Takes the first request out of the bytes that have arrived; `None` if it is not there as a whole.
pub(super) fn take_request(bytes: &mut Vec<u8>) -> Option<Request> {
    let mut at = 0;
    let count = number(bytes, &mut at, b'*')?;
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let length = number(bytes, &mut at, b'$')?;
        words.push(bytes.get(at..at + length)?.to_vec());
        bytes.get(at + length + 1)?;
        at += length + 2;
    }
    bytes.drain(..at);
    Some(words)
}

/// Reads a line such as `*3`.
fn number(bytes: &[u8], at: &mut usize, kind: u8) -> Option<usize> {
    let line = bytes.get(*at..)?;
    let end = line.windows(2).position(|pair| pair == b"\r\n")?;
    assert_eq!(line.first(), Some(&kind), "clients send lists of strings");
    *at += end + 2;
    std::str::from_utf8(&line[1..end]).ok()?.parse().ok()
}
