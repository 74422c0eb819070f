//! The options of a `redis://`, `redis+sentinel://` or `redis+cluster://` URL, each also with `rediss`.

use std::time::Duration;

use ylock_core::options::{Login, Reach, Tls, duration, number, switch};
use ylock_core::url::{EngineUrl, Host, Secret};
use ylock_core::{Options, Result};

use super::check::invalid;
use super::{DEFAULT_PORT, DEFAULT_SENTINEL_PORT, RedisOptions, Waiting};

/// The options that a `redis://` URL may carry beside those of every engine.
const NAMES: [&str; 10] = [
    "connect_timeout",
    "min_replicas",
    "notify",
    "poll",
    "poll_longest",
    "prefix",
    "request_timeout",
    "sentinel_password",
    "sentinel_user",
    "tls_ca",
];

pub(super) fn read(url: &EngineUrl, common: &Options) -> Result<RedisOptions> {
    let mut options = servers(url)?;
    let tls =
        Tls::when(url.scheme.starts_with("rediss"), url.option("tls_ca"), "rediss://host:port/database")?;
    options.reach = Reach { tls, ..Reach::of(url, common)? };
    let mut sentinel_user = None;
    let mut sentinel_password = None;
    let mut poll = None;
    let mut longest = None;
    let mut told = None;
    url.set_options(&NAMES, |name, value| {
        match name {
            "prefix" => options.prefix = value.to_owned(),
            "min_replicas" => options.min_replicas = number(name, value)?,
            "sentinel_password" => sentinel_password = Some(Secret::new(value)),
            "sentinel_user" => sentinel_user = Some(value.to_owned()),
            "notify" => told = Some(switch(name, value)?),
            "poll" => poll = Some(duration(name, value)?),
            "poll_longest" => longest = Some(duration(name, value)?),
            "tls_ca" => {}
            _ => return options.reach.set(name, value),
        }
        Ok(true)
    })?;
    options.waiting = waiting(told, poll, longest)?;
    options.sentinel_login = sentinel_login(sentinel_user, sentinel_password)?;
    options.check()?;
    Ok(options)
}

fn servers(url: &EngineUrl) -> Result<RedisOptions> {
    let hosts = |default: u16| {
        let with_port = move |host: &Host| (host.name.clone(), host.port.unwrap_or(default));
        url.hosts.iter().map(with_port)
    };
    match url.scheme.split_once('+').map(|(_, kind)| kind) {
        None => {
            let [host] = &url.hosts[..] else {
                return Err(invalid(
                    "one host: redis://host:port/database. Several are named in redis+sentinel:// and redis+cluster://",
                ));
            };
            let options = RedisOptions::new(&host.name, host.port.unwrap_or(DEFAULT_PORT));
            Ok(options.with_database(database(&url.path)?))
        }
        Some("sentinel") => {
            let (service, number) = url.path.split_once('/').unwrap_or((&url.path, ""));
            let options = RedisOptions::sentinel(hosts(DEFAULT_SENTINEL_PORT), service);
            Ok(options.with_database(database(number)?))
        }
        Some("cluster") => Ok(RedisOptions::cluster(hosts(DEFAULT_PORT)).with_database(database(&url.path)?)),
        Some(kind) => Err(invalid(format!(
            "{kind:?} is no kind of Redis: redis+sentinel:// and redis+cluster:// are known"
        ))),
    }
}

fn sentinel_login(user: Option<String>, password: Option<Secret>) -> Result<Option<Login>> {
    match (user, password) {
        (None, None) => Ok(None),
        (user, Some(password)) => Ok(Some(Login { user: user.unwrap_or_default(), password })),
        (Some(_), None) => Err(invalid("sentinel_user has no sentinel_password")),
    }
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

fn database(path: &str) -> Result<i64> {
    if path.is_empty() {
        return Ok(0);
    }
    path.parse()
        .map_err(|_| invalid(format!("the path ends with the number of a database, not with {path:?}")))
}
