//! The end of a lease that is not prolonged.

use std::time::Duration;

use futures_util::future::{Either, select};
use ylock_core::Owner;
use ylock_engine_etcd::algorithm::store::{Done, Keys, Look, Put, Step as Does, Transaction};

use super::said::Step;
use super::sides::Side;

/// Longer than the shortest time for which the servers keep a lease.
const SECONDS: i64 = 5;
const PATIENCE: Duration = Duration::from_secs(60);

/// A lease ends in its time, with all its keys in one revision, and takes no key any more.
pub(crate) async fn expires(side: Side) -> Vec<Step> {
    let (base, mut step) = (format!("simulated-{}/", Owner::new()), Step::default());
    let key = |name: &str| format!("{base}{name}").into_bytes();
    let began = side.clock.now();
    let granted = side.servers.grant(SECONDS).await.expect("a lease");
    let put =
        |name: &str, lease: i64| Does::Put(Put { key: key(name), value: Vec::new(), lease: Some(lease) });
    let then = vec![put("one", granted.lease), put("two", granted.lease), put("stays", 0)];
    let putting = Transaction { then, ..Transaction::default() };
    let outcome = side.servers.transact(putting.clone()).await.expect("puts");
    step.outcome("puts", &outcome, &[granted.lease]);
    let watching = side.servers.watch(key("two"), false).await.expect("a watch");
    let told = select(watching.told, side.clock.sleep(PATIENCE)).await;
    assert!(matches!(told, Either::Left((Ok(event), _)) if event.is_deletion), "the lease ends");
    let lived = side.clock.now().since(began);
    step.say(format!("in its time: {}", lived >= Duration::from_secs(SECONDS.unsigned_abs())));
    let looking = Transaction::looking([Look::at(Keys::below(base.clone()))]);
    let outcome = side.servers.transact(looking).await.expect("a look");
    step.outcome("left", &outcome, &[granted.lease]);
    if let Err(fault) = side.servers.transact(putting).await {
        step.fault("puts after that", &fault);
    }
    let then = vec![Does::Delete(key("stays"))];
    let outcome =
        side.servers.transact(Transaction { then, ..Transaction::default() }).await.expect("a delete");
    assert_eq!(outcome.done, [Done::Deleted(1)]);
    vec![step]
}
