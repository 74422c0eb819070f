//! The scripts, one per operation.

use std::sync::OnceLock;

use redis::{Arg, Cmd, ToRedisArgs, Value};
use ylock_core::engine::AcquisitionId;
use ylock_core::{Error, ErrorKind, Owner, Result};

use crate::{identity, scripts};

/// The script of one operation.
pub(crate) struct Script {
    text: &'static str,
    pub(super) name: &'static str,
    /// The server's name for the script: the SHA-1 of its text.
    hash: OnceLock<String>,
}

impl Script {
    const fn new(name: &'static str, text: &'static str) -> Self {
        Self { text, name, hash: OnceLock::new() }
    }
}

pub(crate) static ACQUIRE: Script = Script::new("acquire", scripts::ACQUIRE);
pub(crate) static RELEASE: Script = Script::new("release", scripts::RELEASE);
pub(crate) static RENEW: Script = Script::new("renew", scripts::RENEW);
pub(crate) static INSPECT: Script = Script::new("inspect", scripts::INSPECT);
pub(crate) static REVOKE: Script = Script::new("revoke", scripts::REVOKE);

pub(crate) static LAST_RUN: Script = Script::new("last_run", scripts::LAST_RUN);
pub(crate) static STORE_RUN: Script = Script::new("store_run", scripts::STORE_RUN);

/// Not loaded when a connection is made: few clients list locks, and the first that does sends the text.
pub(crate) static KEYS: Script = Script::new("keys", scripts::KEYS);

/// Nor is this one: few clients use semaphores.
pub(crate) static MAY_BE_FREE: Script = Script::new("may_be_free", scripts::MAY_BE_FREE);

/// Not loaded either: only the first client of a prefix calls it.
pub(super) static VERSION: Script = Script::new("version", scripts::VERSION);

/// The scripts that are loaded when a connection is made.
pub(super) static LOADED: [&Script; 7] =
    [&ACQUIRE, &RELEASE, &RENEW, &INSPECT, &REVOKE, &LAST_RUN, &STORE_RUN];

impl Script {
    fn hash(&self) -> &str {
        self.hash.get_or_init(|| redis::Script::new(self.text).get_hash().to_owned())
    }

    pub(super) fn load(&self) -> Cmd {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(self.text);
        command
    }
}

/// One call of a script: for one lock, or for a whole server.
pub(crate) struct Call {
    pub(super) script: &'static Script,
    place: String,
    /// The command with the script's hash, for a server that knows the script.
    by_hash: Cmd,
    /// True if a server is not asked that may throw away what this writes.
    pub(super) must_be_kept: bool,
}

impl Call {
    pub(crate) fn at(script: &'static Script, place: String) -> Self {
        // Room for all arguments, so that memory is allocated once.
        let mut by_hash = Cmd::with_capacity(15, 330);
        by_hash.arg("EVALSHA").arg(script.hash()).arg(1).arg(&place);
        Self { script, place, by_hash, must_be_kept: false }
    }

    /// Creates a call that is about no lock in particular, but about the server that it is sent to.
    pub(crate) fn of_server(script: &'static Script) -> Self {
        let mut by_hash = Cmd::new();
        by_hash.arg("EVALSHA").arg(script.hash()).arg(0);
        Self { script, place: String::new(), by_hash, must_be_kept: false }
    }

    /// Returns the key of the lock's hash.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    pub(crate) fn id(self, id: AcquisitionId) -> Self {
        self.arg(&identity::text(id.as_u128())[..])
    }

    pub(crate) fn owner(self, owner: Owner) -> Self {
        self.arg(&identity::text(u128::from_be_bytes(owner.to_bytes()))[..])
    }

    pub(crate) fn arg(mut self, argument: impl ToRedisArgs) -> Self {
        self.by_hash.arg(argument);
        self
    }

    /// Returns the call, as one that lets in an acquisition or a run: the server must keep it.
    pub(crate) fn must_be_kept(self) -> Self {
        Self { must_be_kept: true, ..self }
    }

    pub(super) fn by_hash(&self) -> &Cmd {
        &self.by_hash
    }

    /// Returns the command with the script's text: the server knows the script afterwards.
    pub(super) fn by_text(&self) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(self.script.text);
        for argument in self.by_hash.args_iter().skip(2) {
            if let Arg::Simple(bytes) = argument {
                command.arg(bytes);
            }
        }
        command
    }
}

/// The answer of a script: words and numbers, in a list or alone.
#[derive(Debug)]
pub(crate) struct Answer {
    values: Vec<Value>,
    script: &'static str,
    next: usize,
    sent_on: bool,
}

impl Answer {
    pub(super) fn new(value: Value, script: &'static Script, sent_on: bool) -> Self {
        let values = match value {
            Value::Array(values) => values,
            value => vec![value],
        };
        Self { values, script: script.name, next: 0, sent_on }
    }

    /// Returns whether the lock is on another server than the one that was asked first, which is giving it away: no message of that one is
    /// about the lock any more.
    pub(crate) fn was_sent_on(&self) -> bool {
        self.sent_on
    }

    pub(crate) fn number<T: TryFrom<i64>>(&mut self) -> Result<T> {
        let value = self.take()?;
        let number = match &value {
            Value::Int(number) => Some(*number),
            value => text(value).and_then(|text| text.parse().ok()),
        };
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| self.odd(&value))
    }

    pub(crate) fn flag(&mut self) -> Result<bool> {
        Ok(self.number::<u8>()? == 1)
    }

    pub(crate) fn word(&mut self) -> Result<String> {
        match self.take()? {
            Value::BulkString(bytes) => {
                String::from_utf8(bytes).map_err(|error| self.odd(&Value::BulkString(error.into_bytes())))
            }
            Value::SimpleString(text) => Ok(text),
            value => Err(self.odd(&value)),
        }
    }

    pub(crate) fn list(&mut self) -> Result<Vec<String>> {
        match self.take()? {
            Value::Array(values) => {
                let words = values.iter().map(|value| text(value).map(str::to_owned));
                words.collect::<Option<_>>().ok_or_else(|| self.odd(&Value::Nil))
            }
            value => Err(self.odd(&value)),
        }
    }

    /// Returns the texts of a list, without those that are none: other programs may have written them.
    pub(crate) fn texts(&mut self) -> Result<Vec<String>> {
        match self.take()? {
            Value::Array(values) => Ok(values.iter().filter_map(text).map(str::to_owned).collect()),
            value => Err(self.odd(&value)),
        }
    }

    fn take(&mut self) -> Result<Value> {
        let value = self.values.get_mut(self.next).map(std::mem::take);
        self.next += 1;
        value.ok_or_else(|| self.odd(&Value::Nil))
    }

    fn odd(&self, value: &Value) -> Error {
        let message = format!("the script {} gave an unexpected answer: {value:?}", self.script);
        Error::new(ErrorKind::Unexpected, message)
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}
