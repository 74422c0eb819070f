//! A command-line tool without async code: runs the steps of a migration while it holds a lock.
//! It asks between the steps whether it still holds the lock, and says who holds it when it is not free.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use ylock::ErrorKind;
use ylock::blocking::{self, Ylock};

const STEPS: [&str; 3] = ["add the column", "fill the column", "drop the old column"];

/// Runs all steps. `Ok(false)`: another process migrates, and nothing was done here.
fn migrate(ylock: &Ylock, database: &str) -> ylock::Result<bool> {
    let migrated =
        ylock.lock("migrations", database).write().within(Duration::from_millis(300)).run(|lease| {
            for step in STEPS {
                lease.check()?; // the lock was lost: the other steps are left to the next holder
                println!("  {step}");
                thread::sleep(Duration::from_millis(100));
            }
            ylock::Result::Ok(())
        })?;
    let Some(result) = migrated else {
        for holder in ylock.inspect("migrations", database)?.holders {
            println!(
                "  not free: {} has held it for {:?}",
                holder.client,
                holder.since.elapsed().unwrap_or_default()
            );
        }
        return Ok(false);
    };
    result.map(|()| true)
}

fn report(migrated: ylock::Result<bool>) -> ExitCode {
    match migrated {
        Ok(true) => {
            println!("  migrated");
            ExitCode::SUCCESS
        }
        Ok(false) => ExitCode::from(75), // as `ylock run` does: try again later
        Err(error) => {
            println!("  failed: {error:#}");
            ExitCode::from(if error.kind() == ErrorKind::Unavailable { 69 } else { 1 })
        }
    }
}

/// A real tool would end after the first `report`; the others show what else may happen.
fn demo(url: &str) -> ylock::Result<ExitCode> {
    let ylock = blocking::connect(url)?;

    println!("the lock is free");
    let code = report(migrate(&ylock, "shop"));

    println!("another program holds the lock");
    let other = ylock.lock("migrations", "shop").write().wait()?;
    report(migrate(&ylock, "shop"));
    drop(other);

    println!("an operator takes the lock away after the first step");
    let operator = ylock.clone();
    let revoking = thread::spawn(move || {
        thread::sleep(Duration::from_millis(150));
        operator.revoke("migrations", "shop")
    });
    report(migrate(&ylock, "shop"));
    revoking.join().expect("the thread did not panic")?;

    ylock.close()?;
    Ok(code)
}

fn main() -> ExitCode {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory://".to_owned());
    demo(&url).unwrap_or_else(|error| {
        eprintln!("{error:#}");
        ExitCode::FAILURE
    })
}
