//! The options of a `cassandra://` URL.

use ylock_core::options::{Reach, duration, number};
use ylock_core::url::EngineUrl;
use ylock_core::{Error, ErrorKind, Options, Result};

use super::{CassandraOptions, Clock, Consistency, Protocol, SchemaMode, Tls};

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
    let mut options = CassandraOptions::new(&url.path);
    options.reach = Reach { tls: Tls::of(url)?, ..Reach::of(url, common)? };
    options.hosts.clone_from(&url.hosts);
    url.set_options(&NAMES, |name, value| set(&mut options, name, value))?;
    options.check()?;
    Ok(options)
}

fn set(options: &mut CassandraOptions, name: &str, value: &str) -> Result<bool> {
    match name {
        "clock" => options.clock = clock(value)?,
        "consistency" => options.consistency = consistency(value)?,
        "datacenter" => options.datacenter = Some(value.to_owned()),
        "gc_grace" => options.gc_grace = duration(name, value)?,
        "max_clock_skew" => options.max_clock_skew = duration(name, value)?,
        "protocol" => options.protocol = protocol(value)?,
        "replication" => options.replication = number(name, value)?,
        "schema" => options.schema = schema(value)?,
        "table" => value.clone_into(&mut options.table),
        "token_ttl" => options.token_ttl = duration(name, value)?,
        _ => return Ok(Tls::NAMES.contains(&name) || options.reach.set(name, value)?),
    }
    Ok(true)
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
    Error::new(ErrorKind::Config, format!("option {name} is {words}, not {value:?}"))
}

#[cfg(test)]
mod tests;
