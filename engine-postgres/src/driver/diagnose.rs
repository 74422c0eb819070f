//! What the server tells of itself.

use std::time::Duration;

use tokio_postgres::Row;
use ylock_core::Result;
use ylock_core::engine::{ClockReading, Diagnostics, Finding, ServerReport};
use ylock_core::server_clock::TellsTime;

use super::errors;
use super::server::STANDBYS;
use super::store::Store;

/// For how long a snapshot may be kept before it is told.
const OLD: Duration = Duration::from_secs(10 * 60);
/// The part of the queue of messages that may be full before it is told.
const FULL: f64 = 0.25;

/// What comes behind [`STANDBYS`]. What a role may not see of others is null.
const QUESTION: &str = "select current_setting('server_version') as version, pg_is_in_recovery() as is_standby, current_user::text as login,
    coalesce(host(inet_server_addr()) || ':' || inet_server_port(), '') as address,
    coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false) as encrypted,
    current_setting('fsync') = 'on' as syncs, current_setting('synchronous_standby_names') as waits_for,
    (select string_agg(name, '; ' order by name) from standby) as standbys,
    current_setting('archive_mode') <> 'off' and (current_setting('archive_command') not in ('', '(disabled)')
        or coalesce(current_setting('archive_library', true), '') <> '') as archives,
    pg_notification_queue_usage() as queue,
    coalesce((select max(extract(epoch from clock_timestamp() - xact_start))::float8 from pg_stat_activity where backend_xmin is not null), 0)
    as oldest";

/// Asks the server that takes writes.
pub(super) async fn diagnose(store: &Store) -> Result<Diagnostics> {
    let environment = &**store.connector.environment();
    let (before, asked) = (environment.wall_micros(), environment.now());
    let shown = match store.server_time().await {
        Ok(shown) => shown,
        Err(error) => {
            let server = ServerReport::failed(store.meter().address().unwrap_or_default(), error.to_string());
            let mut seen = Diagnostics::default();
            seen.servers.push(server);
            return Ok(seen);
        }
    };
    let (round_trip, after) = (environment.now().since(asked), environment.wall_micros());
    let rows = store.ask(&format!("{STANDBYS} {QUESTION}"), &[]).await?;
    let row = rows.first().ok_or_else(|| errors::unavailable("the server does not say what it is"))?;
    let mut seen = read(row, store.connector.demands.accept_lost_writes()).map_err(errors::classify)?;
    for server in &mut seen.servers {
        server.round_trip = Some(round_trip);
        server.clock = Some(ClockReading::of(before, shown, after, 1));
    }
    Ok(seen)
}

fn read(row: &Row, accepts_lost_writes: bool) -> std::result::Result<Diagnostics, tokio_postgres::Error> {
    let mut seen = Diagnostics::default();
    let mut server = ServerReport::new(row.try_get::<_, String>("address")?);
    server.version = Some(row.try_get("version")?);
    server.role = Some(if row.try_get("is_standby")? { "standby" } else { "primary" }.to_owned());
    server.login = Some(row.try_get("login")?);
    server.encrypted = Some(row.try_get("encrypted")?);
    seen.servers.push(server);
    let syncs: bool = row.try_get("syncs")?;
    seen.facts
        .push(("commits", if syncs { "reach the disk" } else { "do not wait for the disk" }.to_owned()));
    if !syncs {
        seen.findings.push(Finding::new(
            "locks that were granted are forgotten when the machine loses its power",
            "fsync = on",
        ));
    }
    read_standbys(row, accepts_lost_writes, &mut seen)?;
    let (queue, oldest): (f64, f64) = (row.try_get("queue")?, row.try_get("oldest")?);
    if queue > FULL {
        let percent = queue * 100.0;
        seen.findings.push(Finding::new(
            format!("the queue of NOTIFY is full to {percent:.0} %: when there is no room, waiters are not told"),
            "end the transaction of the session that listens and does not read: select pg_terminate_backend(…)",
        ));
    }
    if oldest > OLD.as_secs_f64() {
        let minutes = oldest / 60.0;
        seen.findings.push(Finding::new(
            format!("a transaction has been open for {minutes:.0} minutes: old versions of rows stay, and hot locks become slower"),
            "end it: select pg_terminate_backend(pid) from pg_stat_activity where backend_xmin is not null order by xact_start limit 1",
        ));
    }
    Ok(seen)
}

/// Reads which servers may take over, as far as this one knows.
fn read_standbys(
    row: &Row,
    accepts_lost_writes: bool,
    seen: &mut Diagnostics,
) -> std::result::Result<(), tokio_postgres::Error> {
    let (standbys, waits_for): (Option<String>, String) =
        (row.try_get("standbys")?, row.try_get("waits_for")?);
    let archives: bool = row.try_get("archives")?;
    seen.facts.push((
        "standbys",
        match (standbys.as_deref(), waits_for.as_str()) {
            (None, "") => "none".to_owned(),
            (Some(standbys), "") => format!("{standbys}; waits for none"),
            (standbys, names) => format!("{}; waits for {names}", standbys.unwrap_or("none")),
        },
    ));
    seen.facts.push(("archive of the log", if archives { "there is one" } else { "none" }.to_owned()));
    if standbys.is_some() && waits_for.is_empty() {
        seen.findings.push(Finding::new(
            "a standby that takes over may lack the last grants, and locks be granted twice",
            "synchronous_standby_names = '…' on the server",
        ));
    }
    if archives && waits_for.is_empty() && !accepts_lost_writes {
        seen.findings.push(Finding::new(
            "the server writes an archive of its log: no client sees a server that is made of that, or follows it. Should it take over, it may lack the last grants, \
             and locks be granted twice",
            "let none from the archive take over while clients run; a standby that may take over streams, and is named in synchronous_standby_names",
        ));
    }
    Ok(())
}
