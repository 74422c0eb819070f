//! Speaks just enough of Redis' protocol to form a cluster and to ask whether servers are ready. The driver could do this
//! too, but would make `cargo xtask` wait for its compilation.

use std::{
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result, bail};

#[derive(Debug, Eq, PartialEq)]
pub(super) enum Answer {
    List(Vec<Answer>),
    Nothing,
    Text(String),
}

/// Sends one command over a connection of its own, and returns the answer.
pub(super) fn ask(port: u16, command: &str) -> Result<Answer> {
    let ask = || {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(format!("{command}\r\n").as_bytes())?;
        Answer::read(&mut BufReader::new(stream))
    };
    ask().with_context(|| format!("{command} on port {port}"))
}

impl Answer {
    fn read(from: &mut impl BufRead) -> Result<Self> {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let Some(line) = line.strip_suffix("\r\n") else { bail!("the answer of Redis ends too early") };
        let (kind, rest) = line.split_at_checked(1).context("the answer of Redis is empty")?;
        Ok(match kind {
            "+" | ":" => Self::Text(rest.to_owned()),
            "-" => bail!("{rest}"),
            "$" | "*" if rest == "-1" => Self::Nothing,
            "$" => Self::Text(bulk(from, rest.parse()?)?),
            "*" => Self::List((0..rest.parse()?).map(|_| Self::read(from)).collect::<Result<_>>()?),
            _ => bail!("unknown kind of answer: {line}"),
        })
    }

    pub(super) fn text(&self) -> Result<&str> {
        match self {
            Self::Text(text) => Ok(text),
            _ => bail!("a text was expected, not {self:?}"),
        }
    }

    /// Returns the value of a name, from lines like `cluster_state:ok`.
    pub(super) fn line(&self, name: &str) -> Result<&str> {
        let mut lines = self.text()?.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value).with_context(|| format!("{name} missing"))
    }

    /// Returns the value of a name, from a list in which names and values alternate.
    pub(super) fn field(&self, name: &str) -> Result<&str> {
        let Self::List(list) = self else { bail!("a list was expected, not {self:?}") };
        let mut pairs = list.chunks_exact(2);
        let pair = pairs.find(|pair| pair[0].text().is_ok_and(|key| key == name));
        pair.with_context(|| format!("{name} missing"))?[1].text()
    }
}

fn bulk(from: &mut impl BufRead, length: usize) -> Result<String> {
    let mut bytes = vec![0; length + 2];
    from.read_exact(&mut bytes)?;
    bytes.truncate(length);
    Ok(String::from_utf8(bytes)?)
}

const PATIENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &str) -> Result<Answer> {
        Answer::read(&mut bytes.as_bytes())
    }

    #[test]
    fn reads_every_kind_of_answer() {
        assert_eq!(read("+PONG\r\n").unwrap().text().unwrap(), "PONG");
        assert_eq!(read(":3\r\n").unwrap().text().unwrap(), "3");
        assert_eq!(read("$4\r\na\r\nb\r\n").unwrap().text().unwrap(), "a\r\nb");
        assert_eq!(read("$-1\r\n").unwrap(), Answer::Nothing);
        let list = read("*2\r\n*1\r\n+a\r\n$0\r\n\r\n").unwrap();
        let inner = Answer::List(vec![Answer::Text("a".to_owned())]);
        assert_eq!(list, Answer::List(vec![inner, Answer::Text(String::new())]));
    }

    #[test]
    fn an_error_keeps_what_the_server_said() {
        let error = read("-ERR Slot 0 is already busy\r\n").unwrap_err();
        assert_eq!(error.to_string(), "ERR Slot 0 is already busy");
    }

    #[test]
    fn a_short_answer_is_an_error() {
        for bytes in ["", "+PON", "$4\r\nab", "*2\r\n+a\r\n"] {
            read(bytes).unwrap_err();
        }
    }

    #[test]
    fn finds_lines_and_fields_by_their_whole_name() {
        let lines = Answer::Text("cluster_state:ok\r\ncluster_state_reason:none\r\n".to_owned());
        assert_eq!(lines.line("cluster_state").unwrap(), "ok");
        lines.line("state").unwrap_err();
        let fields = read("*4\r\n$4\r\nname\r\n$5\r\nflags\r\n$5\r\nflags\r\n$6\r\nmaster\r\n").unwrap();
        assert_eq!(fields.field("flags").unwrap(), "master");
        fields.field("master").unwrap_err();
    }
}
