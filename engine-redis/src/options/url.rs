//! The servers that a `redis://`, `redis+sentinel://` or `redis+cluster://` URL names, each also with `rediss`.

use ylock_core::Result;
use ylock_core::options::Tls;
use ylock_core::url::{EngineUrl, Host};

use super::check::invalid;
use super::{DEFAULT_PORT, DEFAULT_SENTINEL_PORT, RedisOptions};

pub(super) fn place(url: &EngineUrl) -> Result<RedisOptions> {
    let options = servers(url)?;
    if !url.scheme.starts_with("rediss") {
        return Ok(options);
    }
    match url.option("tls") {
        Some("off") => Err(invalid("rediss:// and tls=off contradict each other")),
        _ => Ok(options.with_tls(Tls::PlatformRoots)),
    }
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

fn database(path: &str) -> Result<i64> {
    if path.is_empty() {
        return Ok(0);
    }
    path.parse()
        .map_err(|_| invalid(format!("the path ends with the number of a database, not with {path:?}")))
}
