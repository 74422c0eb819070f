//! What the servers tell of themselves, for those who look after them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use ylock_core::Result;
use ylock_core::engine::{ClockReading, Diagnostics, Finding, ServerReport};
use ylock_core::environment::Environment;

use super::connection::Connection;
use super::eviction::Keeping;
use super::server;

/// By which part of the request timeout, and so of the lease, the clocks of servers may differ of which one may take over from another.
const CLOCKS_PART: u32 = 4;

/// What one server has told, and what it was told in.
struct Told {
    facts: ServerReport,
    /// The answer to `INFO`; `None` if this client's user may not ask for it.
    info: Option<String>,
}

impl Told {
    fn says_what_it_keeps(&self) -> bool {
        self.info.as_deref().is_some_and(|info| Keeping::of(info) != Keeping::Unknown)
    }
}

/// Asks all servers at once.
pub(super) async fn diagnose(
    servers: Vec<(String, Arc<Connection>)>,
    environment: &dyn Environment,
    request_timeout: Duration,
) -> Diagnostics {
    let told = servers.iter().map(|(address, server)| of_server(address, server, environment));
    let told = join_all(told).await;
    let mut seen = Diagnostics::default();
    let settings: BTreeSet<_> = told.iter().filter_map(|told| persistence(told.info.as_deref()?)).collect();
    if !settings.is_empty() {
        seen.facts.push(("persistence", settings.into_iter().collect::<Vec<_>>().join("; ")));
    }
    let silent = told.iter().filter(|told| told.facts.fault.is_none() && !told.says_what_it_keeps());
    let silent: Vec<_> = silent.map(|told| told.facts.address.as_str()).collect();
    if !silent.is_empty() {
        let text = format!(
            "{} may not be asked whether it throws away locks when its memory is full",
            silent.join(", ")
        );
        seen.facts.push(("eviction", text));
    }
    seen.findings.extend(told.iter().filter_map(|told| eviction(&told.facts.address, told.info.as_deref()?)));
    seen.servers = told.into_iter().map(|told| told.facts).collect();
    let apart = seen.clocks_apart().map(|(slow, fast, apart)| (&slow.address, &fast.address, apart));
    if let Some((slow, fast, apart)) = apart.filter(|(_, _, apart)| *apart > request_timeout / CLOCKS_PART) {
        seen.findings.push(Finding::new(
            format!(
                "the clocks of {slow} and {fast} differ by {apart:?}: when a server takes over, it judges leases by its own clock, and may end \
                 them too early"
            ),
            "set the clocks of the servers by NTP",
        ));
    }
    seen
}

async fn of_server(address: &str, server: &Arc<Connection>, environment: &dyn Environment) -> Told {
    let (before, asked) = (environment.wall_micros(), environment.now());
    let shown = match server.server_time().await {
        Ok(shown) => shown,
        Err(error) => return Told { facts: ServerReport::failed(address, error.to_string()), info: None },
    };
    let mut facts = ServerReport::new(address);
    facts.round_trip = Some(environment.now().since(asked));
    facts.clock = Some(ClockReading::of(before, shown, environment.wall_micros(), 1));
    facts.encrypted = Some(server.is_encrypted());
    // A user that may not ask this may still keep locks.
    facts.login = ask(server, &["ACL", "WHOAMI"]).await.ok();
    let info = ask(server, &["INFO"]).await.ok();
    let field = |name| Some(server::field(info.as_deref()?, name)?.to_owned());
    facts.version = field("redis_version");
    facts.role = field("role").map(|role| {
        let replicas = field("connected_slaves").filter(|_| role == "master");
        replicas.map_or_else(|| role.clone(), |count| format!("{role} with {count} replicas"))
    });
    Told { facts, info }
}

async fn ask(server: &Arc<Connection>, words: &[&str]) -> Result<String> {
    let mut question = redis::pipe();
    let (name, arguments) = words.split_first().expect("a command has a name");
    question.cmd(name).arg(arguments);
    let (answer,): (String,) = server.ask(&question).await?;
    Ok(answer)
}

/// Returns what becomes of locks when a server is restarted.
fn persistence(info: &str) -> Option<String> {
    Some(match server::field(info, "aof_enabled")? {
        "1" => "appendonly is on: what is lost by a restart says appendfsync".to_owned(),
        _ => "appendonly is off: a server that is restarted may have forgotten locks".to_owned(),
    })
}

fn eviction(address: &str, info: &str) -> Option<Finding> {
    let Keeping::Evicts(policy) = Keeping::of(info) else { return None };
    let (host, port) = address.rsplit_once(':')?;
    let host = host.trim_matches(['[', ']']);
    Some(Finding::new(
        format!(
            "{address} throws away keys when its memory is full, locks among them: maxmemory-policy is {policy}"
        ),
        format!("redis-cli -h {host} -p {port} CONFIG SET maxmemory-policy noeviction"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_may_throw_away_locks_is_a_risk() {
        let risk = eviction("cache:6379", "maxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\n").unwrap();
        assert_eq!(risk.remedy, "redis-cli -h cache -p 6379 CONFIG SET maxmemory-policy noeviction");
        assert!(eviction("cache:6379", "maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n").is_none());
        assert!(eviction("cache:6379", "maxmemory:100\r\nmaxmemory_policy:noeviction\r\n").is_none());
    }
}
