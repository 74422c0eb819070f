//! Speaks just enough of the native protocol (version 4) to ask nodes whether they are one cluster. The driver could ask
//! this too, but would make `cargo xtask` wait for its compilation.

use std::{
    io::{Read, Write},
    net::{SocketAddrV4, TcpStream},
    time::Duration,
};

use anyhow::{Result, bail};

use super::answer::Answer;

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

    /// Logs in. Fails if the server lets us in without a password.
    pub(crate) fn login(stream: S, user: &str, password: &str) -> Result<Self> {
        let mut session = Self { stream };
        match session.startup()? {
            Answer::Authenticate => {}
            answer => bail!("the server asks for no password, but answers {answer:?}"),
        }
        let token = format!("\0{user}\0{password}");
        match session.call(AUTH_RESPONSE, &long_string(&token))? {
            Answer::Authenticated => Ok(session),
            answer => bail!("unexpected answer to a login: {answer:?}"),
        }
    }

    /// Sends a statement, and returns the number of rows; zero for a statement that has none.
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

/// The time limit of a request: longer than the server's own limits, so that the error of the server is seen and not ours.
const PATIENCE: Duration = Duration::from_secs(12);
