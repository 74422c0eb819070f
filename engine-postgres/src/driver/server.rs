//! What must be so on the server, and what it promises.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio_postgres::{Client, Row};
use ylock_core::{ErrorKind, Result};

use super::connection::drive;
use super::connector::{Connector, To};
use super::errors::{self, wrong};
use super::store::Store;
use crate::options::{PostgresOptions, Standby};

/// The oldest version that works.
const OLDEST: i32 = 140_000;

/// Standbys are those that read the log, and the slots that keep it for one that is away. Backups, archives and subscriptions read it too, and never take over:
/// a role that may not see what others do sees their names. A sender that has just connected is not known yet: it is seen by the next look.
pub(super) const STANDBYS: &str = "with slot as (select slot_name::text as name, slot_type, active_pid from pg_replication_slots),
    reader as (select pid, coalesce(application_name, '') as name, coalesce(state, 'streaming') as state from pg_stat_replication),
    standby as (
        select name from reader
            where state in ('streaming', 'catchup', 'stopping') and name not in ('pg_basebackup', 'pg_receivewal')
            and not exists (select from slot where active_pid = pid and (slot_type = 'logical' or starts_with(slot.name, 'pg_basebackup_')))
        union select name || ', which is away' from slot where slot_type = 'physical' and active_pid is null
    )";

/// What depends on how the server is configured, behind [`STANDBYS`].
const QUESTION: &str = "select current_setting('server_version_num')::int, current_setting('synchronous_standby_names') <> '', \
    current_setting('fsync') = 'on', pg_is_in_recovery(), (select string_agg(name, '; ' order by name) from standby)";

/// The promises of a server, as far as they depend on how it is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Promises {
    /// Whether what it has confirmed outlives a restart.
    pub(crate) durable: bool,
    /// Whether a server that takes over has all that was confirmed.
    pub(crate) loses_nothing: bool,
    /// Whether it confirms nothing before a standby has it.
    pub(crate) waits_for_standbys: bool,
}

/// What is demanded of the server, and what it promised when it was last looked at: when the client connects, whenever a connection is made anew, because that may
/// lead to another server, and every few seconds, because standbys come and go.
#[derive(Debug)]
pub(super) struct Demands {
    standby: Standby,
    /// Whether the options name several servers, any of which may take over.
    has_several: bool,
    last: Mutex<Result<Promises>>,
}

impl Demands {
    pub(super) fn of(options: &PostgresOptions) -> Self {
        Self {
            standby: options.standby(),
            has_several: options.addresses().len() > 1,
            last: Mutex::new(Err(errors::unavailable("the server was not looked at"))),
        }
    }

    pub(super) fn accept_lost_writes(&self) -> bool {
        self.standby == Standby::LostWritesAccepted
    }

    /// Returns what the server promises by the last look, or why locks cannot be kept on it as it is now.
    pub(super) fn last(&self) -> Result<Promises> {
        self.last.lock().clone()
    }

    /// Looks at the server over a connection. `when` is when that is.
    pub(super) async fn look(&self, client: &Client, when: When) -> Result<Promises> {
        self.hear(&client.query_typed(&question(), &[]).await.map_err(errors::classify)?, when)
    }

    /// Looks at the server again, over the connection for requests.
    pub(super) async fn look_again(&self, store: &Store) -> Result<Promises> {
        self.hear(&store.ask(&question(), &[]).await?, When::Later)
    }

    fn hear(&self, rows: &[Row], when: When) -> Result<Promises> {
        let row = rows.first().ok_or_else(|| errors::unavailable("the server does not say what it is"))?;
        let judged = self.judge(&Said::of(row)?, when);
        // One that takes no writes now says nothing about the one that will.
        if judged.as_ref().map_or_else(|error| error.kind() == ErrorKind::Config, |_| true) {
            let before = std::mem::replace(&mut *self.last.lock(), judged.clone());
            tell(&before, &judged);
        }
        judged
    }

    fn judge(&self, said: &Said, when: When) -> Result<Promises> {
        if said.version < OLDEST {
            let version = said.version / 10_000;
            return Err(wrong(format!("the server is PostgreSQL {version}: 14 or later is needed")));
        }
        if said.is_standby {
            return Err(errors::unavailable("the server is a standby, which takes no writes"));
        }
        let may_take_over = said.standbys.is_some() || when == When::Connecting && self.has_several;
        let loses_nothing = said.waits_for_standbys || !may_take_over;
        if !loses_nothing && !self.accept_lost_writes() {
            let standbys = said.standbys.as_deref().unwrap_or("the options name several servers");
            return Err(wrong(format!(
                "a standby may take over that lacks the last writes, and locks be granted twice then ({standbys}): set synchronous_standby_names on the \
                 server, drop the replication slot of a standby that is no more, or accept that with standby=lost_writes_accepted, without tokens"
            )));
        }
        // Who says that writes may be lost gets no tokens, whatever the server says now: it may say something else when it is configured anew.
        let loses_nothing = loses_nothing && !self.accept_lost_writes();
        Ok(Promises { durable: said.syncs, loses_nothing, waits_for_standbys: said.waits_for_standbys })
    }
}

/// When the server is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// The client connects. Of several servers that its options name one may be a standby that this look does not show.
    Connecting,
    /// The client is connected. It may be at a server that has taken over and has no standby: locks must go on there.
    Later,
}

fn question() -> String {
    format!("{STANDBYS} {QUESTION}")
}

/// Tells of a change while the client is connected.
fn tell(before: &Result<Promises>, now: &Result<Promises>) {
    match (before, now) {
        (Ok(_), Err(error)) => {
            tracing::warn!(
                error = format!("{error:#}"),
                "locks are not granted any more on the server as it is now; those that are held go on"
            );
        }
        (Err(error), Ok(_)) if error.kind() == ErrorKind::Config => {
            tracing::info!("locks are granted again on the server as it is now");
        }
        _ => {}
    }
}

/// Checks whether locks can be kept on the server.
pub(super) async fn check(connector: &Arc<Connector>) -> Result<Promises> {
    let client = alone(connector, To::Server).await?;
    let until = connector.environment().now().plus(connector.connect_timeout);
    connector.until(until, connector.demands.look(&client, When::Connecting)).await
}

/// Opens a connection that is used for one purpose, and closed when the client is dropped.
pub(super) async fn alone(connector: &Arc<Connector>, to: To) -> Result<Client> {
    let opened = connector.open(to).await?;
    connector.environment().spawn_beside(Box::pin(drive(opened.messages)));
    Ok(opened.client)
}

/// What the server says of itself.
#[derive(Clone, Debug)]
struct Said {
    version: i32,
    waits_for_standbys: bool,
    syncs: bool,
    is_standby: bool,
    /// The names of its standbys, if it has any.
    standbys: Option<String>,
}

impl Said {
    fn of(row: &Row) -> Result<Self> {
        let flag = |place| row.try_get(place).map_err(errors::classify);
        Ok(Self {
            version: row.try_get(0).map_err(errors::classify)?,
            waits_for_standbys: flag(1)?,
            syncs: flag(2)?,
            is_standby: flag(3)?,
            standbys: row.try_get(4).map_err(errors::classify)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Said =
        Said { version: 150_000, waits_for_standbys: false, syncs: true, is_standby: false, standbys: None };

    fn demands(hosts: usize, standby: Standby) -> Demands {
        let hosts = (0..hosts).map(|number| (format!("h{number}"), 5432));
        Demands::of(&PostgresOptions::of_hosts(hosts, "d").with_standby(standby))
    }

    #[test]
    fn standbys_that_may_lack_writes_are_refused_unless_that_is_accepted() {
        let with_standby = Said { standbys: Some("second".to_owned()), ..ALONE };
        for (said, hosts) in [(&with_standby, 1), (&ALONE, 2), (&with_standby, 2)] {
            let (demands, accepts) =
                (demands(hosts, Standby::Synchronous), demands(hosts, Standby::LostWritesAccepted));
            let error = demands.judge(said, When::Connecting).unwrap_err();
            assert!(error.kind() == ErrorKind::Config && error.to_string().contains("lost_writes_accepted"));
            assert_eq!(error.to_string().contains("second"), said.standbys.is_some());
            assert!(!accepts.judge(said, When::Connecting).unwrap().loses_nothing);
            // Another server has taken over, and is alone.
            assert_eq!(demands.judge(said, When::Later).is_ok(), said.standbys.is_none());
            let waits = Said { waits_for_standbys: true, ..said.clone() };
            assert!(demands.judge(&waits, When::Connecting).unwrap().loses_nothing);
            assert!(!accepts.judge(&waits, When::Later).unwrap().loses_nothing);
        }
        assert_eq!(
            demands(1, Standby::Synchronous).judge(&ALONE, When::Connecting).unwrap(),
            Promises { durable: true, loses_nothing: true, waits_for_standbys: false }
        );
    }

    #[test]
    fn an_old_server_and_a_standby_are_refused() {
        let demands = demands(1, Standby::Synchronous);
        let error = demands.judge(&Said { version: 130_011, ..ALONE }, When::Connecting).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        let error = demands.judge(&Said { is_standby: true, ..ALONE }, When::Connecting).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
}
