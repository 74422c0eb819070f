//! Places in the queue: how long they are kept, and which waiter goes first.

use std::pin::Pin;

use ylock_core::engine::{Engine, Grant, Release, Request, Ticket};
use ylock_core::{Fairness, Result};
use ylock_engine_zookeeper::ZookeeperEngine;
use zookeeper_client::{Acls, CreateMode};

use super::grants::request;
use super::own_server::OwnServer;
use super::server::proxy::{Link, Proxy, What};
use super::{LEASE, LOCK, LONG, contenders, options, server, until, within};

type Waiting<'a> = Pin<Box<dyn Future<Output = Result<Option<Grant>>> + Send + 'a>>;

/// Sessions of a minute: no place is lost by the end of one.
async fn patient(server: &OwnServer) -> ZookeeperEngine {
    let options = options(vec![server.host()]).with_lease(LONG);
    ZookeeperEngine::connect(&options.with_request_timeout(LEASE / 5)).await.unwrap()
}

async fn granted(engine: &ZookeeperEngine, request: &Request) -> Grant {
    within("granted", engine.acquire(request)).await.unwrap().unwrap()
}

/// Contends until its node is there.
async fn queue_up<'a>(engine: &'a ZookeeperEngine, request: &'a Request, server: &OwnServer) -> Waiting<'a> {
    let hosts = [server.host()];
    let before = contenders(&hosts, LOCK).await.len();
    let mut waiting = engine.acquire(request);
    tokio::select! {
        granted = &mut waiting => panic!("the lock is held: {granted:?}"),
        () = until("its node is there", async || contenders(&hosts, LOCK).await.len() > before) => {}
    }
    waiting
}

/// The waiter's lease is far shorter than its session: the waiter shows that it runs.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn who_waits_for_longer_than_a_lease_keeps_its_place() {
    let server = OwnServer::start().await;
    let (here, there) = (patient(&server).await, patient(&server).await);
    let grant = granted(&there, &request(&there, LEASE * 15)).await;
    let request = request(&here, LEASE * 2);
    let waiting = queue_up(&here, &request, &server).await;
    let before = contenders(&[server.host()], LOCK).await;
    let waited = tokio::time::timeout(LEASE * 3, waiting).await;
    assert!(waited.is_err(), "the lock is held");
    assert_eq!(contenders(&[server.host()], LOCK).await, before);
    there.release(&grant.key, grant.id, None).await.unwrap();
    here.release(&request.key, request.id, None).await.unwrap();
}

/// The waiter's future is there and is not polled, as in a runtime that is not driven any more. Its session goes on for a minute.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn who_does_not_show_for_a_lease_loses_its_place() {
    let server = OwnServer::start().await;
    let (here, there) = (patient(&server).await, patient(&server).await);
    let grant = granted(&there, &request(&there, LEASE * 15)).await;
    let request = request(&here, LEASE);
    let since = std::time::Instant::now();
    let waiting = queue_up(&here, &request, &server).await;
    until("its place is given up", async || contenders(&[server.host()], LOCK).await.len() == 1).await;
    assert!(since.elapsed() >= LEASE, "{:?}", since.elapsed());
    there.release(&grant.key, grant.id, None).await.unwrap();
    // Polled again, it takes another place.
    let grant = within("it gets in", waiting).await.unwrap().unwrap();
    here.release(&grant.key, grant.id, None).await.unwrap();
}

/// The servers keep that session for a while yet, after an election for instance, and the lock would be free only then.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_release_removes_also_what_an_earlier_session_of_its_client_has_left() {
    let server = OwnServer::start().await;
    let (here, there) = (patient(&server).await, patient(&server).await);
    let first = granted(&here, &request(&here, LEASE)).await;
    here.release(&first.key, first.id, None).await.unwrap();
    // Numbers of sessions begin with one.
    let (left, raw) = (request(&here, LEASE), server::raw(&[server.host()]).await);
    let node = format!("{LOCK}/w-{:032x}-0-x-", left.id.as_u128());
    raw.create(LOCK, b"5:usersalice", &CreateMode::Container.with_acls(Acls::anyone_all())).await.unwrap();
    let content = format!("2 {} 0 0 0 a client", left.owner);
    let open = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    raw.create(&node, content.as_bytes(), &open).await.unwrap();
    let released = within("released", here.release(&left.key, left.id, None)).await.unwrap();
    assert_eq!(released, Release::Released);
    assert!(contenders(&[server.host()], LOCK).await.is_empty());
    granted(&there, &request(&there, LEASE)).await;
}

/// A waiter that came late is at the front, and lets the one behind it go first. The answer to its move gets lost.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn who_let_another_one_go_first_gets_in_with_a_larger_token() {
    let server = OwnServer::start().await;
    let (proxy, hosts) = (Proxy::before(&[server.host()]).await, [server.host()]);
    let calm = options(proxy.hosts()).with_lease(LONG);
    let late = ZookeeperEngine::connect(&calm).await.unwrap();
    let (early, holder) = (patient(&server).await, patient(&server).await);
    let strict = |engine, ticket| {
        let fair = request(engine, LONG);
        fair.with_fairness(Fairness::Strict).with_ticket(Ticket::from_number(ticket))
    };
    let (second, first) = (strict(&late, 2), strict(&early, 1));
    let held = granted(&holder, &request(&holder, LEASE * 4)).await;
    let mut at_the_front = queue_up(&late, &second, &server).await;
    let behind = queue_up(&early, &first, &server).await;
    proxy.set(Link::Held(What::Transactions));
    holder.release(&held.key, held.id, None).await.unwrap();
    let moves = async {
        until("it moves", async || proxy.kept() == 1).await;
        proxy.set(Link::Deaf);
        let grant = within("the waiter behind gets in", behind).await.unwrap().unwrap();
        proxy.set(Link::Cut);
        until("it has moved", async || contenders(&hosts, LOCK).await.len() == 2).await;
        proxy.set(Link::Open);
        early.release(&grant.key, grant.id, None).await.unwrap();
        grant
    };
    let (earlier, later) = tokio::join!(moves, within("it gets in", &mut at_the_front));
    let later = later.unwrap().unwrap();
    assert!(later.token > earlier.token, "{:?} after {:?}", later.token, earlier.token);
    let seen = late.inspect(&later.key).await.unwrap();
    assert_eq!(seen.holders[0].token, later.token.map(Into::into), "others are told the same");
    late.release(&later.key, later.id, None).await.unwrap();
}
