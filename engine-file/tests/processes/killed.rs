//! A process that is killed: the kernel tells those that wait for it, long before its lease is over.

use ylock_core::{ErrorKind, Fairness, Guard, LossReason, Options, Ylock};
use ylock_testkit::ChildProcess;

use super::{Folder, LEASE, SOON, client, start, told, until, waiters, within};

/// The other process: holds for ever.
async fn hold(ylock: &Ylock, name: &str) -> ! {
    let guard = within("it gets in", ylock.locks("users").write(name)).await.unwrap();
    ChildProcess::say(&format!("holds {}", guard.token().unwrap()));
    std::future::pending().await
}

#[tokio::test]
async fn a_waiter_gets_in_at_once_when_the_holder_is_killed() {
    if let Some((_, ylock)) = told(LEASE).await {
        hold(&ylock, "alice").await;
    }
    let folder = Folder::new();
    let ylock = client(folder.path(), LEASE).await;
    let mut other = start("killed::a_waiter_gets_in_at_once_when_the_holder_is_killed", &folder, "");
    let token = other.says_token("holds").await;
    let users = ylock.locks("users");
    let waits = tokio::spawn(async move { users.write("alice").await });
    until("it waits", async || waiters(&ylock).await == 1).await;
    drop(other);
    let guard = within("it gets in", waits).await.unwrap().unwrap();
    assert!(guard.token().unwrap().get() > token);
}

#[tokio::test]
async fn a_try_gets_what_a_killed_process_held() {
    if let Some((_, ylock)) = told(LEASE).await {
        hold(&ylock, "alice").await;
    }
    let folder = Folder::new();
    let ylock = client(folder.path(), LEASE).await;
    let mut other = start("killed::a_try_gets_what_a_killed_process_held", &folder, "");
    let token = other.says_token("holds").await;
    assert!(ylock.locks("users").write("alice").now().await.unwrap().is_none());
    drop(other);
    let guard = ylock.locks("users").write("alice").now().await.unwrap().expect("its holder has ended");
    assert!(guard.token().unwrap().get() > token);
}

/// Three clients and the killed one: those behind it come in, in their order.
#[tokio::test]
async fn those_behind_a_killed_waiter_come_in_in_their_order() {
    const TEST: &str = "killed::those_behind_a_killed_waiter_come_in_in_their_order";
    if let Some((_, ylock)) = told(LEASE).await {
        ChildProcess::say("waits");
        let _guard = ylock.locks("users").write("alice").await.unwrap();
        ChildProcess::say("holds");
        std::future::pending::<()>().await;
    }
    let folder = Folder::new();
    let ylock = client(folder.path(), LEASE).await;
    let guard = ylock.locks("users").write("alice").await.unwrap();
    let mut killed = start(TEST, &folder, "");
    killed.says("waits").await;
    until("it waits", async || waiters(&ylock).await == 1).await;
    let mut entered = Vec::new();
    for number in 1..=2 {
        let behind = client(folder.path(), LEASE).await;
        entered.push(tokio::spawn(async move { behind.locks("users").write("alice").await.unwrap() }));
        until("it waits", async || waiters(&ylock).await == 1 + number).await;
    }
    drop(killed);
    until("the killed one is gone", async || waiters(&ylock).await == 2).await;
    drop(guard);
    for guard in entered {
        drop(within("it gets in", guard).await.unwrap());
    }
}

#[tokio::test]
async fn a_stopped_holder_keeps_its_lock_for_a_lease_and_knows_that_it_is_lost() {
    const TEST: &str = "killed::a_stopped_holder_keeps_its_lock_for_a_lease_and_knows_that_it_is_lost";
    let lease = SOON / 2;
    if let Some((_, ylock)) = told(lease).await {
        let guard = within("it gets in", ylock.locks("users").write("alice")).await.unwrap();
        return ChildProcess::hold_through_pause(guard, lease).await;
    }
    let folder = Folder::new();
    let ylock = client(folder.path(), lease).await;
    let mut other = start(TEST, &folder, "");
    let token = other.says_token("holds").await;
    let stopped = other.stop();
    let guard = within("it gets in", ylock.locks("users").write("alice")).await.unwrap();
    assert!(guard.token().unwrap().get() > token);
    tokio::time::sleep((lease * 5 / 4).saturating_sub(stopped.elapsed())).await;
    other.go_on();
    other.knows_that_it_was_lost().await;
    assert!(guard.is_valid());
}

#[tokio::test]
async fn nothing_is_left_of_processes_that_were_killed() {
    if let Some((name, ylock)) = told(LEASE).await {
        hold(&ylock, &name).await;
    }
    let folder = Folder::new();
    let ylock = client(folder.path(), LEASE).await;
    let held = ylock.locks("users").write("held").await.unwrap();
    let mut others = Vec::new();
    for name in ["alice", "bob", &"long".repeat(200)] {
        let mut other = start("killed::nothing_is_left_of_processes_that_were_killed", &folder, name);
        other.says("holds").await;
        others.push(other);
    }
    drop(others);
    assert_eq!((folder.locks().len(), folder.clients().len()), (4, 4));
    // Whoever comes clears away what the dead have left, and nothing of those that live.
    let another = client(folder.path(), LEASE).await;
    assert_eq!((folder.locks(), folder.clients().len()), (vec!["users=held".to_owned()], 2));
    assert!(another.locks("users").write("held").now().await.unwrap().is_none() && held.is_valid());
    drop(held);
    ylock.close().await;
    another.close().await;
    assert_eq!((folder.locks().len(), folder.clients().len()), (0, 0));
}

/// The first one that comes when none lives.
#[tokio::test]
async fn the_first_client_clears_what_is_left_of_all() {
    if let Some((name, ylock)) = told(LEASE).await {
        hold(&ylock, &name).await;
    }
    let folder = Folder::new();
    let mut other = start("killed::the_first_client_clears_what_is_left_of_all", &folder, "alice");
    let token = other.says_token("holds").await;
    drop(other);
    assert_eq!((folder.locks().len(), folder.clients().len()), (1, 1));
    let ylock = client(folder.path(), LEASE).await;
    assert_eq!((folder.locks().len(), folder.clients().len()), (0, 1));
    let guard = ylock.locks("users").write("alice").now().await.unwrap().unwrap();
    assert!(guard.token().unwrap().get() > token);
}

#[tokio::test]
async fn a_holder_is_told_when_the_folder_is_removed() {
    let folder = Folder::new();
    let ylock = client(folder.path(), SOON / 2).await;
    let guard = ylock.locks("users").write("alice").await.unwrap();
    std::fs::remove_dir_all(folder.path()).unwrap();
    its_holder_is_told(&folder, &ylock, guard).await;
}

/// Clients that come later share another folder of its name.
#[tokio::test]
async fn a_holder_is_told_when_the_folder_is_moved() {
    let folder = Folder::new();
    let ylock = client(folder.path(), SOON / 2).await;
    let guard = ylock.locks("users").write("alice").await.unwrap();
    std::fs::rename(folder.path(), folder.beside("moved")).unwrap();
    its_holder_is_told(&folder, &ylock, guard).await;
}

async fn its_holder_is_told(folder: &Folder, ylock: &Ylock, guard: Guard) {
    assert_eq!(within("it is told", guard.lost()).await, LossReason::Gone);
    let error = within("it fails", ylock.locks("users").write("bob")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unexpected);
    assert!(error.to_string().contains("was removed, moved or mounted over"), "{error}");
    // Another client makes it anew.
    let another = client(folder.path(), SOON / 2).await;
    assert!(another.locks("users").write("alice").now().await.unwrap().is_some());
}

/// Another program has removed the pipe of a client that lives.
#[tokio::test]
async fn a_client_whose_pipe_is_missing_is_not_taken_for_dead() {
    let folder = Folder::new();
    let (ylock, another) = (client(folder.path(), LEASE).await, client(folder.path(), LEASE).await);
    let guard = ylock.locks("users").write("alice").await.unwrap();
    for pipe in folder.clients() {
        std::fs::remove_file(folder.path().join("clients").join(pipe)).unwrap();
    }
    assert!(another.locks("users").write("alice").now().await.unwrap().is_none());
    let third = client(folder.path(), LEASE).await;
    assert!(third.locks("users").write("alice").now().await.unwrap().is_none() && guard.is_valid());
}

/// The reader came after the writer had begun to wait, and got in before it: the writer does not know of that reader until another one leaves.
#[tokio::test]
async fn a_writer_gets_in_when_a_reader_that_overtook_it_is_killed() {
    const TEST: &str = "killed::a_writer_gets_in_when_a_reader_that_overtook_it_is_killed";
    if let Some((_, ylock)) = told(LEASE).await {
        let users = ylock.locks("users").with_options(Options::default().with_fairness(Fairness::Unfair));
        let _guard = within("it gets in", users.read("alice")).await.unwrap();
        ChildProcess::say("holds 0");
        std::future::pending::<()>().await;
    }
    let folder = Folder::new();
    let (ylock, writer) = (client(folder.path(), LEASE).await, client(folder.path(), LEASE).await);
    let reads = ylock.locks("users").read("alice").await.unwrap();
    let waits = tokio::spawn(async move { writer.locks("users").write("alice").await.unwrap() });
    until("it waits", async || waiters(&ylock).await == 1).await;
    let mut other = start(TEST, &folder, "");
    other.says("holds").await;
    assert!(reads.unlock().await.unwrap().is_released());
    // It looks at who is in its way now; nothing shows that, and were it killed before that, the writer would find out at that look.
    drop(other);
    let guard = within("before it looks by itself", waits).await.unwrap();
    drop(guard);
}
