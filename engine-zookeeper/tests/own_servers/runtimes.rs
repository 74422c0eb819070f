//! Clients that outlive the runtimes in which they are used.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use ylock_core::{Guard, Unlocked, Ylock};

use super::own_server::OwnServer;
use super::server::proxy::{Link, Proxy};
use super::{LEASE, LOCK, LONG, SESSION, client, client_with, contenders, options, until, waiters, within};

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Sessions of a minute: nothing gets free by their end.
async fn patient(server: &OwnServer) -> Ylock {
    client_with(options(vec![server.host()]).with_lease(LONG)).await
}

#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn a_client_goes_on_in_another_runtime_with_the_same_session() {
    let first = runtime();
    let (server, here, guard) = first.block_on(async {
        let server = OwnServer::start().await;
        let here = client(vec![server.host()]).await;
        let guard = here.locks("users").write("alice").await.unwrap();
        (server, here, guard)
    });
    drop(first);
    runtime().block_on(async {
        let before = contenders(&[server.host()], LOCK).await;
        drop(within("another lock", here.locks("users").write("bob")).await.unwrap());
        tokio::time::sleep(LEASE * 2).await;
        assert!(guard.is_valid() && contenders(&[server.host()], LOCK).await == before);
        assert_eq!(within("given back", guard.unlock()).await.unwrap(), Unlocked::Released);
    });
}

/// The client notices at once that its connection is gone, not after a timeout of a request.
#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn the_first_use_in_another_runtime_is_not_slow() {
    let main = runtime();
    let first = runtime();
    let server = main.block_on(OwnServer::start());
    let here = first.block_on(patient(&server));
    assert!(
        first
            .block_on(async { here.locks("users").write("bob").await.unwrap().unlock().await.unwrap() })
            .is_released()
    );
    drop(first);
    main.block_on(async {
        drop(within("it gets in", here.locks("users").write("bob")).await.unwrap());
    });
}

/// The future that gives a lock back is dropped between any two of its steps.
#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn a_release_that_ends_with_its_runtime_is_done_all_the_same() {
    let main = runtime();
    let server = main.block_on(OwnServer::start());
    let (here, there) = main.block_on(async { (patient(&server).await, patient(&server).await) });
    for polls in 0..16 {
        let job = Builder::new_current_thread().enable_all().build().unwrap();
        let guard = job.block_on(here.locks("users").write("alice")).unwrap();
        let locks = there.locks("users");
        let waiting = main.spawn(async move { locks.write("alice").await.map(drop) });
        main.block_on(until("it waits", async || waiters(&there).await == 1));
        job.block_on(async {
            let unlocking = guard.unlock();
            tokio::pin!(unlocking);
            for _ in 0..polls {
                if tokio::time::timeout(Duration::ZERO, &mut unlocking).await.is_ok() {
                    break;
                }
            }
        });
        drop(job);
        main.block_on(async {
            within("the lock is given back", waiting).await.unwrap().unwrap();
        });
    }
    main.block_on(until("nothing is left", async || contenders(&[server.host()], LOCK).await.is_empty()));
}

/// Twenty callers wait for one lock each, and their runtime ends.
fn waiters_end_with_their_runtime(made_elsewhere: bool) {
    let (main, first, elsewhere) = (runtime(), runtime(), runtime());
    let server = main.block_on(OwnServer::start());
    let there = main.block_on(patient(&server));
    let here = if made_elsewhere { &elsewhere } else { &first }.block_on(patient(&server));
    let held: Vec<Guard> = main.block_on(async {
        let mut held = Vec::new();
        for name in 0..20 {
            held.push(there.locks("users").write(name.to_string()).await.unwrap());
        }
        held
    });
    for name in 0..20 {
        let locks = here.locks("users");
        first.spawn(async move { drop(locks.write(name.to_string()).await) });
    }
    let queued = async |count: usize| {
        let mut all = 0;
        for name in 0..20 {
            all += there.inspect("users", name.to_string()).await.map_or(0, |seen| seen.queue.len());
        }
        all == count
    };
    main.block_on(until("all wait", async || queued(20).await));
    drop(first);
    let gone = async { while !queued(0).await {} };
    main.block_on(within("they have left", gone));
    drop((held, here));
}

#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn those_who_wait_in_a_runtime_that_ends_leave_long_before_their_leases_end() {
    waiters_end_with_their_runtime(true);
}

#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn those_who_wait_in_a_runtime_that_ends_leave_long_before_their_leases_end_also_if_the_connection_ends_with_it()
 {
    waiters_end_with_their_runtime(false);
}

/// The connection ends with the waiters, and no task has the client any more.
#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn a_client_that_ends_with_its_runtime_takes_its_waiters_along_within_a_second() {
    let main = runtime();
    let server = main.block_on(OwnServer::start());
    let there = main.block_on(patient(&server));
    let guard = main.block_on(there.locks("users").write("alice")).unwrap();
    let first = runtime();
    let here = first.block_on(patient(&server));
    let locks = here.locks("users");
    first.spawn(async move { drop(locks.write("alice").await) });
    main.block_on(until("it waits", async || waiters(&there).await == 1));
    drop(here);
    drop(first);
    let gone = async { while waiters(&there).await > 0 {} };
    main.block_on(within("it has left", gone));
    drop(guard);
    let closed = async || server.number("zk_global_sessions").await == 1;
    main.block_on(until("its session is closed", closed));
}

/// The client has been closed, and the runtime ends before the driver can tell the server.
#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn a_client_that_is_dropped_just_before_its_runtime_closes_its_session() {
    let main = runtime();
    let server = main.block_on(OwnServer::start());
    let job = Builder::new_current_thread().enable_all().build().unwrap();
    let here = job.block_on(patient(&server));
    drop(here);
    drop(job);
    let closed = async { while server.number("zk_global_sessions").await > 0 {} };
    main.block_on(within("its session is closed", closed));
}

#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn nodes_of_locks_that_nobody_is_in_are_removed_also_after_a_runtime_has_ended() {
    let main = runtime();
    let server = main.block_on(OwnServer::start());
    let (here, there) = main.block_on(async { (patient(&server).await, patient(&server).await) });
    let both = async |name: String| {
        let (one, two) =
            (here.locks("users").read(name.clone()).await, there.locks("users").read(name).await);
        assert!(one.unwrap().unlock().await.unwrap().is_released());
        assert!(two.unwrap().unlock().await.unwrap().is_released());
    };
    let job = Builder::new_current_thread().enable_all().build().unwrap();
    job.block_on(both("x".to_owned()));
    drop(job);
    main.block_on(async {
        for name in 0..30 {
            both(name.to_string()).await;
        }
        until("no node of a lock is left", async || {
            super::server::left_in(&[server.host()], "/ylock").await.is_empty()
        })
        .await;
    });
}

/// A guard whose client is used nowhere any more: it is kept, and given back, by the client's own thread.
#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn a_lock_is_kept_when_no_runtime_is_left() {
    let main = runtime();
    let server = main.block_on(OwnServer::start());
    let there = main.block_on(client(vec![server.host()]));
    let first = runtime();
    let here = first.block_on(client(vec![server.host()]));
    let guard = first.block_on(here.locks("users").write("alice")).unwrap();
    drop(first);
    main.block_on(async {
        tokio::time::sleep(LEASE * 2).await;
        assert!(guard.is_valid() && there.locks("users").write("alice").now().await.unwrap().is_none());
    });
    drop(guard);
    main.block_on(async { drop(within("it is free", there.locks("users").write("alice")).await.unwrap()) });
}

/// A runtime as a thread has that is not asynchronous: driven while the thread waits for a lock, and not in between.
fn of_a_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A client that was made in this runtime, behind a line that is cut. Its session has ended.
fn without_a_session(main: &Runtime, server: &OwnServer) -> (Proxy, Ylock) {
    main.block_on(async {
        let proxy = Proxy::before(&[server.host()]).await;
        let here = client(proxy.hosts()).await;
        let guard = here.locks("users").write("bob").await.unwrap();
        proxy.set(Link::Cut);
        within("it is lost", guard.lost()).await;
        // The driver gives the session up by itself after seven fifths of it.
        tokio::time::sleep(SESSION * 2).await;
        (proxy, here)
    })
}

/// The caller in that runtime was about to begin a session when the servers were away.
#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn a_runtime_that_is_not_driven_any_more_keeps_no_other_one_from_a_new_session() {
    let (main, job) = (runtime(), of_a_thread());
    let server = main.block_on(OwnServer::start());
    let (proxy, here) = without_a_session(&main, &server);
    let bob = here.locks("users");
    assert!(job.block_on(async { tokio::time::timeout(LEASE / 6, bob.write("bob")).await }).is_err());
    proxy.set(Link::Open);
    main.block_on(async { drop(within("it gets in", here.locks("users").write("alice")).await.unwrap()) });
    drop(job);
}

/// The first caller that wants a lock again is in such a runtime, and gets it.
#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn a_session_that_a_runtime_began_that_is_not_driven_any_more_serves_the_others() {
    let (main, job) = (runtime(), of_a_thread());
    let server = main.block_on(OwnServer::start());
    let (proxy, here) = without_a_session(&main, &server);
    proxy.set(Link::Open);
    let bob = job.block_on(here.locks("users").write("bob")).unwrap();
    main.block_on(async {
        let alice = within("it gets in", here.locks("users").write("alice")).await.unwrap();
        tokio::time::sleep(LEASE * 2).await;
        assert!(alice.is_valid() && bob.is_valid(), "no task renews");
        assert!(within("given back", alice.unlock()).await.unwrap().is_released());
    });
    drop(job);
}
