//! What must be so on the server, and what it promises.

use std::sync::Arc;

use tokio_postgres::{Client, Row};
use ylock_core::Result;

use super::connection::drive;
use super::connector::{Connector, To};
use super::errors::{self, wrong};
use crate::options::{PostgresOptions, Standby};

/// The oldest version that works.
const OLDEST: i32 = 140_000;

/// Backups, archives and subscriptions read the log as standbys do, and never take over.
const QUESTION: &str = "select current_setting('server_version_num')::int, current_setting('synchronous_standby_names') <> '', \
    current_setting('fsync') = 'on', pg_is_in_recovery(), exists (select from pg_stat_replication \
    where coalesce(state, 'streaming') = 'streaming' and coalesce(application_name, '') not in ('pg_basebackup', 'pg_receivewal') \
    and pid not in (select active_pid from pg_replication_slots where slot_type = 'logical' and active_pid is not null))";

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

/// Checks whether locks can be kept on the server.
pub(super) async fn check(connector: &Arc<Connector>, options: &PostgresOptions) -> Result<Promises> {
    let client = alone(connector, To::Server).await?;
    let until = connector.environment().now().plus(connector.connect_timeout);
    let asking = async { client.query_typed(QUESTION, &[]).await.map_err(errors::classify) };
    let rows = connector.until(until, asking).await?;
    let row = rows.first().ok_or_else(|| errors::unavailable("the server does not say what it is"))?;
    judge(&Said::of(row)?, options)
}

/// Opens a connection that is used for one purpose, and closed when the client is dropped.
pub(super) async fn alone(connector: &Arc<Connector>, to: To) -> Result<Client> {
    let opened = connector.open(to).await?;
    connector.environment().spawn(Box::pin(drive(opened.messages)));
    Ok(opened.client)
}

/// What the server says of itself.
#[derive(Clone, Copy, Debug)]
struct Said {
    version: i32,
    waits_for_standbys: bool,
    syncs: bool,
    is_standby: bool,
    has_standbys: bool,
}

impl Said {
    fn of(row: &Row) -> Result<Self> {
        let flag = |place| row.try_get(place).map_err(errors::classify);
        Ok(Self {
            version: row.try_get(0).map_err(errors::classify)?,
            waits_for_standbys: flag(1)?,
            syncs: flag(2)?,
            is_standby: flag(3)?,
            has_standbys: flag(4)?,
        })
    }
}

fn judge(said: &Said, options: &PostgresOptions) -> Result<Promises> {
    if said.version < OLDEST {
        let version = said.version / 10_000;
        return Err(wrong(format!("the server is PostgreSQL {version}: 14 or later is needed")));
    }
    if said.is_standby {
        return Err(errors::unavailable("the server is a standby, which takes no writes"));
    }
    let may_take_over = said.has_standbys || options.addresses().len() > 1;
    let loses_nothing = said.waits_for_standbys || !may_take_over;
    if !loses_nothing && options.standby() == Standby::Synchronous {
        return Err(wrong(
            "a standby may take over that lacks the last writes, and locks be granted twice then: set synchronous_standby_names on the server, \
             or accept that with standby=lost_writes_accepted, without tokens",
        ));
    }
    // Who says that writes may be lost gets no tokens, whatever the server says now: it may say something else when it is configured anew.
    let loses_nothing = loses_nothing && options.standby() == Standby::Synchronous;
    Ok(Promises { durable: said.syncs, loses_nothing, waits_for_standbys: said.waits_for_standbys })
}

#[cfg(test)]
mod tests {
    use ylock_core::ErrorKind;

    use super::*;

    const ALONE: Said = Said {
        version: 150_000,
        waits_for_standbys: false,
        syncs: true,
        is_standby: false,
        has_standbys: false,
    };

    fn options(hosts: usize) -> PostgresOptions {
        PostgresOptions::of_hosts((0..hosts).map(|number| (format!("h{number}"), 5432)), "d")
    }

    #[test]
    fn standbys_that_may_lack_writes_are_refused_unless_that_is_accepted() {
        let accepts = |options: PostgresOptions| options.with_standby(Standby::LostWritesAccepted);
        let with_standby = Said { has_standbys: true, ..ALONE };
        for (said, hosts) in [(with_standby, 1), (ALONE, 2), (with_standby, 2)] {
            let error = judge(&said, &options(hosts)).unwrap_err();
            assert!(error.kind() == ErrorKind::Config && error.to_string().contains("lost_writes_accepted"));
            assert!(!judge(&said, &accepts(options(hosts))).unwrap().loses_nothing);
            let waits = Said { waits_for_standbys: true, ..said };
            assert!(judge(&waits, &options(hosts)).unwrap().loses_nothing);
            assert!(!judge(&waits, &accepts(options(hosts))).unwrap().loses_nothing);
        }
        assert_eq!(
            judge(&ALONE, &options(1)).unwrap(),
            Promises { durable: true, loses_nothing: true, waits_for_standbys: false }
        );
    }

    #[test]
    fn an_old_server_and_a_standby_are_refused() {
        assert_eq!(
            judge(&Said { version: 130_011, ..ALONE }, &options(1)).unwrap_err().kind(),
            ErrorKind::Config
        );
        let error = judge(&Said { is_standby: true, ..ALONE }, &options(1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
}
