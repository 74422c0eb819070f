//! Compares the tables of options in the README with the definitions in the code.

use ylock::Options;
use ylock_core::options::{Definition, Reach};

const README: &str = include_str!("../README.md");

/// Checks that the README has a table of exactly these options.
fn is_in_the_readme(of: &str, options: &[Definition]) {
    let rows = options.iter().map(Definition::markdown).collect::<Vec<_>>().join("\n");
    let table = format!("\n\n| option | default | what it does |\n|---|---|---|\n{rows}\n\n");
    assert!(README.contains(&table), "in README.md the table of the options of {of} must be:{table}");
}

#[cfg(any(feature = "cassandra", feature = "redis", feature = "zookeeper"))]
fn own(options: Vec<Definition>) -> Vec<Definition> {
    let common = Reach::definitions();
    options.into_iter().filter(|option| !common.contains(option)).collect()
}

#[test]
fn options_of_every_engine() {
    is_in_the_readme("every engine", &Options::definitions());
    is_in_the_readme("every engine over a network", &Reach::definitions());
}

#[cfg(feature = "cassandra")]
#[test]
fn options_of_cassandra() {
    is_in_the_readme("Cassandra", &own(ylock::cassandra::CassandraOptions::definitions()));
}

#[cfg(feature = "redis")]
#[test]
fn options_of_redis() {
    is_in_the_readme("Redis", &own(ylock::redis::RedisOptions::definitions()));
}

#[cfg(feature = "zookeeper")]
#[test]
fn options_of_zookeeper() {
    is_in_the_readme("ZooKeeper", &own(ylock::zookeeper::ZookeeperOptions::definitions()));
}
