//! How many seeds are played of what: the one place that decides how much CPU the tests of seeds take in a short run.

use std::ops::Range;

use ylock_testkit::part_of;

/// The milliseconds of CPU that a test of seeds takes in a short run.
const BUDGET: f64 = 3_500.0;

/// What is played, how many seeds a long run plays of it, and the milliseconds of CPU that one of them takes: each test says what it took. A count and
/// no clock bounds the work, so that a number repeats it.
const PLAYED: &[(&str, u64, f64)] = &[
    ("engine", 2_000, 5.2),
    ("engine --protocol shadow-rows", 500, 3.3),
    ("engine --clock global-time", 500, 7.3),
    ("engine --expiry observed", 1_000, 8.5),
    ("engine --expiry observed --protocol shadow-rows", 300, 4.3),
    ("engine, told of its turn", 150, 11.9),
    ("engine, told of its turn, --expiry observed", 150, 17.3),
    ("engine, and a replica forgets", 1_000, 7.1),
    ("engine, and a replica forgets where others miss writes", 1_000, 5.4),
    ("engine, three leases", 300, 7.5),
    ("engine, 1 replicas", 200, 4.5),
    ("engine, 2 replicas", 200, 5.4),
    ("engine, 4 replicas", 200, 7.0),
    ("engine, 5 replicas", 200, 7.1),
    ("engine, 2 replicas and a node joins", 300, 3.9),
    ("engine, 3 replicas and a node joins", 300, 4.5),
    ("engine, 5 replicas and a node joins", 300, 5.9),
    ("tries at once", 10_000, 3.4),
    ("zookeeper", 6_000, 5.9),
    ("zookeeper, strict", 400, 5.6),
    ("redis", 3_000, 60.4),
    ("redis, strict", 50, 54.5),
    ("redis, the quick ways", 200, 49.2),
    ("redis-cluster", 1_000, 138.5),
    ("redis-cluster, strict", 50, 72.6),
    ("etcd", 6_000, 8.7),
    ("etcd, strict", 400, 6.9),
    ("etcd, set up anew", 200, 8.0),
    ("keeper-over-memory", 10_000, 2.0),
    ("keeper-over-memory --sets", 10_000, 3.2),
    ("keeper-over-memory --built", 10_000, 4.6),
    ("keeper-at-once", 10_000, 1.7),
    ("keeper-at-once --sets", 10_000, 2.5),
    ("keeper-at-once --built", 10_000, 3.1),
    ("keeper-over-cassandra", 3_000, 13.3),
    ("keeper-over-cassandra --sets", 1_000, 16.4),
    ("keeper-over-cassandra --built", 1_000, 19.1),
    ("keeper-over-cassandra --expiry observed", 200, 22.0),
    ("keeper-over-zookeeper", 2_000, 11.6),
    ("keeper-over-zookeeper --sets", 1_000, 15.9),
    ("keeper-over-zookeeper --built", 1_000, 24.2),
    ("keeper-over-redis", 1_000, 135.3),
    ("keeper-over-redis --sets", 1_000, 108.5),
    ("keeper-over-redis --built", 1_000, 142.4),
    ("keeper-over-redis, two leases", 100, 113.8),
    ("keeper-over-redis-cluster", 300, 250.7),
    ("keeper-over-etcd", 2_000, 16.1),
    ("keeper-over-etcd --sets", 1_000, 19.4),
    ("keeper-over-etcd --built", 1_000, 23.4),
];

/// Returns the seeds that this run plays.
pub(crate) fn seeds_of(what: &str) -> Range<u64> {
    let (_, all, each) = PLAYED.iter().find(|(name, ..)| *name == what).expect("a row says how many seeds");
    part_of(0..*all, (BUDGET / each) as u64)
}
