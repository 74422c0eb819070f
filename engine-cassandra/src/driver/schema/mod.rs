//! Keyspace and table: created if asked to, checked always.

use std::sync::Arc;
use std::time::Duration;

use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use ylock_core::engine::{Diagnostics, Finding};
use ylock_core::environment::Environment;
use ylock_core::{Error, ErrorKind, Result};

use super::{errors, session};
use crate::options::{CassandraOptions, Rules, SchemaMode};

mod look;
mod meet;
mod replicas;
mod text;

use look::{Fit, Found, look, warn_of_short_grace};
pub(super) use meet::Asker;

/// The time that [`SchemaMode::Create`] may take in all, with every other client of the cluster creating the same.
pub(super) const CREATE_TIME: Duration = Duration::from_secs(60);
/// The time to wait, more or less, before looking at the schema again.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// The part of the connect timeout for which a client waits until the nodes agree on the schema.
const AGREEMENT_PART: u32 = 5;
/// The number of looks after which a fault counts as one that will not go away.
const ATTEMPTS: u32 = 10;

/// Makes sure that the table is there and fits. Returns by which rules its clients go.
pub(super) async fn ensure(
    asker: Asker<'_>,
    options: &CassandraOptions,
    environment: &Arc<dyn Environment>,
) -> Result<Rules> {
    if options.schema() == SchemaMode::Create {
        create(asker, options, environment).await?;
    }
    // Of two clients that create the table differently, perhaps by way of two nodes, one has lost when the nodes agree. What a look has shown
    // before that may be what it wanted.
    let fit = look_again(asker, options, environment).await?;
    replicas::check(asker, options).await?;
    warn_of_short_grace(fit, &options.clone().with_rules(fit.rules));
    Ok(fit.rules)
}

/// Checks that the table is there and still fits, when the nodes agree on it.
pub(super) async fn look_again(
    asker: Asker<'_>,
    options: &CassandraOptions,
    environment: &Arc<dyn Environment>,
) -> Result<Fit> {
    if !agree(asker, options, &**environment).await {
        // That is no reason to do without locks.
        tracing::warn!("the nodes do not agree on the schema; the table is taken as one of them has it");
    }
    fit(asker, options).await
}

/// Returns whether the nodes agree on the schema. Waits a little for it: while any program changes any table they do not. They go on
/// disagreeing while a cluster is upgraded, or a node hangs.
async fn agree(asker: Asker<'_>, options: &CassandraOptions, environment: &dyn Environment) -> bool {
    let limit = options.connect_timeout() / AGREEMENT_PART;
    let agreement = session::within(environment, limit, asker.session.await_schema_agreement()).await;
    matches!(agreement, Some(Ok(_)))
}

/// Checks that the table is there and fits.
async fn fit(asker: Asker<'_>, options: &CassandraOptions) -> Result<Fit> {
    match look(asker, options).await? {
        Found::Fits(fit) => Ok(fit),
        Found::Wrong(error) => Err(error),
        Found::NoKeyspace => Err(no_keyspace(options)),
        Found::NoTable => {
            let (keyspace, table) = (options.keyspace(), options.table());
            Err(missing(options, &format!("keyspace {keyspace} has no table {table}")))
        }
    }
}

/// Returns what is so of the schema, and what of it breaks a promise.
pub(super) async fn diagnose(
    asker: Asker<'_>,
    options: &CassandraOptions,
    environment: &dyn Environment,
    seen: &mut Diagnostics,
) -> Result<()> {
    let fit = fit(asker, options).await?;
    let (keyspace, table) = (options.keyspace(), options.table());
    let facts = [
        ("table", format!("{keyspace}.{table}")),
        ("rules", fit.rules.words().map(|(name, value)| format!("{name}={value}")).join(", ")),
        ("consistency", options.consistency().to_string()),
        ("replicas", replicas::words(asker, options).await?),
    ];
    seen.facts.extend(facts);
    if fit.has_short_grace(options) {
        let what = format!(
            "gc_grace_seconds of {keyspace}.{table} is shorter than a node may show a row of this client's lease: one that was down may show \
             a released lock as held until the row ends"
        );
        seen.findings.push(Finding::new(what, format!("{};", text::grace(options))));
    }
    if !agree(asker, options, environment).await {
        let what = "the nodes do not agree on the schema: one of them may not know the table";
        seen.findings.push(Finding::new(what, "nodetool describecluster"));
    }
    Ok(())
}

/// Creates what is missing until nothing is.
///
/// Other clients may do the same at the same time, so any step may meet a half-made schema, or lose a race that another client wins.
/// What a statement answered does not matter; what the next look finds decides.
async fn create(
    asker: Asker<'_>,
    options: &CassandraOptions,
    environment: &Arc<dyn Environment>,
) -> Result<()> {
    let mut last = no_keyspace(options);
    for _ in 0..ATTEMPTS {
        match step(asker, options).await {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => {
                last = error;
                environment.sleep(environment.jitter(LOOK_AGAIN)).await;
            }
        }
    }
    Err(last)
}

/// Does what has to be done next. Returns whether nothing was left to do.
async fn step(asker: Asker<'_>, options: &CassandraOptions) -> Result<bool> {
    // Look first: where all is there no statement is sent, and no right to create is needed.
    match look(asker, options).await? {
        Found::Fits(_) => {
            // First: where the named data centre has no replicas, no node could answer what comes next.
            replicas::check(asker, options).await?;
            settle(asker, options).await.map(|()| true)
        }
        Found::NoKeyspace => {
            check_for_a_new_table(options)?;
            change(asker, text::keyspace(options)).await.map(|()| false)
        }
        Found::NoTable => {
            check_for_a_new_table(options)?;
            change(asker, text::table(options)).await.map(|()| false)
        }
        Found::Wrong(error) => Err(error),
    }
}

/// Checks the options by the rule that a new table has. A client that is refused must not leave one behind: by its rule the user, who then
/// names the other one, would be refused again.
fn check_for_a_new_table(options: &CassandraOptions) -> Result<()> {
    options.clone().with_rules(options.rules()).check()
}

/// Waits until every node that can be reached knows the table, whichever client created it, and the table can be read.
///
/// A node writes down a new table before it can use it: one that was just created is found, and refused when used.
async fn settle(asker: Asker<'_>, options: &CassandraOptions) -> Result<()> {
    asker.session.await_schema_agreement().await.map_err(errors::agreement)?;
    asker.probe(&text::probe(options)).await.map_err(errors::classify)?;
    // The driver routes by what it knows of the keyspace; without this it would learn of it a minute later.
    asker.session.refresh_metadata().await.map_err(errors::metadata)
}

/// Sends one statement that changes the schema; the driver then waits until the nodes agree.
async fn change(asker: Asker<'_>, cql: String) -> Result<()> {
    match asker.ask(&cql, ()).await {
        Ok(_) => Ok(()),
        Err(ExecutionError::LastAttemptError(RequestAttemptError::DbError(
            DbError::AlreadyExists { .. },
            _,
        ))) => Ok(()),
        Err(error) => Err(refused(&cql, error)),
    }
}

fn refused(cql: &str, error: ExecutionError) -> Error {
    let error = errors::classify(error);
    Error::new(error.kind(), format!("the schema could not be created with\n{cql}\n")).with_source(error)
}

fn no_keyspace(options: &CassandraOptions) -> Error {
    missing(options, &format!("there is no keyspace {}", options.keyspace()))
}

fn missing(options: &CassandraOptions, what: &str) -> Error {
    let message = format!(
        "{what}: connect once with schema=create, or run\n{};\n{};\n",
        text::keyspace(options),
        text::table(options)
    );
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
}
