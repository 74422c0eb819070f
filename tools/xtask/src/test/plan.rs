//! Plans which tests run, in which order, with which flags.

use std::fmt;

use crate::{
    ENGINES,
    cargo::Package,
    engine::{self, Engine},
};

/// The file of an engine that runs the suite.
const CONFORMANCE: &str = "conformance";
/// The files of the simulation that need nothing but a core.
const COMPUTING: [&str; 3] = ["mutants", "seeds", "variants"];

/// The owner of the servers that the tests use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ServersOf {
    Nobody,
    User,
    Xtask,
}

/// One call of `cargo test`.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Pass {
    pub(crate) what: What,
    /// The arguments of `cargo test`.
    pub(crate) cargo: Vec<String>,
    pub(crate) libtest: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum What {
    Docs,
    Tests,
    /// The simulation. It never waits, and what happens in it does not depend on how long it takes: so it takes the time that the others leave.
    Computing,
    /// The suite that all engines share. Its cases wait for leases nearly all of the time.
    Conformance,
    /// Tests that start servers of their own, and kill and pause them: a few at a time, because starting takes a core.
    OwnServers,
    /// Tests that kill and pause servers that other tests use too: alone, one after the other.
    Trouble,
}

impl fmt::Display for What {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Docs => "documentation",
            Self::Tests => "tests",
            Self::Computing => "tests that only compute",
            Self::Conformance => "conformance suite",
            Self::OwnServers => "tests that break servers of their own",
            Self::Trouble => "tests that break servers",
        })
    }
}

#[derive(Debug)]
pub(crate) struct Plan {
    packages: Vec<Package>,
    whole: bool,
    servers: ServersOf,
    /// The engines whose servers are not there.
    absent: Vec<&'static str>,
}

impl Plan {
    pub(crate) fn new(all: Vec<Package>, engines: &[&'static Engine], servers: ServersOf) -> Self {
        let chosen = engine::chosen(engines);
        // Only the whole has the packages that are of no engine.
        let whole = chosen.len() == ENGINES.len();
        let is_own = |package: &Package| whole || chosen.iter().any(|engine| package.is_of(engine));
        let is_beside_own = |name: &String| chosen.iter().any(|engine| is_beside(name, engine.name));
        let wanted = |mut package: Package| {
            if !is_own(&package) {
                package.tests.retain(is_beside_own);
            }
            (is_own(&package) || !package.tests.is_empty()).then_some(package)
        };
        let is_chosen = |name: &str| chosen.iter().any(|engine| engine.name == name);
        let absent = ENGINES.iter().map(|engine| engine.name).filter(|name| !is_chosen(name)).collect();
        Self { packages: all.into_iter().filter_map(wanted).collect(), whole, servers, absent }
    }

    /// Returns the name of the chosen package that cargo knows by this id.
    pub(crate) fn package_named(&self, id: &str) -> Option<&str> {
        self.packages.iter().find(|package| package.id == id).map(|package| package.name.as_str())
    }

    /// Returns whether the plan contains tests that start a Prometheus.
    pub(crate) fn wants_prometheus(&self) -> bool {
        let has_tests = self.packages.iter().any(|package| package.name == "ylock-observability");
        has_tests && self.servers != ServersOf::Nobody
    }

    /// Returns the arguments of one build for all passes but that of the documentation.
    pub(crate) fn build(&self) -> Vec<String> {
        self.selection(&["--lib", "--bins", "--tests"])
    }

    /// Returns the pass that runs beside all others.
    pub(crate) fn beside(&self) -> Option<Pass> {
        let computing: Vec<_> = self.test_files().into_iter().filter(|name| is_computing(name)).collect();
        (!computing.is_empty()).then(|| Pass {
            what: What::Computing,
            cargo: self.files(&[], &computing),
            libtest: self.side_by_side("--test-threads=2"),
        })
    }

    /// Returns the passes that run one after the other.
    pub(crate) fn passes(&self) -> Vec<Pass> {
        let tests = self.test_files().into_iter().filter(|name| !is_computing(name));
        let (trouble, tests): (Vec<_>, Vec<_>) = tests.partition(|name| is_trouble(name));
        let (own_servers, tests): (Vec<_>, Vec<_>) =
            tests.into_iter().partition(|name| has_own_servers(name));
        let (conformance, tests): (Vec<_>, Vec<_>) = tests.into_iter().partition(|name| name == CONFORMANCE);
        let mut passes = vec![
            Pass {
                what: What::Tests,
                cargo: self.files(&["--lib", "--bins"], &tests),
                libtest: self.side_by_side("--test-threads=4"),
            },
            // Without `--include-ignored`, which would run examples that are marked as not to be run.
            Pass { what: What::Docs, cargo: self.selection(&["--doc"]), libtest: vec![] },
        ];
        if !conformance.is_empty() {
            let libtest = self.side_by_side("--test-threads=24");
            passes.push(Pass { what: What::Conformance, cargo: self.files(&[], &conformance), libtest });
        }
        if !own_servers.is_empty() {
            let libtest = self.side_by_side("--test-threads=4");
            passes.push(Pass { what: What::OwnServers, cargo: self.files(&[], &own_servers), libtest });
        }
        if !trouble.is_empty() {
            let mut libtest = vec!["--test-threads=1"];
            // We do not break servers that are not ours; these tests are then counted as skipped.
            if self.servers == ServersOf::Xtask {
                libtest.extend(self.ignored());
            }
            passes.push(Pass { what: What::Trouble, cargo: self.files(&[], &trouble), libtest });
        }
        passes
    }

    /// Returns the arguments of tests that run side by side. Cases with servers mostly wait for leases, so more of them than there are
    /// cores can run at the same time.
    fn side_by_side(&self, how_many: &'static str) -> Vec<&'static str> {
        let mut words = self.ignored();
        words.push(how_many);
        words
    }

    fn ignored(&self) -> Vec<&'static str> {
        if self.servers == ServersOf::Nobody { vec![] } else { vec!["--include-ignored"] }
    }

    fn test_files(&self) -> Vec<String> {
        let is_possible = |name: &String| !self.absent.iter().any(|engine| is_beside(name, engine));
        let names = self.packages.iter().flat_map(|package| package.tests.clone());
        let mut names: Vec<_> = names.filter(is_possible).collect();
        names.sort();
        names.dedup();
        names
    }

    fn files(&self, more: &[&str], tests: &[String]) -> Vec<String> {
        let mut words = self.selection(more);
        words.extend(tests.iter().flat_map(|name| ["--test".to_owned(), name.clone()]));
        words
    }

    fn selection(&self, more: &[&str]) -> Vec<String> {
        let mut words = vec!["--all-features".to_owned()];
        if self.whole {
            words.push("--workspace".to_owned());
        } else {
            words.extend(self.packages.iter().flat_map(|package| ["-p".to_owned(), package.name.clone()]));
        }
        words.extend(more.iter().map(|&word| word.to_owned()));
        words
    }
}

/// Returns whether tests of this crate break servers that other tests use.
pub(crate) fn makes_trouble(package: &Package) -> bool {
    package.tests.iter().any(|name| is_trouble(name))
}

/// Returns whether tests of this file break servers that other tests use. The file name is all that `cargo metadata` and `--test` know
/// of a test.
fn is_trouble(name: &str) -> bool {
    name.starts_with("trouble")
}

/// Returns whether tests of this file hold something to the servers of this engine.
fn is_beside(name: &str, engine: &str) -> bool {
    name.strip_prefix("real_").is_some_and(|beside| beside == engine)
}

fn is_computing(name: &str) -> bool {
    COMPUTING.contains(&name)
}

fn has_own_servers(name: &str) -> bool {
    name.starts_with("own_servers")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cassandra, memory, redis, zookeeper};

    fn plan(engines: &[&'static Engine], servers: ServersOf) -> Plan {
        let package = |name: &str, tests: &[&str]| Package {
            name: name.to_owned(),
            id: String::new(),
            features: vec![],
            rust_version: String::new(),
            tests: tests.iter().map(|&test| test.to_owned()).collect(),
        };
        let all = vec![
            package("xtask", &[]),
            package("ylock", &["connect"]),
            package("ylock-core", &["send_sync"]),
            package("ylock-engine-cassandra", &["conformance", "trouble"]),
            package("ylock-engine-redis", &["conformance", "own_servers"]),
            package("ylock-engine-zookeeper", &["conformance"]),
            package("ylock-observability", &["prometheus"]),
            package("ylock-simulation", &["real_cassandra", "real_redis", "seeds"]),
            package("ylock-testkit", &["memory_conformance"]),
        ];
        Plan::new(all, engines, servers)
    }

    #[test]
    fn tests_that_break_servers_run_last_and_one_by_one() {
        let passes = plan(&[], ServersOf::Xtask).passes();
        assert_eq!(
            passes.iter().map(|pass| pass.what).collect::<Vec<_>>(),
            [What::Tests, What::Docs, What::Conformance, What::OwnServers, What::Trouble]
        );
        assert_eq!(
            passes[0].cargo.join(" "),
            "--all-features --workspace --lib --bins --test connect \
             --test memory_conformance --test prometheus --test real_cassandra --test real_redis \
             --test send_sync"
        );
        assert_eq!(passes[2].cargo.join(" "), "--all-features --workspace --test conformance");
        assert_eq!(passes[2].libtest, ["--include-ignored", "--test-threads=24"]);
        assert_eq!(passes[3].cargo.join(" "), "--all-features --workspace --test own_servers");
        assert_eq!(passes[3].libtest, ["--include-ignored", "--test-threads=4"]);
        assert_eq!(passes[4].cargo.join(" "), "--all-features --workspace --test trouble");
        assert_eq!(passes[4].libtest, ["--test-threads=1", "--include-ignored"]);
    }

    #[test]
    fn what_only_computes_runs_beside_the_others() {
        let beside = plan(&[], ServersOf::Xtask).beside().expect("the simulation");
        assert_eq!(beside.cargo.join(" "), "--all-features --workspace --test seeds");
        assert_eq!(plan(&[&redis::ENGINE], ServersOf::Xtask).beside(), None);
    }

    #[test]
    fn servers_of_the_user_are_not_broken() {
        let passes = plan(&[], ServersOf::User).passes();
        assert_eq!(passes[0].libtest, ["--include-ignored", "--test-threads=4"]);
        assert_eq!(passes[4].libtest, ["--test-threads=1"]);
    }

    #[test]
    fn memory_alone_wants_no_driver_tests() {
        let passes = plan(&[&memory::ENGINE], ServersOf::Nobody).passes();
        assert_eq!(
            passes[0].cargo.join(" "),
            "--all-features -p ylock -p ylock-core -p ylock-testkit --lib --bins --test connect \
             --test memory_conformance --test send_sync"
        );
        assert!(passes.iter().all(|pass| !pass.libtest.contains(&"--include-ignored")));
    }

    /// The crate of the simulation is Cassandra's, but holds its servers to those of the others as well.
    #[test]
    fn nothing_is_held_to_servers_that_are_not_there() {
        let passes = plan(&[&cassandra::ENGINE], ServersOf::Xtask).passes();
        let tests = passes[0].cargo.join(" ");
        assert!(tests.ends_with("--test connect --test real_cassandra"), "{tests}");
    }

    #[test]
    fn prometheus_is_wanted_for_the_whole_alone() {
        assert!(plan(&[], ServersOf::User).wants_prometheus());
        assert!(!plan(&[&redis::ENGINE], ServersOf::Xtask).wants_prometheus());
    }

    #[test]
    fn an_engine_brings_its_own_crate_alone() {
        let passes = plan(&[&zookeeper::ENGINE], ServersOf::Xtask).passes();
        assert_eq!(passes[0].cargo.join(" "), "--all-features -p ylock-engine-zookeeper --lib --bins");
        assert_eq!(passes[2].cargo.join(" "), "--all-features -p ylock-engine-zookeeper --test conformance");
    }

    #[test]
    fn an_engine_brings_what_is_held_to_its_servers_and_nothing_else_of_that_crate() {
        let passes = plan(&[&redis::ENGINE], ServersOf::Xtask).passes();
        assert_eq!(
            passes[0].cargo.join(" "),
            "--all-features -p ylock-engine-redis -p ylock-simulation --lib --bins --test real_redis"
        );
    }
}
