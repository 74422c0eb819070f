//! Shows everything that a lock does, in a few seconds and without a server: `cargo run -p ylock --example quickstart`.
//!
//! Two clients of one in-memory store stand for two processes. With another store only the line that connects changes.

#![allow(clippy::disallowed_methods, reason = "an example sleeps and spawns like any program")]

use std::time::{Duration, Instant};

use tokio::time::sleep;
use ylock::{MemoryStore, Options, Owner, Result, Ylock};

#[tokio::main]
async fn main() -> Result<()> {
    let store = MemoryStore::new();
    let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
    let show = Show(Instant::now());

    one_writer_at_a_time(&show, &here, &there).await?;
    one_owner_enters_again(&show, &here).await?;
    readers_share(&show, &here, &there).await?;
    work_with_a_token(&show, &here).await?;
    a_lost_lock_stops_the_work(&show, &here, &there).await?;

    show.step("Close: give everything back and wait until the store knows it");
    here.close().await;
    there.close().await;
    show.say(format!("the store is empty: {}", store.is_empty()));
    Ok(())
}

async fn one_writer_at_a_time(show: &Show, here: &Ylock, there: &Ylock) -> Result<()> {
    show.step("One writer at a time; the next one waits in line");
    let (mine, theirs) = (here.locks("users"), there.locks("users"));

    let guard = mine.write("alice").await?;
    show.say("here holds alice");
    show.say(format!("there tries alice: {:?}", theirs.write("alice").now().await?));
    show.say(format!("there tries bob, another name: {}", theirs.write("bob").now().await?.is_some()));

    let waiting = tokio::spawn(async move { theirs.write("alice").await });
    wait_for_a_queue(here).await?;
    let seen = here.inspect("users", "alice").await?;
    show.say(format!("there stands in line: {} holds, {} waits", seen.holders.len(), seen.queue.len()));

    sleep(Duration::from_millis(300)).await;
    // The outcome is worth a look: after a pause of this process another holder may have had the lock.
    let outcome = guard.unlock().await?;
    show.say(format!("here gives it back after 300 ms: {outcome:?}"));
    let guard = waiting.await.expect("the task does not panic")?;
    show.say("there has it; dropping a guard gives it back too");
    drop(guard);
    Ok(())
}

async fn one_owner_enters_again(show: &Show, here: &Ylock) -> Result<()> {
    show.step("An owner may enter again, another owner may not");
    let users = here.locks("users");
    let owner = Owner::new();
    owner
        .scope(async {
            let outer = users.write("alice").await?;
            let inner = users.write("alice").await?;
            show.say(format!(
                "one owner holds it twice, with one token: {:?}",
                outer.token() == inner.token()
            ));
            let stranger = users.owned_by(&Owner::new());
            show.say(format!("another owner tries: {:?}", stranger.write("alice").now().await?));
            Ok(())
        })
        .await
}

async fn readers_share(show: &Show, here: &Ylock, there: &Ylock) -> Result<()> {
    show.step("Readers share, also across processes");
    let (one, two) = (here.locks("users").read("alice").await?, there.locks("users").read("alice").await?);
    show.say(format!("both read: {} and {}", one.is_valid(), two.is_valid()));
    let writer = there.locks("users").write("alice").within(Duration::from_millis(200)).await?;
    show.say(format!("a writer waits for 200 ms, then gives up: {writer:?}"));
    Ok(())
}

async fn work_with_a_token(show: &Show, here: &Ylock) -> Result<()> {
    show.step("run: hold the lock for as long as some work runs, and pass the token of the lock on");
    for _ in 0..2 {
        let token = here.locks("users").write("alice").run(|lease| async move { lease.token() }).await?;
        show.say(format!("this time the token is {}", token.expect("the in-memory engine gives tokens")));
    }
    show.say("tokens only ever grow, so a database can turn away a writer that comes with an old token");
    Ok(())
}

async fn a_lost_lock_stops_the_work(show: &Show, here: &Ylock, there: &Ylock) -> Result<()> {
    show.step(
        "A lock can be lost: an operator takes it away, or a process is paused for longer than its lease",
    );
    let users = here.locks("users").with_options(Options::default().with_lease(Duration::from_secs(1)));
    let guard = users.write("alice").await?;
    let taken = there.revoke("users", "alice").await?;
    show.say(format!("there takes away {taken} lock; no other client gets in before here is told"));
    let reason = guard.lost().await;
    show.say(format!("lost() ends at the next renewal, a third of the lease later: {}", reason.as_str()));
    show.say(format!("valid: {}, and giving it back returns {:?}", guard.is_valid(), guard.unlock().await?));

    let work = users.write("alice").run(|_| async {
        show.say("run: the work has begun, and would take for ever");
        std::future::pending::<()>().await;
    });
    let operator = async {
        wait_for_a_holder(there).await?;
        there.revoke("users", "alice").await
    };
    let (result, taken) = tokio::join!(work, operator);
    let error = result.expect_err("the work never ends by itself");
    show.say(format!("there takes away {} lock; run drops the work and returns {error:?}", taken?));
    Ok(())
}

/// Waits until a waiter queues for alice.
async fn wait_for_a_queue(ylock: &Ylock) -> Result<()> {
    while ylock.inspect("users", "alice").await?.queue.is_empty() {
        sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

/// Waits until an owner holds alice.
async fn wait_for_a_holder(ylock: &Ylock) -> Result<()> {
    while ylock.inspect("users", "alice").await?.holders.is_empty() {
        sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

/// Prints what happens, with the time since the start.
struct Show(Instant);

impl Show {
    fn step(&self, text: &str) {
        println!("\n{text}");
    }

    fn say(&self, text: impl AsRef<str>) {
        println!("  {:>5} ms  {}", self.0.elapsed().as_millis(), text.as_ref());
    }
}
