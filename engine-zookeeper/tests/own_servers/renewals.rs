//! Renewals that meet the end of what they renew.

use std::time::Duration;

use ylock_core::engine::{Engine, Holding, Renewal};
use ylock_core::{LossReason, Result};
use ylock_engine_zookeeper::ZookeeperEngine;
use ylock_testkit::poll_times;

use super::grants::request;
use super::own_server::OwnServer;
use super::server::proxy::{Link, Proxy, What};
use super::{LONG, options, until, within};

/// What becomes of a renewal if its grant is given up while the node is looked at: the server answers that look first, and then removes the
/// node.
async fn overtaken(by_the_whole_release: bool) -> Result<Renewal> {
    let server = OwnServer::start().await;
    let proxy = Proxy::before(&[server.host()]).await;
    let patient = options(proxy.hosts()).with_lease(LONG);
    let patient = patient.with_request_timeout(Duration::from_secs(10));
    let engine = ZookeeperEngine::connect(&patient).await.unwrap();
    let request = request(&engine, LONG);
    let grant = within("granted", engine.acquire(&request)).await.unwrap().unwrap();
    proxy.set(Link::Held(What::Anything));
    let (key, id, holdings) = (grant.key.clone(), grant.id, [Holding::new(grant, None)]);
    let mut renewal = engine.renew(&holdings);
    let on_its_way = until("the node is looked at", async || proxy.kept() == 1);
    tokio::select! {
        renewal = &mut renewal => panic!("nothing is answered: {renewal:?}"),
        () = on_its_way => {}
    }
    let mut release = engine.release(&key, id, None);
    assert!(poll_times(1, &mut release).await.is_none());
    proxy.set(Link::Open);
    if by_the_whole_release {
        within("released", &mut release).await.unwrap();
        return within("answered", renewal).await.pop().unwrap();
    }
    let renewal = within("answered", renewal).await.pop().unwrap();
    within("released", release).await.unwrap();
    renewal
}

/// The caller gives the grant up, or the client because its lease has ended meanwhile: the node is about to go, or has gone, and another
/// client gets in.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_grant_that_is_given_up_while_it_is_renewed_is_not_renewed() {
    for whole in [false, true] {
        assert_eq!(overtaken(whole).await.unwrap(), Renewal::Lost(LossReason::Gone), "{whole}");
    }
}
