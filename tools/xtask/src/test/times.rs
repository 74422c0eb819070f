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
const SECONDS: [Row; 33] = [
    ("ylock", "ledger", 92, 1_200),
    ("ylock", "owner", 8, 160),
    ("ylock", "scheduler", 11, 125),
    ("ylock-cli", "command", 15, 15),
    ("ylock-cli", "real_cassandra", 11, 11),
    ("ylock-cli", "real_redis", 16, 16),
    ("ylock-cli", "real_zookeeper", 15, 15),
    ("ylock-engine-cassandra", "conformance", 420, 2_500),
    ("ylock-engine-cassandra", "driver_api", 10, 10),
    ("ylock-engine-cassandra", "runtimes", 9, 9),
    ("ylock-engine-cassandra", "store", 159, 400),
    ("ylock-engine-cassandra", "trouble", 240, 3_600),
    ("ylock-engine-etcd", "conformance", 120, 900),
    ("ylock-engine-etcd", "own_servers", 90, 120),
    ("ylock-engine-file", "conformance", 60, 600),
    ("ylock-engine-file", "model", 5, 250),
    ("ylock-engine-file", "processes", 7, 600),
    ("ylock-engine-postgres", "conformance", 120, 900),
    ("ylock-engine-postgres", "model", 180, 4_500),
    ("ylock-engine-postgres", "own_servers", 150, 450),
    ("ylock-engine-redis", "conformance", 180, 1_500),
    ("ylock-engine-redis", "model", 30, 1_500),
    ("ylock-engine-redis", "own_servers", 150, 450),
    ("ylock-engine-zookeeper", "conformance", 120, 900),
    ("ylock-engine-zookeeper", "own_servers", 120, 900),
    ("ylock-observability", "prometheus", 56, 56),
    ("ylock-simulation", "real_cassandra", 46, 46),
    ("ylock-simulation", "real_etcd", 43, 43),
    ("ylock-simulation", "real_zookeeper", 54, 54),
    ("ylock-simulation", "seeds", 550, 5_500),
    ("ylock-simulation", "variants", 120, 400),
    ("ylock-testkit", "broken_engines", 39, 39),
    ("ylock-testkit", "keeper", 13, 900),
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
