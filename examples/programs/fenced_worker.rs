//! Two workers go through the same jobs, one of them at a time per job, and write results into a table that checks the fencing token.
//! At the end a worker that has lost its lock writes late, and the table refuses it.
#![allow(clippy::disallowed_methods, reason = "a program's tasks and pauses are its own")]

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ylock::{Locks, Token};

/// Stands for a table of SQL: each row has its result and the token of the last holder that has written it, 0 at first.
struct Table(Mutex<BTreeMap<u64, (i64, Option<String>)>>);

impl Table {
    fn rows(&self) -> MutexGuard<'_, BTreeMap<u64, (i64, Option<String>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_done(&self, job: u64) -> bool {
        self.rows().get(&job).is_some_and(|(_, result)| result.is_some())
    }

    /// `update jobs set result = $3, token = $1 where id = $2 and token <= $1`; returns the count of rows.
    fn update(&self, token: Token, job: u64, result: String) -> usize {
        match self.rows().get_mut(&job) {
            Some(row) if row.0 <= token.get() => {
                *row = (token.get(), Some(result));
                1
            }
            _ => 0,
        }
    }
}

/// Does the jobs that no other worker has or has done. Needs an engine that gives tokens.
async fn worker(name: &str, jobs: &Locks, table: &Table) -> ylock::Result<()> {
    for job in 1..=4 {
        let worked = jobs.write(job).now().run(|lease| async move {
            let Some(token) = lease.token() else { return "not done: no token" };
            if table.is_done(job) {
                return "done before";
            }
            tokio::time::sleep(Duration::from_millis(20)).await; // the work
            match table.update(token, job, format!("by {name}")) {
                0 => "refused: a later holder has written",
                _ => "done",
            }
        });
        match worked.await {
            Ok(done) => println!("{name}, job {job}: {}", done.unwrap_or("another worker has it")),
            Err(error) if error.is_retryable() => {
                eprintln!("{name}, job {job} is left for the next round: {error:#}")
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory://".to_owned());
    let ylock = ylock::connect(&url).await?;
    if !ylock.guarantees().fencing {
        return Err(format!("the engine {} gives no fencing tokens", ylock.engine_name()).into());
    }
    let (jobs, table) =
        (ylock.locks("jobs"), Table(Mutex::new((1..=5).map(|job| (job, (0, None))).collect())));

    let (first, second) = tokio::join!(worker("worker 1", &jobs, &table), worker("worker 2", &jobs, &table));
    first.and(second)?;

    let slow = jobs.write(5).await?;
    let old_token = slow.token().ok_or("no token")?;
    ylock.revoke("jobs", 5).await?;
    println!("the slow worker has lost job 5: {:?}", slow.lost().await);

    let next = jobs.write(5).await?;
    let new_token = next.token().ok_or("no token")?;
    println!(
        "the next worker writes job 5: {} row",
        table.update(new_token, 5, "by the next worker".to_owned())
    );
    println!(
        "the slow worker writes job 5, late: {} rows",
        table.update(old_token, 5, "by the slow worker".to_owned())
    );
    println!("the table: {:?}", table.rows());
    drop(next);
    ylock.close().await;
    Ok(())
}
