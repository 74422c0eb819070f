//! The last run of a job: a node that stays, `<base>/runs/<bucket>/<name>`, whose content is replaced only as it was read.

use std::time::Duration;

use ylock_core::{Error, ErrorKind, JobRun, Key, Result};

use super::place::Place;
use super::session::Session;
use super::store::{Contender, Fault, to_error};

/// The number of times that a run is stored if each time another client has written in between.
const ATTEMPTS: u32 = 8;
/// How many nodes of a bucket a client looks at, whenever it has done a job, for one that is not kept any more.
const LOOKED_AT: usize = 4;
/// For how much longer a node stays than its run is kept: the clock of the client that removes it may be ahead by as much.
const GRACE: Duration = Duration::from_secs(24 * 3600);

/// What a node says: until when the run is kept, in microseconds since 1970 by the wall clock of the client that has stored it; and the run.
struct Stored {
    until: i64,
    run: JobRun,
}

impl Stored {
    fn read(path: &str, content: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(content).ok();
        let stored = text.and_then(|text| {
            let (until, run) = text.split_once(' ')?;
            Some(Self { until: until.parse().ok()?, run: JobRun::read(run)? })
        });
        stored.ok_or_else(|| {
            let message =
                format!("the node {path} has no run of a job in it: {:?}", String::from_utf8_lossy(content));
            Error::new(ErrorKind::Unexpected, message)
        })
    }

    fn to_content(&self) -> Vec<u8> {
        format!("{} {}", self.until, self.run.to_text()).into_bytes()
    }
}

/// Returns the last run of the job of a key. The session may be another one than that which has the lock, so its server may not have shown yet what the
/// last holder has stored.
pub(crate) async fn last_run(session: &Session, key: &Key) -> Result<Option<JobRun>> {
    let path = Place::of_run(&session.base, key).lock;
    match session.read_after_all(&path).await {
        Ok(node) => Ok(read(&path, &node)?.map(|stored| stored.run)),
        Err(Fault::NoNode) => Ok(None),
        Err(fault) => Err(to_error(fault)),
    }
}

/// Stores a run, unless there is a later one. Returns whether it is stored.
pub(crate) async fn store_run(session: &Session, key: &Key, run: &JobRun, kept: Duration) -> Result<bool> {
    let place = Place::of_run(&session.base, key);
    let is_stored = store(session, &place.lock, run, kept).await?;
    if is_stored && run.is_done {
        // Not before the work is begun: nothing waits for it.
        if let Err(fault) = sweep(session, &place).await {
            tracing::debug!(
                error = format!("{:#}", to_error(fault)),
                "runs that are not kept any more stay for now"
            );
        }
    }
    Ok(is_stored)
}

async fn store(session: &Session, path: &str, run: &JobRun, kept: Duration) -> Result<bool> {
    let kept = i64::try_from(kept.as_micros()).unwrap_or(i64::MAX);
    let until = session.environment.wall_micros().saturating_add(kept);
    let content = Stored { until, run: run.clone() }.to_content();
    for _ in 0..ATTEMPTS {
        let attempt = match session.read_after_all(path).await {
            Ok(node) => {
                if read(path, &node)?.is_some_and(|stored| !run.replaces(&stored.run)) {
                    return Ok(false);
                }
                // Of this version only: a late copy of this write, after another one, changes nothing.
                session.write_content(path, &content, node.version).await.map(|()| true)
            }
            // Made without content, which is no run.
            Err(Fault::NoNode) => session.make(path).await.map(|()| false),
            Err(fault) => Err(fault),
        };
        match attempt {
            Ok(true) => return Ok(true),
            Ok(false) | Err(Fault::NoNode | Fault::BadVersion) => {}
            Err(fault) => return Err(to_error(fault)),
        }
    }
    Err(Error::new(ErrorKind::Unavailable, "other clients kept changing the last run of this job"))
}

/// Removes some of the nodes beside this one whose runs are not kept any more. Each time others: so none stays for long in a bucket that is used.
async fn sweep(session: &Session, place: &Place) -> Result<(), Fault> {
    let names = session.list(&Place { lock: place.bucket.clone(), ..place.clone() }).await?;
    let over = session.environment.wall_micros().saturating_sub(GRACE.as_micros() as i64);
    let first = (session.environment.fraction() * names.len() as f64) as usize;
    for name in names.iter().cycle().skip(first).take(LOOKED_AT.min(names.len())) {
        let path = format!("{}/{name}", place.bucket);
        let node = match session.read(&path).await {
            Ok(node) => node,
            Err(Fault::NoNode) => continue,
            Err(fault) => return Err(fault),
        };
        // An empty one was just made, for a run that is on its way. One that cannot be read stays, for the error that says so.
        let is_over = read(&path, &node).ok().flatten().is_some_and(|stored| stored.until < over);
        if is_over {
            match session.remove_version(&path, node.version).await {
                Ok(()) | Err(Fault::NoNode | Fault::BadVersion) => {}
                Err(fault) => return Err(fault),
            }
        }
    }
    Ok(())
}

fn read(path: &str, node: &Contender) -> Result<Option<Stored>> {
    if node.content.is_empty() { Ok(None) } else { Stored::read(path, &node.content).map(Some) }
}
