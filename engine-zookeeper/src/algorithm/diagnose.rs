//! What the servers tell of themselves, for those who look after them.

use ylock_core::engine::{ClockReading, Diagnostics};
use ylock_core::{ErrorKind, Result};

use super::client::Client;
use super::session::Session;
use super::store::to_error;

/// The servers count whole milliseconds; in microseconds.
const GRAIN: i64 = 1_000;

/// Asks all servers, and the one that leads for its time: it is the only clock that a request shows.
pub(crate) async fn diagnose(client: &Client, session: &Session) -> Result<Diagnostics> {
    let mut seen = Diagnostics::default();
    seen.servers = client.ensemble.servers().await;
    let clock = clock_of_the_leader(session).await?;
    let leads = |role: &Option<String>| matches!(role.as_deref(), Some("leader" | "standalone"));
    match seen.servers.iter_mut().find(|server| leads(&server.role)) {
        Some(leader) => leader.clock = clock,
        None => {
            let told = clock.map(|clock| format!("within {:?} of that of this machine", clock.apart()));
            seen.facts.extend(told.map(|told| ("clock of the leader", told)));
        }
    }
    let options = &client.options;
    seen.facts.push(("locks below", options.base().to_owned()));
    seen.facts.push((
        "session",
        format!(
            "{:?} as the servers granted it, so a lease is at most {:?}",
            session.timeout(),
            session.longest_lease()
        ),
    ));
    Ok(seen)
}

/// Makes a node for a moment: the time at which it was made is by the clock of the server that leads.
async fn clock_of_the_leader(session: &Session) -> Result<Option<ClockReading>> {
    let path = format!("{}/examined-{:016x}", session.base, session.environment.random());
    let before = session.environment.wall_micros();
    let made = session.make_for_the_time(&path).await.map_err(to_error);
    let after = session.environment.wall_micros();
    let shown = match made {
        Ok(Some(shown)) => shown,
        Ok(None) => return Ok(None),
        // A user that may not make a node there may still take locks, where all above them was made by another one.
        Err(error) if error.kind() == ErrorKind::Config => return Ok(None),
        Err(error) => return Err(error),
    };
    // If that fails it goes with the session.
    let _ = session.remove(&path).await;
    Ok(Some(ClockReading::of(before, shown.saturating_mul(1_000), after, GRAIN)))
}
