#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it looks at real time and starts tasks of its own"
)]

use std::time::Duration;

use tokio::task::yield_now;

use crate::client::Ylock;
use crate::options::Options;

/// More than the moments that are not worth tidying up, and those that come while the task that does it waits for its turn.
const FEW: usize = 1_000;

/// With a lease of a day each lock would be scheduled for eight hours after it was given back.
#[tokio::test]
async fn twenty_thousand_locks_with_long_leases_do_not_stay_in_the_schedule() {
    let ylock = Ylock::in_memory().with_options(Options::default().with_lease(Options::MAX_LEASE));
    let locks = ylock.locks("group");
    let mut most = 0;
    for number in 0..20_000 {
        let guard = locks.write(format!("{}", number % 1_000)).await.unwrap();
        assert!(guard.unlock().await.unwrap().is_released());
        most = most.max(ylock.handle.keeper.scheduled());
    }
    assert!(most < FEW, "{most}");
}

#[tokio::test(start_paused = true)]
async fn what_is_held_is_renewed_however_often_the_schedule_is_tidied_up() {
    let ylock = Ylock::in_memory();
    let lease = ylock.options().lease();
    let long = ylock.locks("long").with_options(Options::default().with_lease(Options::MAX_LEASE));
    let mut held = Vec::new();
    for number in 0..2_000 {
        held.push(ylock.lock("held", format!("{number}")).write().await.unwrap());
        for other in 0..10 {
            drop(long.write(format!("{other}")).await.unwrap());
        }
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(lease * 3).await;
    assert!(held.iter().all(|guard| guard.is_valid()));
    drop(held);
    assert!(ylock.handle.keeper.scheduled() < 2 * 2_000 + FEW, "{}", ylock.handle.keeper.scheduled());
}

/// However a grant ends, and whether the call that asked for it is still there: nothing of it stays for the rest of its lease.
#[tokio::test]
async fn ten_thousand_acquisitions_that_went_wrong_do_not_stay_in_the_schedule() {
    let ylock = Ylock::in_memory().with_options(Options::default().with_lease(Options::MAX_LEASE));
    let locks = ylock.locks("group");
    let held = locks.write("held").await.unwrap();
    for number in 0..10_000 {
        let (name, turns) = (format!("{number}"), number / 6 % 6);
        match number % 6 {
            0 => dropped_after(turns, locks.write(name)).await,
            1 => dropped_after(turns, locks.write("held")).await,
            2 => drop(locks.write("held").now().await.unwrap()),
            3 => dropped_after(turns, locks.write(name).await.unwrap().downgrade()).await,
            4 => dropped_after(turns, locks.write(name).await.unwrap().unlock()).await,
            _ => {
                let guard = locks.write(&name).await.unwrap();
                assert_eq!(ylock.revoke("group", &name).await.unwrap(), 1);
                drop(guard);
            }
        }
    }
    drop(held);
    while ylock.keys_in_use() > 0 {
        yield_now().await;
    }
    assert!(ylock.handle.keeper.scheduled() < FEW, "{}", ylock.handle.keeper.scheduled());
}

/// Drops the future if it is not ready when the other tasks have had this many turns.
async fn dropped_after(turns: usize, future: impl Future) {
    let turns = async {
        for _ in 0..turns {
            yield_now().await;
        }
    };
    tokio::select! {
        biased;
        _ = future => {}
        () = turns => {}
    }
}
