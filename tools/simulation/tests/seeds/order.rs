//! Runs in which nothing goes wrong, and all ask for the strict order: they enter in it.

use crate::support;
use ylock_simulation::Subject::{self, EtcdEngine, RedisCluster, RedisEngine, ZookeeperEngine};
use ylock_simulation::{Setting, run};

fn all_enter_in_order(of: Subject) {
    support::none_fails(&format!("{}, strict", support::name(of)), |seed| {
        let setting = Setting { of, allowed: vec![], strict: true, ..Setting::default() };
        let outcome = run(seed, &setting);
        let failed = !outcome.wrong.is_empty() || outcome.entries == 0;
        failed.then(|| format!("{of:?}, strict, seed {seed}: {}", outcome.wrong.join("; ")))
    });
}

#[test]
fn the_zookeeper_engine_keeps_the_strict_order() {
    all_enter_in_order(ZookeeperEngine);
}

#[test]
fn the_etcd_engine_keeps_the_strict_order() {
    all_enter_in_order(EtcdEngine);
}

#[test]
fn the_redis_engine_keeps_the_strict_order() {
    all_enter_in_order(RedisEngine);
    all_enter_in_order(RedisCluster);
}
