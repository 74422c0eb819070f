//! The interpreter of a server: Lua 5.1, as Redis has it, with the server's data behind `redis.call`.

use std::collections::BTreeMap;
use std::sync::Arc;

use mlua::{Function, Lua, MultiValue, Table, Value};
use parking_lot::Mutex;

use super::database::Database;
use super::resp::Reply;

/// What scripts see and change.
#[derive(Debug, Default)]
pub(super) struct Reachable {
    pub(super) database: Database,
    /// The server's clock, which stands still while a script runs, in microseconds since 1970.
    pub(super) micros: i64,
    /// The number of connections that listen to a channel.
    pub(super) listeners: BTreeMap<Vec<u8>, i64>,
    /// The messages of a script: channel and text.
    pub(super) published: Vec<(Vec<u8>, Vec<u8>)>,
}

/// An interpreter; see the [module](self).
#[derive(Debug)]
pub(super) struct Interpreter {
    lua: Lua,
    reachable: Arc<Mutex<Reachable>>,
    /// The scripts that the server knows, by the hash of their text.
    scripts: BTreeMap<String, Function>,
    /// What stands in each text in place of something else.
    mistake: Option<(&'static str, &'static str)>,
}

impl Interpreter {
    pub(super) fn new(mistake: Option<(&'static str, &'static str)>) -> mlua::Result<Self> {
        let (lua, reachable) = (Lua::new(), Arc::new(Mutex::new(Reachable::default())));
        let redis = lua.create_table()?;
        for (name, raises) in [("call", true), ("pcall", false)] {
            let reachable = Arc::clone(&reachable);
            let call = lua.create_function(move |lua, words: MultiValue| {
                match reachable.lock().call(&bytes_of(words)?) {
                    Reply::Error(text) if raises => Err(mlua::Error::runtime(text)),
                    reply => to_lua(lua, reply),
                }
            })?;
            redis.set(name, call)?;
        }
        lua.globals().set("redis", redis)?;
        // As on a server: what no script has defined is an error, and so is what a script defines for others.
        lua.load(
            "local known = { KEYS = true, ARGV = true }
            setmetatable(_G, {
              __index = function(_, name) error('access to nonexistent global ' .. tostring(name)) end,
              __newindex = function(globals, name, value)
                if not known[name] then error('attempt to modify a global') end
                rawset(globals, name, value)
              end })",
        )
        .exec()?;
        Ok(Self { lua, reachable, scripts: BTreeMap::new(), mistake })
    }

    pub(super) fn reachable(&self) -> parking_lot::MutexGuard<'_, Reachable> {
        self.reachable.lock()
    }

    /// Forgets all scripts.
    pub(super) fn flush(&mut self) {
        self.scripts.clear();
    }

    /// Gets to know a script. Returns its name.
    pub(super) fn load(&mut self, text: &[u8]) -> mlua::Result<String> {
        let hash = name_of(text);
        if !self.scripts.contains_key(&hash) {
            let mut text = String::from_utf8_lossy(text).into_owned();
            // The first line is for Redis.
            if text.starts_with("#!") {
                text.insert_str(0, "--");
            }
            if let Some((right, wrong)) = self.mistake {
                text = text.replace(right, wrong);
            }
            let script = self.lua.load(text).set_name("script").into_function()?;
            self.scripts.insert(hash.clone(), script);
        }
        Ok(hash)
    }

    /// Runs a script for one key; `None` if the server does not know it.
    pub(super) fn run(&self, hash: &str, key: &[u8], arguments: &[Vec<u8>]) -> Option<mlua::Result<Reply>> {
        let script = self.scripts.get(hash)?;
        let run = || {
            let globals = self.lua.globals();
            globals.set("KEYS", self.lua.create_sequence_from([self.lua.create_string(key)?])?)?;
            let strings: mlua::Result<Vec<_>> =
                arguments.iter().map(|one| self.lua.create_string(one)).collect();
            globals.set("ARGV", self.lua.create_sequence_from(strings?)?)?;
            to_reply(script.call::<Value>(())?)
        };
        Some(run())
    }
}

impl Reachable {
    fn call(&mut self, words: &[Vec<u8>]) -> Reply {
        let [command, arguments @ ..] = words else { return wrong("nothing") };
        let command = command.to_ascii_uppercase();
        match (&*command, arguments) {
            (b"TIME", []) => Reply::Array(time(self.micros).map(Reply::text).to_vec()),
            (b"INFO", [_]) => Reply::text(MEMORY),
            (b"PUBLISH" | b"SPUBLISH", [channel, text]) => {
                self.published.push((channel.clone(), text.clone()));
                Reply::Integer(self.listeners.get(channel).copied().unwrap_or_default())
            }
            (b"PUBSUB", [kind, channel]) if matches!(&**kind, b"NUMSUB" | b"SHARDNUMSUB") => {
                let listeners = self.listeners.get(channel).copied().unwrap_or_default();
                Reply::Array(vec![Reply::Bulk(channel.clone()), Reply::Integer(listeners)])
            }
            _ => {
                let answer = self.database.call(&command, arguments, self.micros / 1_000);
                answer.unwrap_or_else(|| wrong(&String::from_utf8_lossy(&command)))
            }
        }
    }
}

fn wrong(command: &str) -> Reply {
    Reply::Error(format!("ERR the simulated server does not know {command}"))
}

/// What `INFO` says of a server that throws no keys away.
pub(super) const MEMORY: &str = "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n";

/// Returns the name of a script: the hash of its text.
pub(super) fn name_of(text: &[u8]) -> String {
    sha1_smol::Sha1::from(text).digest().to_string()
}

/// Returns seconds and microseconds, as `TIME` does.
pub(super) fn time(micros: i64) -> [String; 2] {
    [(micros / 1_000_000).to_string(), (micros % 1_000_000).to_string()]
}

fn bytes_of(words: MultiValue) -> mlua::Result<Vec<Vec<u8>>> {
    let bytes = |word| match word {
        Value::String(text) => Ok(text.as_bytes().to_vec()),
        Value::Integer(number) => Ok(number.to_string().into_bytes()),
        // As Redis writes numbers that a script passes on.
        Value::Number(number) => Ok(format!("{number:.17}").into_bytes()),
        _ => Err(mlua::Error::runtime("Lua redis lib command arguments must be strings or integers")),
    };
    words.into_iter().map(bytes).collect()
}

fn to_lua(lua: &Lua, reply: Reply) -> mlua::Result<Value> {
    let named = |name: &str, text: &str| -> mlua::Result<Value> {
        let table = lua.create_table()?;
        table.set(name, text)?;
        Ok(Value::Table(table))
    };
    match reply {
        Reply::Ok => named("ok", "OK"),
        Reply::Pong => named("ok", "PONG"),
        Reply::Error(text) => named("err", &text),
        Reply::Integer(number) => Ok(Value::Number(number as f64)),
        Reply::Bulk(bytes) => lua.create_string(bytes).map(Value::String),
        Reply::Nil => Ok(Value::Boolean(false)),
        Reply::Array(all) | Reply::Push(all) => {
            let all: mlua::Result<Vec<_>> = all.into_iter().map(|one| to_lua(lua, one)).collect();
            lua.create_sequence_from(all?).map(Value::Table)
        }
        Reply::Map(_) => Err(mlua::Error::runtime("scripts speak the second version of the protocol")),
    }
}

fn to_reply(value: Value) -> mlua::Result<Reply> {
    Ok(match value {
        Value::Integer(number) => Reply::Integer(number),
        Value::Number(number) => Reply::Integer(number as i64),
        Value::String(text) => Reply::Bulk(text.as_bytes().to_vec()),
        Value::Boolean(true) => Reply::Integer(1),
        Value::Nil | Value::Boolean(false) => Reply::Nil,
        Value::Table(table) => return to_array(&table),
        other => return Err(mlua::Error::runtime(format!("a script returns {other:?}"))),
    })
}

/// Up to the first gap, as Redis does.
fn to_array(table: &Table) -> mlua::Result<Reply> {
    let mut all = Vec::new();
    loop {
        match table.raw_get::<Value>(all.len() + 1)? {
            Value::Nil => return Ok(Reply::Array(all)),
            value => all.push(to_reply(value)?),
        }
    }
}
