//! Tables and functions on the server: made where there are none, and checked.

use std::sync::Arc;

use tokio_postgres::Client;
use tokio_postgres::types::Type;
use ylock_core::stored_version::OtherVersion;
use ylock_core::{Error, Result};

use super::connector::{Connector, To};
use super::errors::{self, wrong};
use super::server::alone;
use crate::functions::{VERSION, layout, quoted};
use crate::options::{PostgresOptions, SchemaMode};

/// The advisory lock that is held while the layout is made: of two clients that come at once one makes it.
const MAKING: i64 = 0x796c_6f63_6b00;

/// Whether there is the function that says which version there is.
const IS_THERE: &str = "select exists (select from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace \
    where n.nspname = $1 and p.proname = 'version')";

/// The tables that a crash of the server would empty, and with them the locks that are held. `locking` is one by design: it is empty outside a function.
const UNLOGGED: &str = "select string_agg(c.relname, ', ' order by c.relname) from pg_catalog.pg_class c \
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace \
    where n.nspname = $1 and c.relkind in ('r', 'p') and c.relpersistence <> 'p' and c.relname in ('lock', 'reader', 'waiter', 'run', 'layout')";

/// Makes tables and functions, if there are none and the options say so, and checks that they fit.
pub(super) async fn prepare(connector: &Arc<Connector>, options: &PostgresOptions) -> Result<()> {
    let client = alone(connector, To::Server).await?;
    let until = connector.environment().now().plus(connector.connect_timeout);
    let namespace = options.namespace();
    connector
        .until(until, async {
            if version(&client, namespace).await?.is_none() {
                match options.schema() {
                    SchemaMode::Create => make(&client, namespace).await?,
                    SchemaMode::Check => return Err(missing(namespace)),
                }
            }
            match version(&client, namespace).await? {
                Some(VERSION) => check_logged(&client, namespace).await,
                Some(other) => Err(other_version(namespace, other)),
                None => Err(wrong(format!("schema {namespace:?} has no tables of ylock"))),
            }
        })
        .await
}

/// Returns which version of tables and functions there is.
async fn version(client: &Client, namespace: &str) -> Result<Option<i32>> {
    let rows = client.query_typed(IS_THERE, &[(&namespace, Type::TEXT)]).await.map_err(errors::classify)?;
    let is_there = rows.first().is_some_and(|row| row.get::<_, bool>(0));
    if !is_there {
        return Ok(None);
    }
    let question = format!("select {}.version()", quoted(namespace));
    let rows = client.query_typed(&question, &[]).await.map_err(|error| refused(namespace, error))?;
    Ok(rows.first().and_then(|row| row.get(0)))
}

/// Fails if an operator has made tables unlogged.
async fn check_logged(client: &Client, namespace: &str) -> Result<()> {
    let rows = client.query_typed(UNLOGGED, &[(&namespace, Type::TEXT)]).await.map_err(errors::classify)?;
    match rows.first().and_then(|row| row.get::<_, Option<String>>(0)) {
        None => Ok(()),
        Some(tables) => Err(wrong(format!(
            "tables of schema {namespace:?} are unlogged, so a crash of the server would forget the locks that are held ({tables}): \
             alter table {namespace}.… set logged"
        ))),
    }
}

async fn make(client: &Client, namespace: &str) -> Result<()> {
    // The client that makes it may take longer than a function may wait for a row.
    let begin = format!("begin; set local lock_timeout = 0; select pg_advisory_xact_lock({MAKING})");
    client.batch_execute(&begin).await.map_err(errors::classify)?;
    // Another client may have made it meanwhile.
    if version(client, namespace).await?.is_none() {
        let made = client.batch_execute(&layout(namespace)).await;
        made.map_err(|error| unable(namespace, error))?;
    }
    client.batch_execute("commit").await.map_err(errors::classify)
}

fn other_version(namespace: &str, found: i32) -> Error {
    let other = OtherVersion {
        of: &format!("schema {namespace:?}"),
        place: "namespace=…",
        found: &found.to_string(),
        own: &VERSION.to_string(),
        remedy: &format!("drop schema {} cascade, which forgets the last runs of jobs", quoted(namespace)),
    };
    other.refused(crate::NAME)
}

fn missing(namespace: &str) -> Error {
    wrong(format!(
        "schema {namespace:?} has no tables of ylock, and schema=check makes none. A role that may create them runs:\n{}",
        layout(namespace)
    ))
}

fn unable(namespace: &str, error: tokio_postgres::Error) -> Error {
    let error = errors::classify(error);
    if !matches!(error.kind(), ylock_core::ErrorKind::Config) {
        return error;
    }
    wrong(format!(
        "the tables of ylock cannot be made in schema {namespace:?}. Connect once as a role that may create it, or run what schema=check prints; \
         then: grant usage on schema {namespace} to …"
    ))
    .with_source(error)
}

fn refused(namespace: &str, error: tokio_postgres::Error) -> Error {
    let error = errors::classify(error);
    if !matches!(error.kind(), ylock_core::ErrorKind::Config) {
        return error;
    }
    wrong(format!("this role may not use schema {namespace:?}: grant usage on schema {namespace} to it"))
        .with_source(error)
}
