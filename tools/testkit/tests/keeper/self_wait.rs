//! The warning to a task that waits for a lock that it holds itself.

#![allow(clippy::disallowed_methods, reason = "time is paused")]

use std::time::Duration;

use tracing::Level;
use ylock_core::{Locks, Owner, Ylock};
use ylock_testkit::{Log, poll_once};

const WARNING: &str = "a task waits for a lock that it has acquired itself";
const LONG: Duration = Duration::from_secs(3600);

fn users() -> Locks {
    Ylock::in_memory().locks("users")
}

/// Here the caller is the thread: the body of a test, as that of `main`, runs in `block_on`.
#[tokio::test(start_paused = true)]
async fn a_caller_outside_of_tasks_that_waits_for_itself_is_warned_once_with_both_calls() {
    let (log, _here) = Log::of(Level::WARN);
    let users = users();
    let (guard, acquired_at) = (users.write("alice").await.unwrap(), line!());
    let (mut waits, waits_at) = (Box::pin(users.read("alice")), line!());
    assert!(poll_once(waits.as_mut()).await.is_none());
    tokio::select! {
        _ = waits.as_mut() => unreachable!("it waits for itself"),
        () = tokio::time::sleep(Duration::from_millis(990)) => assert!(log.lines(&[]).is_empty()),
    }
    tokio::select! {
        _ = waits.as_mut() => unreachable!("it waits for itself"),
        () = tokio::time::sleep(LONG) => {}
    }
    let at = |line: u32| format!("{}:{line}:", file!());
    let both = [&format!("acquired_at={}", at(acquired_at)), &*format!("waits_at={}", at(waits_at))];
    assert_eq!(log.lines(&[WARNING, both[0], both[1], "alice"]).len(), 1, "{:?}", log.lines(&[]));
    assert_eq!((log.lines(&[]).len(), log.lines(&["again_at"]).len()), (1, 0));
    drop(guard);
    drop(waits.await.unwrap());
}

/// Of the two guards the one is left that was acquired last.
#[tokio::test(start_paused = true)]
async fn a_caller_that_waits_for_itself_is_told_where_its_owner_entered_again() {
    let (log, _here) = Log::of(Level::WARN);
    let (users, me) = (users(), Owner::new());
    let mine = users.owned_by(&me);
    let first = mine.write("alice").await.unwrap();
    let (_again, again_at) = (mine.read("alice").await.unwrap(), line!());
    drop(first);
    let mut waits = Box::pin(users.write("alice"));
    tokio::select! {
        _ = waits.as_mut() => unreachable!("it waits for itself"),
        () = tokio::time::sleep(LONG) => {}
    }
    let again_at = format!("again_at={}:{again_at}:", file!());
    assert_eq!(log.lines(&[WARNING, "acquired_at", &again_at]).len(), 1, "{:?}", log.lines(&[]));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_itself_inside_run_is_warned() {
    let (log, _here) = Log::of(Level::WARN);
    let users = users();
    let task = tokio::spawn(async move {
        let _guard = users.write("alice").await.unwrap();
        users.write("alice").run(async |_| ()).await
    });
    tokio::time::sleep(LONG).await;
    assert_eq!(log.lines(&[WARNING]).len(), 1);
    assert_eq!(log.lines(&[WARNING, file!()]).len(), 1);
    task.abort();
}

/// Several branches of one task take turns, and a guard goes to another task: nothing of that is a deadlock.
#[tokio::test(start_paused = true)]
async fn no_caller_is_warned_that_gets_in_within_a_second() {
    let (log, _here) = Log::of(Level::WARN);
    let users = users();
    let branch = async || {
        let _guard = users.write("alice").await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
    };
    tokio::join!(branch(), branch(), branch());
    let guard = users.write("alice").await.unwrap();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(900)).await;
        drop(guard);
    });
    drop(users.write("alice").await.unwrap());
    assert!(log.lines(&[]).is_empty(), "{:?}", log.lines(&[]));
}

/// Another holder has come between: the caller waits for that one, not for itself.
#[tokio::test(start_paused = true)]
async fn no_caller_is_warned_that_has_given_back_what_it_held() {
    let (log, _here) = Log::of(Level::WARN);
    let users = users();
    let guard = users.write("alice").await.unwrap();
    let other = users.clone();
    let next = tokio::spawn(async move {
        let _guard = other.write("alice").await.unwrap();
        tokio::time::sleep(LONG).await;
    });
    tokio::task::yield_now().await;
    let mut waits = Box::pin(users.write("alice"));
    assert!(poll_once(waits.as_mut()).await.is_none());
    drop(guard);
    drop(waits.await.unwrap());
    next.await.unwrap();
    assert!(log.lines(&[]).is_empty(), "{:?}", log.lines(&[]));
}
