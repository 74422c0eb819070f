//! A client that outlives the runtime in which it was made.

use tokio::runtime::{Builder, Runtime};
use ylock_core::LossReason;

use super::own_server::OwnServer;
use super::{client, within};

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn a_client_goes_on_in_another_runtime_with_another_session() {
    let first = runtime();
    let (_server, here, guard) = first.block_on(async {
        let server = OwnServer::start().await;
        let here = client(vec![server.host()]).await;
        let guard = here.locks("users").write("alice").await.unwrap();
        (server, here, guard)
    });
    drop(first);
    runtime().block_on(async {
        drop(within("another lock", here.locks("users").write("bob")).await.unwrap());
        let reason = within("the loss is told", guard.lost()).await;
        assert!(matches!(reason, LossReason::Gone | LossReason::Lapsed), "{reason:?}");
        let next = within("when the old session is over", here.locks("users").write("alice")).await.unwrap();
        assert!(next.token() > guard.token());
        next.unlock().await.unwrap();
    });
}
