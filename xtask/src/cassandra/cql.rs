//! Just enough of the native protocol (version 4) to ask whether a cluster is one. The driver would do it too, but
//! would make `cargo xtask` wait for its compilation.

use std::{
    fmt,
    io::{Read, Write},
    net::{SocketAddrV4, TcpStream},
    time::Duration,
};

use anyhow::{Result, bail};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Consistency {
    One = 1,
    Quorum = 4,
    All = 5,
}

/// A connection that is ready for queries.
#[derive(Debug)]
pub(crate) struct Session<S> {
    stream: S,
}

impl<S: Read + Write> Session<S> {
    pub(crate) fn open(stream: S) -> Result<Self> {
        let mut session = Self { stream };
        match session.startup()? {
            Answer::Ready => Ok(session),
            answer => bail!("unexpected answer to STARTUP: {answer:?}"),
        }
    }

    /// Fails when the server lets us in without a password.
    pub(crate) fn login(stream: S, user: &str, password: &str) -> Result<Self> {
        let mut session = Self { stream };
        match session.startup()? {
            Answer::Authenticate => {}
            answer => bail!("the server wants no password, but answers {answer:?}"),
        }
        let token = format!("\0{user}\0{password}");
        match session.call(AUTH_RESPONSE, &long_string(&token))? {
            Answer::Authenticated => Ok(session),
            answer => bail!("unexpected answer to a login: {answer:?}"),
        }
    }

    /// The number of rows, zero for a statement that has none.
    pub(crate) fn query(&mut self, statement: &str, consistency: Consistency) -> Result<u32> {
        let mut body = long_string(statement);
        body.extend((consistency as u16).to_be_bytes());
        // No flags: no values, no paging.
        body.push(0);
        match self.call(QUERY, &body)? {
            Answer::Rows(rows) => Ok(rows),
            Answer::Void => Ok(0),
            answer => bail!("unexpected answer to a query: {answer:?}"),
        }
    }

    fn startup(&mut self) -> Result<Answer> {
        let mut body = 1_u16.to_be_bytes().to_vec();
        for text in ["CQL_VERSION", "3.0.0"] {
            body.extend(short_string(text));
        }
        self.call(STARTUP, &body)
    }

    fn call(&mut self, opcode: u8, body: &[u8]) -> Result<Answer> {
        // Version, flags, stream (two bytes), opcode, length.
        let mut frame = vec![4, 0, 0, 0, opcode];
        frame.extend(u32::try_from(body.len())?.to_be_bytes());
        frame.extend(body);
        self.stream.write_all(&frame)?;
        self.stream.flush()?;
        let mut header = [0; 9];
        self.stream.read_exact(&mut header)?;
        let [.., a, b, c, d] = header;
        let mut answer = vec![0; usize::try_from(u32::from_be_bytes([a, b, c, d]))?];
        self.stream.read_exact(&mut answer)?;
        Answer::read(header[4], &answer)
    }
}

#[derive(Debug, Eq, PartialEq)]
enum Answer {
    Authenticate,
    Authenticated,
    Ready,
    Rows(u32),
    Void,
}

impl Answer {
    fn read(opcode: u8, body: &[u8]) -> Result<Self> {
        let mut body = Body { rest: body };
        Ok(match opcode {
            0x00 => bail!(Refused { code: body.int()?, message: body.string()?.to_owned() }),
            0x02 => Self::Ready,
            0x03 => Self::Authenticate,
            0x10 => Self::Authenticated,
            0x08 if body.int()? == ROWS => Self::Rows(body.row_count()?),
            0x08 => Self::Void,
            _ => bail!("unknown opcode {opcode}"),
        })
    }
}

/// What the server said no to.
#[derive(Debug)]
pub(crate) struct Refused {
    code: u32,
    message: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} (CQL error {:#06x})", self.message, self.code)
    }
}

impl std::error::Error for Refused {}

struct Body<'a> {
    rest: &'a [u8],
}

impl<'a> Body<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            bail!("the answer ends too early")
        };
        self.rest = rest;
        Ok(taken)
    }

    fn short(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.take(2)?.try_into()?))
    }

    fn int(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.take(4)?.try_into()?))
    }

    fn string(&mut self) -> Result<&'a str> {
        let length = self.short()?;
        Ok(std::str::from_utf8(self.take(length.into())?)?)
    }

    /// Behind the description of the columns, which is of no use here. Columns of simple types only.
    fn row_count(&mut self) -> Result<u32> {
        let (flags, columns) = (self.int()?, self.int()?);
        if flags != ONE_TABLE {
            bail!("unexpected description of the rows ({flags})");
        }
        let (_keyspace, _table) = (self.string()?, self.string()?);
        for _ in 0..columns {
            let (_name, kind) = (self.string()?, self.short()?);
            if !SIMPLE_TYPES.contains(&kind) {
                bail!("unexpected type of a column ({kind})");
            }
        }
        self.int()
    }
}

pub(crate) fn connect(address: SocketAddrV4) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address.into(), PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn short_string(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    [&length.to_be_bytes(), text.as_bytes()].concat()
}

fn long_string(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), text.as_bytes()].concat()
}

const STARTUP: u8 = 0x01;
const QUERY: u8 = 0x07;
const AUTH_RESPONSE: u8 = 0x0f;

/// The kind of result that has rows.
const ROWS: u32 = 2;
const ONE_TABLE: u32 = 1;
const SIMPLE_TYPES: std::ops::RangeInclusive<u16> = 0x01..=0x15;

/// Longer than the server's own time limits, so that its answer is seen and not ours.
const PATIENCE: Duration = Duration::from_secs(12);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_rows_behind_their_description() {
        let table = [short_string("system"), short_string("peers")].concat();
        let column = [short_string("peer"), vec![0, 0x10]].concat();
        let head = [2_u32, 1, 1].map(u32::to_be_bytes).concat();
        let body = [head, table, column, vec![0, 0, 0, 2], vec![0; 16]].concat();
        assert_eq!(Answer::read(0x08, &body).unwrap(), Answer::Rows(2));
    }

    #[test]
    fn an_error_keeps_what_the_server_said() {
        let body = [vec![0, 0, 1, 0], short_string("Bad credentials")].concat();
        let error = Answer::read(0x00, &body).unwrap_err();
        assert_eq!(error.to_string(), "Bad credentials (CQL error 0x0100)");
    }

    #[test]
    fn a_short_answer_is_an_error() {
        Answer::read(0x08, &[0, 0]).unwrap_err();
    }
}
