//! The options of a `redis://` or `rediss://` URL.

use std::time::Duration;

use ylock_core::options::{duration, number};
use ylock_core::url::{EngineUrl, unknown_option};
use ylock_core::{Options, Result};

use super::check::invalid;
use super::{DEFAULT_PORT, Login, RedisOptions, Waiting};

/// The options that a `redis://` URL may carry beside those of every engine.
const NAMES: [&str; 7] =
    ["connect_timeout", "min_replicas", "notify", "poll", "poll_longest", "request_timeout", "tls_ca"];

pub(super) fn read(url: &EngineUrl, common: &Options) -> Result<RedisOptions> {
    let [host] = &url.hosts[..] else {
        return Err(invalid("one host: redis://host:port/database"));
    };
    let mut options = RedisOptions::new(&host.name, host.port.unwrap_or(DEFAULT_PORT))
        .with_lease(common.lease())
        .with_tls(url.scheme == "rediss")
        .with_database(database(&url.path)?);
    options.login = login(url)?;
    let mut poll = None;
    let mut longest = None;
    let mut told = None;
    for (name, value) in &url.options {
        match name.as_str() {
            "connect_timeout" => options.connect_timeout = duration(name, value)?,
            "min_replicas" => options.min_replicas = number(name, value)?,
            "request_timeout" => options.request_timeout = Some(duration(name, value)?),
            "tls_ca" => options.authority = Some(value.into()),
            "notify" => told = Some(switch(name, value)?),
            "poll" => poll = Some(duration(name, value)?),
            "poll_longest" => longest = Some(duration(name, value)?),
            name if Options::NAMES.contains(&name) => {}
            name => {
                let known = [&Options::NAMES[..], &NAMES[..]].concat();
                return Err(unknown_option(name, &known).with_engine(crate::NAME));
            }
        }
    }
    options.waiting = waiting(told, poll, longest)?;
    options.check()?;
    Ok(options)
}

fn waiting(told: Option<bool>, poll: Option<Duration>, longest: Option<Duration>) -> Result<Waiting> {
    match (told, poll, longest) {
        (None | Some(true), None, None) => Ok(Waiting::Told),
        (Some(true), ..) => Err(invalid("notify=on and poll=… contradict each other")),
        (_, poll, longest) => {
            let first = poll.unwrap_or(Duration::from_millis(20));
            Ok(Waiting::Poll { first, longest: longest.unwrap_or(first) })
        }
    }
}

fn switch(name: &str, value: &str) -> Result<bool> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(invalid(format!("option {name} is on or off, not {value:?}"))),
    }
}

fn database(path: &str) -> Result<i64> {
    if path.is_empty() {
        return Ok(0);
    }
    path.parse().map_err(|_| invalid(format!("the path is the number of a database, not {path:?}")))
}

/// As Redis has it: a password alone is the default user's.
fn login(url: &EngineUrl) -> Result<Option<Login>> {
    match (&url.user, &url.password) {
        (None, _) => Ok(None),
        (Some(user), Some(password)) => {
            let user = Some(user.clone()).filter(|user| !user.is_empty());
            Ok(Some(Login { user, password: password.clone() }))
        }
        (Some(user), None) => Err(invalid(format!(
            "user {user:?} has no password: redis://user:password@… or redis://:password@…"
        ))),
    }
}
