//! `ylock doctor`: whether the store can be reached, what it tells of itself, what it promises, and what it would refuse.

mod findings;
mod tries;
mod words;

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;
use ylock::Ylock;
use ylock::engine::{Diagnostics, Finding, ServerReport};
use ylock::url::Host;

use self::findings::Findings;
use crate::arguments::DoctorArguments;
use crate::exit::{Failed, Result, UNAVAILABLE, USAGE};
use crate::store::{Store, address};

/// By so much the clock of a server may differ from that of this machine before it is worth a word.
const CLOCK: Duration = Duration::from_secs(1);

pub(crate) async fn doctor(store: &Store, arguments: DoctorArguments) -> Result<u8> {
    let mut findings = Findings::new(arguments.json);
    findings.say("store", &store.shown(), json!(store.shown()))?;
    findings.say("named", &store.source.to_string(), json!(store.source.to_string()))?;
    let connected = store.connect().await;
    // A configuration that is wrong is so with each server.
    if !connected.as_ref().is_err_and(|failed| failed.code == USAGE) {
        named(store, &mut findings).await?;
    }
    match connected {
        Ok(ylock) => {
            let done = client(&ylock, &mut findings).await;
            ylock.close().await;
            done?;
        }
        Err(failed) => findings.wrong("connection", failed)?,
    }
    findings.end()
}

/// Looks at each server that is named, by itself: a client is content with the first one that answers.
async fn named(store: &Store, findings: &mut Findings) -> Result<()> {
    if store.url.hosts.len() < 2 {
        return Ok(());
    }
    let hosts = &store.url.hosts;
    let reached = join_all(hosts.iter().map(|host| reach(store, host))).await;
    for (host, reached) in hosts.iter().zip(reached) {
        let name = address(host);
        match reached {
            Ok(took) => findings.say(
                "reached",
                &format!("{name}, connected within {}", words::time(took)),
                json!({"server": name, "seconds": took.as_secs_f64()}),
            )?,
            Err(Failed { code, message }) => {
                findings.wrong("reached", Failed::new(code, format!("{name}: {message}")))?;
            }
        }
    }
    Ok(())
}

async fn reach(store: &Store, host: &Host) -> Result<Duration> {
    let mut url = store.url.clone();
    url.hosts = vec![host.clone()];
    let begun = Instant::now();
    let ylock = ylock::connect_to(url).await?;
    let took = begun.elapsed();
    ylock.close().await;
    Ok(took)
}

async fn client(ylock: &Ylock, findings: &mut Findings) -> Result<()> {
    match ylock.diagnose().await {
        Ok(seen) => told(&seen, findings)?,
        Err(error) => findings.wrong("servers", error.into())?,
    }
    findings.say("engine", ylock.engine_name(), json!(ylock.engine_name()))?;
    findings.say("name of this client", ylock.name().as_str(), json!(ylock.name().as_str()))?;
    let lease = ylock.options().lease();
    findings.say("lease", &humantime::format_duration(lease).to_string(), json!(lease.as_secs_f64()))?;
    for (what, holds) in words::promises(ylock.guarantees()) {
        let says = if holds { "promises" } else { "does NOT promise" };
        findings.say(says, what, json!({"promise": what, "holds": holds}))?;
    }
    tries::all(ylock, findings).await
}

/// Says what the servers have told.
fn told(seen: &Diagnostics, findings: &mut Findings) -> Result<()> {
    for server in &seen.servers {
        match &server.fault {
            None => findings.say("server", &words::server(server), words::json(server))?,
            Some(fault) => {
                let text = format!("{}: {fault}", server.address);
                findings.wrong("server", Failed::new(UNAVAILABLE, text))?;
            }
        }
    }
    for (what, text) in &seen.facts {
        findings.say(what, text, json!(text))?;
    }
    seen.servers
        .iter()
        .filter_map(clock_here)
        .chain(seen.findings.iter().cloned())
        .try_for_each(|risk| findings.risk(&risk))
}

/// Returns what comes of a clock that differs from that of this machine.
fn clock_here(server: &ServerReport) -> Option<Finding> {
    let apart = server.clock?.apart();
    let here = || {
        let what = format!(
            "the clocks of {} and of this machine differ by {}: periods of jobs go by the clock of the client, and so may the order of waiters",
            server.address,
            words::time(apart)
        );
        Finding::new(what, "set both clocks by NTP")
    };
    (apart > CLOCK).then(here)
}
