//! `ylock doctor`: whether the store can be reached, and what it promises.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use ylock::{Guarantees, Owner, Ylock};

use crate::arguments::DoctorArguments;
use crate::exit::{Failed, NOT_FREE, Result};
use crate::output;
use crate::store::{Store, address};

/// So many looks tell what a trip to the store takes.
const LOOKS: usize = 20;

pub(crate) async fn doctor(store: &Store, arguments: DoctorArguments) -> Result<u8> {
    let mut findings = Findings { json: arguments.json, found: vec![], code: None };
    findings.say("store", &store.shown(), json!(store.shown()))?;
    findings.say("named", &store.source.to_string(), json!(store.source.to_string()))?;
    servers(store, &mut findings).await?;
    match store.connect().await {
        Ok(ylock) => {
            client(&ylock, &mut findings).await?;
            ylock.close().await;
        }
        Err(failed) => findings.wrong("connection", failed)?,
    }
    findings.end()
}

/// Looks at each server by itself: a client is content with the first one that answers.
async fn servers(store: &Store, findings: &mut Findings) -> Result<()> {
    if store.url.hosts.len() < 2 {
        return Ok(());
    }
    for host in store.url.hosts.clone() {
        let name = address(&host);
        let mut url = store.url.clone();
        url.hosts = vec![host];
        let begun = Instant::now();
        match ylock::connect_to(url).await {
            Ok(ylock) => {
                findings.say(
                    "server",
                    &format!("{name} is reached, in {}", rounded(begun.elapsed())),
                    json!({"server": name, "reached": true}),
                )?;
                ylock.close().await;
            }
            Err(error) => {
                let Failed { code, message } = error.into();
                findings.wrong("server", Failed::new(code, format!("{name}: {message}")))?;
            }
        }
    }
    Ok(())
}

async fn client(ylock: &Ylock, findings: &mut Findings) -> Result<()> {
    findings.say("engine", ylock.engine_name(), json!(ylock.engine_name()))?;
    findings.say("name of this client", ylock.name().as_str(), json!(ylock.name().as_str()))?;
    let lease = ylock.options().lease();
    findings.say("lease", &humantime::format_duration(lease).to_string(), json!(lease.as_secs_f64()))?;
    for (what, holds) in promises(ylock.guarantees()) {
        let says = if holds { "promises" } else { "does NOT promise" };
        findings.say(says, what, json!({"promise": what, "holds": holds}))?;
    }
    match latency(ylock).await {
        Ok((middle, longest)) => findings.say(
            "a look at a lock",
            &format!("takes {} in the middle of {LOOKS}, {} at most", rounded(middle), rounded(longest)),
            json!({"median": middle.as_secs_f64(), "longest": longest.as_secs_f64()}),
        )?,
        Err(error) => findings.wrong("a look at a lock", error.into())?,
    }
    match pair(ylock).await {
        Ok(took) => {
            let text = format!("take {}", rounded(took));
            findings.say("acquire and release", &text, json!(took.as_secs_f64()))
        }
        Err(failed) => findings.wrong("acquire and release", failed),
    }
}

async fn latency(ylock: &Ylock) -> ylock::Result<(Duration, Duration)> {
    let mut took = Vec::new();
    for _ in 0..LOOKS {
        let begun = Instant::now();
        ylock.inspect("ylock doctor", "a lock").await?;
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    Ok((took[LOOKS / 2], took[LOOKS - 1]))
}

/// Acquires a lock that no other client has, and gives it back.
async fn pair(ylock: &Ylock) -> Result<Duration> {
    let begun = Instant::now();
    let name = Owner::new().to_string();
    let guard = ylock.locks("ylock doctor").try_write(name).await?;
    let guard = guard.ok_or_else(|| Failed::new(NOT_FREE, "a lock of a new name has a holder"))?;
    // Lost or not: what is measured is the store.
    let _ = guard.unlock().await?;
    Ok(begun.elapsed())
}

fn promises(guarantees: Guarantees) -> [(&'static str, bool); 5] {
    let Guarantees { fair, fencing, shared_reads, durable, exclusive_after_failover, .. } = guarantees;
    [
        ("that clients are served in the order in which they came", fair),
        ("a fencing token that grows from holder to holder", fencing),
        ("that readers share a lock", shared_reads),
        ("that a lock outlives a restart of the store", durable),
        ("that a lock stays exclusive when another server takes over", exclusive_after_failover),
    ]
}

fn rounded(time: Duration) -> String {
    humantime::format_duration(Duration::from_micros(time.as_micros() as u64)).to_string()
}

struct Findings {
    json: bool,
    found: Vec<Value>,
    /// The exit code of the first thing that is wrong.
    code: Option<u8>,
}

impl Findings {
    fn say(&mut self, what: &str, text: &str, value: Value) -> Result<()> {
        if self.json {
            self.found.push(json!({"what": what, "is": value}));
            return Ok(());
        }
        output::line(&format!("{what}: {text}"))
    }

    fn wrong(&mut self, what: &str, why: Failed) -> Result<()> {
        self.code.get_or_insert(why.code);
        self.say(what, &format!("WRONG: {}", why.message), json!({"wrong": why.message}))
    }

    fn end(self) -> Result<u8> {
        if self.json {
            output::json_line(&json!({"well": self.code.is_none(), "found": self.found}))?;
        }
        Ok(self.code.unwrap_or(0))
    }
}
