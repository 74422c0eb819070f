//! How many seeds are played of what: the one place that decides how much CPU the tests of seeds take in a short run.

use std::ops::Range;

use ylock_testkit::part_of;

/// The milliseconds of CPU that a test of seeds takes in a short run.
const BUDGET: f64 = 2_500.0;

/// What is played, how many seeds a long run plays of it, and the milliseconds of CPU that one of them takes: each test says what it took. A count and
/// no clock bounds the work, so that a number repeats it.
const PLAYED: &[(&str, u64, f64)] = &[
    ("engine", 2_000, 5.6),
    ("engine --protocol shadow-rows", 500, 3.1),
    ("engine --clock global-time", 500, 7.1),
    ("engine --expiry observed", 1_000, 8.8),
    ("engine --expiry observed --protocol shadow-rows", 300, 4.3),
    ("engine, told of its turn", 150, 13.9),
    ("engine, told of its turn, --expiry observed", 150, 19.5),
    ("engine, and a replica forgets", 1_000, 7.1),
    ("engine, and a replica forgets where others miss writes", 1_000, 5.4),
    ("engine, three leases", 300, 8.1),
    ("engine, 1 replicas", 200, 4.9),
    ("engine, 2 replicas", 200, 5.8),
    ("engine, 4 replicas", 200, 6.2),
    ("engine, 5 replicas", 200, 6.5),
    ("engine, 2 replicas and a node joins", 300, 4.1),
    ("engine, 3 replicas and a node joins", 300, 4.9),
    ("engine, 5 replicas and a node joins", 300, 6.3),
    ("zookeeper", 6_000, 9.0),
    ("zookeeper, strict", 400, 6.4),
    ("redis", 3_000, 100.0),
    ("redis, strict", 50, 60.0),
    ("redis, the quick ways", 200, 57.0),
    ("redis-cluster", 1_000, 220.0),
    ("redis-cluster, strict", 50, 80.0),
    ("etcd", 6_000, 9.0),
    ("etcd, strict", 400, 7.8),
    ("etcd, set up anew", 200, 8.1),
    ("keeper-over-memory", 10_000, 2.1),
    ("keeper-over-memory --sets", 10_000, 5.0),
    ("keeper-over-memory --built", 10_000, 5.1),
    ("keeper-at-once", 10_000, 2.0),
    ("keeper-at-once --sets", 10_000, 3.5),
    ("keeper-at-once --built", 10_000, 3.5),
    ("keeper-over-cassandra", 3_000, 15.3),
    ("keeper-over-cassandra --sets", 1_000, 22.0),
    ("keeper-over-cassandra --built", 1_000, 23.0),
    ("keeper-over-cassandra --expiry observed", 200, 23.0),
    ("keeper-over-zookeeper", 2_000, 17.0),
    ("keeper-over-zookeeper --sets", 1_000, 23.0),
    ("keeper-over-zookeeper --built", 1_000, 23.0),
    ("keeper-over-redis", 1_000, 150.0),
    ("keeper-over-redis --sets", 1_000, 170.0),
    ("keeper-over-redis --built", 1_000, 177.0),
    ("keeper-over-redis, two leases", 100, 150.0),
    ("keeper-over-redis-cluster", 300, 200.0),
    ("keeper-over-etcd", 2_000, 18.2),
    ("keeper-over-etcd --sets", 1_000, 25.0),
    ("keeper-over-etcd --built", 1_000, 26.0),
];

/// Returns the seeds that this run plays.
pub(crate) fn seeds_of(what: &str) -> Range<u64> {
    let (_, all, each) = PLAYED.iter().find(|(name, ..)| *name == what).expect("a row says how many seeds");
    part_of(0..*all, (BUDGET / each) as u64)
}
