//! What each member tells of itself: by a connection of its own, so that those are asked too that the client does not use.

use futures_util::future::join_all;
use ylock_core::engine::{Diagnostics, Finding, ServerReport};
use ylock_core::environment::Environment;

use super::connect::{Connector, is_old};
use super::errors;
use super::messages::StatusResponse;

/// The part of its quota that a member's database may take before that is told, in percent. When it is used up, no lock can be acquired or renewed.
const FULL: i64 = 80;

/// Asks all members at once.
pub(super) async fn diagnose(connector: &Connector, environment: &dyn Environment) -> Diagnostics {
    let told =
        join_all(connector.addresses().map(|address| of_member(connector, address, environment))).await;
    let mut seen = Diagnostics::default();
    for (facts, status) in told {
        seen.findings.extend(status.iter().flat_map(|status| findings(&facts.address, status)));
        seen.servers.push(facts);
    }
    seen
}

async fn of_member(
    connector: &Connector,
    address: String,
    environment: &dyn Environment,
) -> (ServerReport, Option<StatusResponse>) {
    let asked = environment.now();
    let answer = tokio::select! {
        biased;
        answer = connector.status_of(&address) => answer,
        () = environment.sleep(connector.request_timeout) => Err(errors::unavailable("it did not answer in time")),
    };
    let status = match answer {
        Ok(status) => status,
        Err(error) => return (ServerReport::failed(address, format!("{error:#}")), None),
    };
    let mut facts = ServerReport::new(address);
    facts.version = Some(status.version.clone());
    facts.role = Some(role(&status).to_owned());
    facts.login = connector.user().map(str::to_owned);
    facts.encrypted = Some(connector.is_encrypted());
    facts.round_trip = Some(environment.now().since(asked));
    (facts, Some(status))
}

fn role(status: &StatusResponse) -> &'static str {
    let own = status.header.as_ref().map_or(0, |header| header.member_id);
    match status.leader {
        _ if status.is_learner => "learner",
        0 => "without a leader",
        leader if leader == own => "leader",
        _ => "follower",
    }
}

fn findings(address: &str, status: &StatusResponse) -> Vec<Finding> {
    let mut findings = Vec::new();
    if is_old(&status.version) {
        findings.push(Finding::new(
            format!(
                "etcd {} at {address} may answer that a lease was renewed which was revoked",
                status.version
            ),
            "install 3.6.5, 3.5.23 or 3.4.38, or a later version of these",
        ));
    }
    // Servers before 3.6 do not tell the quota.
    if status.db_size_quota > 0 && status.db_size >= status.db_size_quota / 100 * FULL {
        findings.push(Finding::new(
            format!(
                "the database of {address} has {} of the {} bytes that it may have: without room no lock is acquired, and those that are held are lost",
                status.db_size, status.db_size_quota
            ),
            "compact by itself (--auto-compaction-mode=periodic --auto-compaction-retention=5m), and run: etcdctl defrag",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_is_nearly_full_and_an_old_server_are_risks() {
        let status = StatusResponse {
            version: "3.6.16".to_owned(),
            db_size: 1_000,
            db_size_quota: 2_000,
            ..StatusResponse::default()
        };
        assert!(findings("a:1", &status).is_empty());
        let full = StatusResponse { db_size: 1_700, ..status.clone() };
        assert!(findings("a:1", &full)[0].what.contains("1700 of the 2000"));
        let old = StatusResponse { version: "3.5.0".to_owned(), ..status };
        assert!(findings("a:1", &old)[0].what.contains("3.5.0"));
    }
}
