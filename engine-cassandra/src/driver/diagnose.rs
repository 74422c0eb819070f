//! What the nodes tell of themselves, for those who look after them.

use ylock_core::Result;
use ylock_core::engine::{Diagnostics, Finding};
use ylock_core::environment::Environment;
use ylock_core::options::Tls;

use super::clocks;
use super::schema::{self, Asker};
use crate::options::CassandraOptions;

/// Asks all nodes that the driver knows.
pub(super) async fn diagnose(
    asker: Asker<'_>,
    options: &CassandraOptions,
    environment: &dyn Environment,
) -> Result<Diagnostics> {
    let mut seen = Diagnostics::default();
    seen.servers = clocks::ask(asker, environment).await;
    seen.servers.sort_by(|one, other| one.address.cmp(&other.address));
    // Of a session that the program has handed over the options do not know it.
    if options.handed_over().is_none() {
        for server in &mut seen.servers {
            server.encrypted = Some(options.tls() != Tls::Off);
            server.login = options.login().map(|login| login.user.clone());
        }
    }
    schema::diagnose(asker, options, environment, &mut seen).await?;
    let limit = options.max_clock_skew();
    let apart = seen.clocks_apart().map(|(slow, fast, apart)| (&slow.address, &fast.address, apart));
    if let Some((slow, fast, apart)) = apart.filter(|(_, _, apart)| *apart > limit) {
        seen.findings.push(Finding::new(
            format!("the clocks of {slow} and {fast} differ by {apart:?}, which is more than max_clock_skew ({limit:?}): locks are lost, or granted twice"),
            "set the clocks of the nodes by NTP",
        ));
    }
    Ok(seen)
}
