//! Sessions that are given up or closed.
#![allow(clippy::disallowed_methods, reason = "runtimes that end are made here")]

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use ylock_core::engine::{AcquisitionId, valid_until};
use ylock_core::environment::{Moment, SystemEnvironment};
use ylock_core::url::Host;
use ylock_core::{ClientName, Key, Mode, Owner};
use ylock_testkit::own_servers::{until, within};

use super::Servers;
use crate::algorithm::client::Client;
use crate::algorithm::node::{Content, Tag};
use crate::algorithm::place::{Place, exact};
use crate::algorithm::session::Session;
use crate::options::ZookeeperOptions;

const A_SESSION: Duration = Duration::from_secs(6);

/// A session on a real server, with a node.
struct Stored {
    session: Session,
    place: Place,
    node: String,
}

impl Stored {
    async fn make() -> Self {
        let server = std::env::var("YLOCK_TEST_ZOOKEEPER").expect("run `cargo xtask test zookeeper`");
        let (name, port) = server.rsplit_once(':').expect("host:port");
        let host = Host::new(name, port.parse::<u16>().ok());
        let options = ZookeeperOptions::new([host]).with_base("/ylock-test").with_session(A_SESSION);
        let environment = SystemEnvironment::shared();
        let client = Client::new(Arc::new(Servers::of(&options, &environment)), environment, &options);
        let store = client.ensemble.session();
        within("a session begins", store.attach()).await.unwrap();
        let session = Session::new(store, 1, &client, &Arc::default());
        let key = Key::new(format!("given-up-{}", Owner::new()), "x").unwrap();
        let (place, id) = (Place::of("/ylock-test", &key), AcquisitionId::new(&*client.environment));
        session.make(&place.bucket).await.unwrap();
        let tag = Tag { mode: Mode::Write, id, session: 1, ticket: None };
        let content = Content {
            owner: Owner::new(),
            client: ClientName::default(),
            since: 0,
            token: None,
            revoked: false,
        };
        let made = session.make_both(&place, &exact(&key), &tag, &content.write()).await.unwrap();
        Self { node: place.child(&made.name.to_string()), session, place }
    }

    /// Waits until the server does not have the node any more, and returns that moment.
    async fn gone(&self) -> Moment {
        let other =
            zookeeper_client::Client::connect(&std::env::var("YLOCK_TEST_ZOOKEEPER").unwrap()).await.unwrap();
        until("the node is gone", async || other.check_stat(&self.node).await.unwrap().is_none()).await;
        drop(other.delete(&self.place.lock, None).await);
        self.session.now()
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// Ends a session, and calls `check` with the last moment until which it may be relied on and with that at which the server has removed
/// what it had. Twice: while its connection is there, and when the runtime of its connection has ended.
fn ended_by(end: fn(&Session), check: fn(Moment, Moment) -> bool) {
    let main = runtime();
    for connection_ends in [false, true] {
        let first = runtime();
        let stored = first.block_on(Stored::make());
        let session = &stored.session;
        let lease = session.longest_lease();
        let relied_on_until = valid_until(session.counts(lease), lease);
        let _kept = (!connection_ends).then_some(first);
        let gone = main.block_on(async {
            end(session);
            stored.gone().await
        });
        assert!(
            check(relied_on_until, gone),
            "gone at {gone:?}, relied on until {relied_on_until:?}, {connection_ends}"
        );
    }
}

#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn what_a_session_has_stays_while_it_may_be_relied_on_if_it_is_given_up_and_goes_at_once_if_it_is_closed() {
    ended_by(|session| session.end(), |relied_on_until, gone| gone >= relied_on_until);
    ended_by(|session| session.close(), |relied_on_until, gone| gone < relied_on_until);
}
