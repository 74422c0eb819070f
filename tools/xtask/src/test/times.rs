//! How long tests take, on two cores: what takes the longest begins first, and the parts of a run take about the same time.

use super::output::Target;

/// Returns about how many seconds a target takes.
pub(crate) fn seconds(target: &Target, is_long: bool) -> u32 {
    let is_it = |(package, name, ..): &&Row| target.package == *package && target.name == *name;
    let (.., short, long) = SECONDS.iter().find(is_it).unwrap_or(&OTHERS);
    if is_long { *long } else { *short }
}

/// The crate, the target, its seconds in the short run and in the long one.
type Row = (&'static str, &'static str, u32, u32);

/// What is not in the table.
const OTHERS: Row = ("", "", 5, 5);

/// Those of the short run as the table at the end of a run shows them; those of the long run by how much more of each is done in it, and to be corrected by
/// one that was whole. Wrong numbers only cost time.
const SECONDS: [Row; 34] = [
    ("ylock", "ledger", 90, 1_200),
    ("ylock", "owner", 8, 160),
    ("ylock", "scheduler", 11, 125),
    ("ylock-cli", "command", 15, 15),
    ("ylock-cli", "real_cassandra", 11, 11),
    ("ylock-cli", "real_redis", 16, 16),
    ("ylock-cli", "real_zookeeper", 15, 15),
    ("ylock-engine-cassandra", "conformance", 210, 2_500),
    ("ylock-engine-cassandra", "driver_api", 10, 10),
    ("ylock-engine-cassandra", "runtimes", 9, 9),
    ("ylock-engine-cassandra", "store", 70, 400),
    ("ylock-engine-cassandra", "trouble", 220, 3_600),
    ("ylock-engine-etcd", "conformance", 90, 900),
    ("ylock-engine-etcd", "own_servers", 50, 120),
    ("ylock-engine-file", "conformance", 25, 600),
    ("ylock-engine-file", "model", 5, 250),
    ("ylock-engine-file", "processes", 7, 600),
    ("ylock-engine-postgres", "conformance", 75, 900),
    ("ylock-engine-postgres", "model", 50, 4_500),
    ("ylock-engine-postgres", "own_servers", 150, 450),
    ("ylock-engine-redis", "conformance", 80, 1_500),
    ("ylock-engine-redis", "model", 10, 1_500),
    ("ylock-engine-redis", "own_servers", 140, 450),
    ("ylock-engine-zookeeper", "conformance", 95, 900),
    ("ylock-engine-zookeeper", "own_servers", 150, 900),
    ("ylock-observability", "prometheus", 40, 56),
    ("ylock-simulation", "real_cassandra", 40, 46),
    ("ylock-simulation", "real_etcd", 35, 43),
    ("ylock-simulation", "real_zookeeper", 60, 54),
    ("ylock-simulation", "seeds", 390, 5_500),
    ("ylock-simulation", "variants", 70, 400),
    ("ylock-testkit", "broken_engines", 45, 39),
    ("ylock-testkit", "keeper", 13, 900),
    ("ylock-testkit", "memory_conformance", 35, 60),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo;

    /// The table would say nothing of a target that has another name by now.
    #[test]
    fn what_is_in_the_table_is_there() {
        let packages = cargo::packages().unwrap();
        for (name, test, ..) in SECONDS {
            let package = packages.iter().find(|package| package.name == name).expect(name);
            assert!(package.tests.iter().any(|one| one == test), "{name} {test}");
        }
    }
}
