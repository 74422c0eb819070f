//! The options of a `cassandra://` URL.

use std::path::PathBuf;

use ylock_core::options::{duration, number};
use ylock_core::url::{EngineUrl, unknown_option};
use ylock_core::{Error, ErrorKind, Options, Result};

use super::{CassandraOptions, Clock, Consistency, Login, Protocol, SchemaMode, Tls};

/// The options that a `cassandra://` URL may carry beside those of every engine.
const NAMES: [&str; 14] = [
    "clock",
    "connect_timeout",
    "consistency",
    "datacenter",
    "gc_grace",
    "max_clock_skew",
    "protocol",
    "replication",
    "request_timeout",
    "schema",
    "table",
    "tls",
    "tls_ca",
    "token_ttl",
];

pub(super) fn read(url: &EngineUrl, common: &Options) -> Result<CassandraOptions> {
    let mut options = CassandraOptions::new(&url.path).with_lease(common.lease());
    options.hosts.clone_from(&url.hosts);
    options.login = login(url)?;
    for (name, value) in &url.options {
        if !Options::NAMES.contains(&name.as_str()) {
            set(&mut options, name, value)?;
        }
    }
    options.tls = tls(url)?;
    options.check()?;
    Ok(options)
}

fn login(url: &EngineUrl) -> Result<Option<Login>> {
    match (&url.user, &url.password) {
        (None, _) => Ok(None),
        (Some(user), Some(password)) => Ok(Some(Login { user: user.clone(), password: password.clone() })),
        (Some(user), None) => {
            Err(invalid(format!("user {user:?} has no password: cassandra://user:password@…")))
        }
    }
}

fn set(options: &mut CassandraOptions, name: &str, value: &str) -> Result<()> {
    match name {
        "clock" => options.clock = clock(value)?,
        "connect_timeout" => options.connect_timeout = duration(name, value)?,
        "consistency" => options.consistency = consistency(value)?,
        "datacenter" => options.datacenter = Some(value.to_owned()),
        "gc_grace" => options.gc_grace = duration(name, value)?,
        "max_clock_skew" => options.max_clock_skew = duration(name, value)?,
        "protocol" => options.protocol = protocol(value)?,
        "replication" => options.replication = number(name, value)?,
        "request_timeout" => options.request_timeout = Some(duration(name, value)?),
        "schema" => options.schema = schema(value)?,
        "table" => value.clone_into(&mut options.table),
        "token_ttl" => options.token_ttl = duration(name, value)?,
        // Read by `tls`, which needs both.
        "tls" | "tls_ca" => {}
        _ => {
            let known = [&Options::NAMES[..], &NAMES[..]].concat();
            return Err(unknown_option(name, &known).with_engine(crate::NAME));
        }
    }
    Ok(())
}

fn tls(url: &EngineUrl) -> Result<Tls> {
    let option =
        |wanted: &str| url.options.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    match (option("tls"), option("tls_ca")) {
        (None | Some("off"), None) => Ok(Tls::Off),
        (Some("on"), None) => Ok(Tls::PlatformRoots),
        (None | Some("on"), Some(file)) => Ok(Tls::Authority(PathBuf::from(file))),
        (Some("off"), Some(_)) => Err(invalid("tls=off and tls_ca=… contradict each other")),
        (Some(other), _) => Err(one_of("tls", "on or off", other)),
    }
}

fn consistency(value: &str) -> Result<Consistency> {
    match value {
        "quorum" => Ok(Consistency::Quorum),
        "local_quorum" => Ok(Consistency::LocalQuorum),
        _ => Err(one_of("consistency", "quorum or local_quorum", value)),
    }
}

fn schema(value: &str) -> Result<SchemaMode> {
    match value {
        "check" => Ok(SchemaMode::Check),
        "create" => Ok(SchemaMode::Create),
        _ => Err(one_of("schema", "check or create", value)),
    }
}

fn clock(value: &str) -> Result<Clock> {
    match value {
        "hlc" => Ok(Clock::Hlc),
        "global-time" => Ok(Clock::GlobalTime),
        _ => Err(one_of("clock", "hlc or global-time", value)),
    }
}

fn protocol(value: &str) -> Result<Protocol> {
    match value {
        "queue" => Ok(Protocol::Queue),
        "shadow-rows" => Ok(Protocol::ShadowRows),
        _ => Err(one_of("protocol", "queue or shadow-rows", value)),
    }
}

fn one_of(name: &str, words: &str, value: &str) -> Error {
    invalid(format!("option {name} is {words}, not {value:?}"))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
}

#[cfg(test)]
mod tests;
