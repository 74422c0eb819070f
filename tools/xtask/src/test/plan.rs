//! Plans which tests run, in which order, with which flags.

use std::fmt;

use super::output::Target;
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

/// Tests that are run in one way.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Pass {
    pub(crate) what: What,
    pub(crate) programs: Programs,
    /// The arguments of each program.
    pub(crate) libtest: Vec<&'static str>,
}

#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Programs {
    /// Those that cargo alone can make, with these arguments of `cargo test`: the examples of the documentation.
    OfCargo(Vec<String>),
    /// Those of these targets, in this order, as many side by side.
    These { targets: Vec<Target>, at_once: usize },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum What {
    Docs,
    Tests,
    /// The simulation. It never waits, and what happens in it does not depend on how long it takes: so it takes the time that the others leave.
    Computing,
    /// The suite that all engines share. Its cases wait for leases nearly all of the time.
    Conformance,
    /// Tests that start servers of their own, and kill and pause them: a few at a time, because starting takes a core. They wait most of the time.
    OwnServers,
    /// Tests that kill and pause servers that other tests use too: when no other test uses them, one after the other.
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

impl What {
    /// Returns what the tests of this name are.
    fn of(name: &str) -> Self {
        match name {
            CONFORMANCE => Self::Conformance,
            name if COMPUTING.contains(&name) => Self::Computing,
            name if has_own_servers(name) => Self::OwnServers,
            name if is_trouble(name) => Self::Trouble,
            _ => Self::Tests,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Plan {
    packages: Vec<Package>,
    whole: bool,
    servers: ServersOf,
    is_long: bool,
    /// The engines whose servers are not there.
    absent: Vec<&'static str>,
}

impl Plan {
    pub(crate) fn new(
        all: Vec<Package>,
        engines: &[&'static Engine],
        servers: ServersOf,
        is_long: bool,
    ) -> Self {
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
        Self { packages: all.into_iter().filter_map(wanted).collect(), whole, servers, is_long, absent }
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
        self.pass(What::Computing, 1, self.side_by_side("--test-threads=2"))
    }

    /// Returns the steps, one after the other. The passes of a step run side by side: those of the last one wait for most of their time, and use
    /// other servers. Not in the long run, in which the nodes of Cassandra answer a whole conformance suite while their clocks step.
    pub(crate) fn steps(&self) -> Vec<Vec<Pass>> {
        if self.is_long {
            return self.passes().into_iter().map(|pass| vec![pass]).collect();
        }
        let breaks = |pass: &Pass| matches!(pass.what, What::OwnServers | What::Trouble);
        let (last, first): (Vec<_>, Vec<_>) = self.passes().into_iter().partition(breaks);
        let first = first.into_iter().map(|pass| vec![pass]);
        first.chain((!last.is_empty()).then_some(last)).collect()
    }

    fn passes(&self) -> Vec<Pass> {
        // Without `--include-ignored`, which would run examples that are marked as not to be run.
        let docs = Pass {
            what: What::Docs,
            programs: Programs::OfCargo(self.selection(&["--doc"])),
            libtest: vec![],
        };
        let mut alone = vec!["--test-threads=1"];
        // We do not break servers that are not ours; these tests are then counted as skipped.
        if self.servers == ServersOf::Xtask {
            alone.extend(self.ignored());
        }
        let passes = [
            // Most of them wait for half of their time.
            self.pass(What::Tests, 2, self.side_by_side("--test-threads=4")),
            Some(docs),
            self.conformance(true),
            self.conformance(false),
            self.pass(What::OwnServers, 1, self.side_by_side("--test-threads=4")),
            self.pass(What::Trouble, 1, alone),
        ];
        passes.into_iter().flatten().collect()
    }

    /// Returns the pass of the suites that run alone, or of the others, which wait for most of their time: two side by side. Beside one that
    /// takes all cores, requests were not answered in time.
    fn conformance(&self, alone: bool) -> Option<Pass> {
        let runs_alone = |target: &Target| {
            let engine = ENGINES.iter().find(|engine| engine.packages.contains(&&*target.package));
            engine.is_some_and(|engine| engine.suite_runs_alone)
        };
        let is_meant = |target: &Target| runs_alone(target) == alone;
        let at_once = if alone { 1 } else { 2 };
        self.pass_of(What::Conformance, is_meant, at_once, self.side_by_side("--test-threads=12"))
    }

    /// Returns the pass of all tests of this kind; nothing if there are none.
    fn pass(&self, what: What, at_once: usize, libtest: Vec<&'static str>) -> Option<Pass> {
        self.pass_of(what, |_| true, at_once, libtest)
    }

    fn pass_of(
        &self,
        what: What,
        is_meant: impl Fn(&Target) -> bool,
        at_once: usize,
        libtest: Vec<&'static str>,
    ) -> Option<Pass> {
        let is_of_pass = |target: &Target| What::of(&target.name) == what && is_meant(target);
        let targets: Vec<_> = self.targets().filter(is_of_pass).collect();
        if targets.is_empty() {
            return None;
        }
        Some(Pass { what, programs: Programs::These { targets, at_once }, libtest })
    }

    /// Returns all targets: of each crate its unit tests, and its files in the order of their names.
    pub(crate) fn targets(&self) -> impl Iterator<Item = Target> {
        let is_possible = |name: &&String| !self.absent.iter().any(|engine| is_beside(name, engine));
        self.packages.iter().flat_map(move |package| {
            let mut names: Vec<_> = package.tests.iter().filter(is_possible).map(String::as_str).collect();
            names.sort_unstable();
            let names = [Target::UNIT_TESTS].into_iter().chain(names);
            names.map(|name| Target::of(&package.name, name)).collect::<Vec<_>>()
        })
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

/// Returns whether tests of this file break servers that other tests use. The file name is all that `cargo metadata` knows of a test.
fn is_trouble(name: &str) -> bool {
    name.starts_with("trouble")
}

/// Returns whether tests of this file hold something to the servers of this engine.
fn is_beside(name: &str, engine: &str) -> bool {
    name.strip_prefix("real_").is_some_and(|beside| beside == engine)
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
        Plan::new(all, engines, servers, false)
    }

    /// Returns what the first pass of this kind runs, as words.
    fn words(plan: &Plan, what: What) -> String {
        let pass = plan.passes().into_iter().find(|pass| pass.what == what).expect("such a pass");
        words_of(pass)
    }

    fn words_of(pass: Pass) -> String {
        match pass.programs {
            Programs::OfCargo(arguments) => arguments.join(" "),
            Programs::These { targets, .. } => {
                let words = |target: &Target| format!("{} {}", target.package, target.name);
                targets.iter().map(words).collect::<Vec<_>>().join(", ")
            }
        }
    }

    #[test]
    fn tests_that_break_servers_run_last() {
        let whole = plan(&[], ServersOf::Xtask);
        let steps = whole.steps();
        assert_eq!((steps.len(), steps.last().map(Vec::len)), (5, Some(2)), "the last two side by side");
        let steps = Plan { is_long: true, ..plan(&[], ServersOf::Xtask) }.steps();
        assert_eq!((steps.len(), steps.last().map(Vec::len)), (6, Some(1)), "not in the long run");
        let passes = whole.passes();
        assert_eq!(
            passes.iter().map(|pass| pass.what).collect::<Vec<_>>(),
            [What::Tests, What::Docs, What::Conformance, What::Conformance, What::OwnServers, What::Trouble]
        );
        assert_eq!(
            words(&whole, What::Tests),
            "xtask unit tests, ylock unit tests, ylock connect, ylock-core unit tests, ylock-core send_sync, \
             ylock-engine-cassandra unit tests, ylock-engine-redis unit tests, \
             ylock-engine-zookeeper unit tests, ylock-observability unit tests, \
             ylock-observability prometheus, ylock-simulation unit tests, ylock-simulation real_cassandra, \
             ylock-simulation real_redis, ylock-testkit unit tests, ylock-testkit memory_conformance"
        );
        assert_eq!(words(&whole, What::OwnServers), "ylock-engine-redis own_servers");
        assert_eq!(passes[4].libtest, ["--include-ignored", "--test-threads=4"]);
        assert_eq!(words(&whole, What::Trouble), "ylock-engine-cassandra trouble");
        assert_eq!(passes[5].libtest, ["--test-threads=1", "--include-ignored"]);
        assert!(matches!(passes[5].programs, Programs::These { at_once: 1, .. }));
    }

    #[test]
    fn a_suite_that_takes_all_cores_runs_alone_and_others_two_by_two() {
        let is_suite = |pass: &Pass| pass.what == What::Conformance;
        let [alone, others] = <[_; 2]>::try_from(
            plan(&[], ServersOf::Xtask).passes().into_iter().filter(is_suite).collect::<Vec<_>>(),
        )
        .expect("two passes");
        assert!(matches!(alone.programs, Programs::These { at_once: 1, .. }));
        assert!(matches!(others.programs, Programs::These { at_once: 2, .. }));
        assert_eq!(others.libtest, ["--include-ignored", "--test-threads=12"]);
        assert_eq!(words_of(alone), "ylock-engine-cassandra conformance");
        assert_eq!(words_of(others), "ylock-engine-redis conformance, ylock-engine-zookeeper conformance");
    }

    #[test]
    fn what_only_computes_runs_beside_the_others() {
        let beside = plan(&[], ServersOf::Xtask).beside().expect("the simulation");
        let targets = vec![Target::of("ylock-simulation", "seeds")];
        assert_eq!(beside.programs, Programs::These { targets, at_once: 1 });
        assert_eq!(plan(&[&redis::ENGINE], ServersOf::Xtask).beside(), None);
    }

    #[test]
    fn servers_of_the_user_are_not_broken() {
        let passes = plan(&[], ServersOf::User).passes();
        assert_eq!(passes[0].libtest, ["--include-ignored", "--test-threads=4"]);
        assert_eq!((passes[5].what, &passes[5].libtest[..]), (What::Trouble, &["--test-threads=1"][..]));
    }

    #[test]
    fn memory_alone_wants_no_driver_tests() {
        let memory = plan(&[&memory::ENGINE], ServersOf::Nobody);
        assert_eq!(
            words(&memory, What::Tests),
            "ylock unit tests, ylock connect, ylock-core unit tests, ylock-core send_sync, \
             ylock-testkit unit tests, ylock-testkit memory_conformance"
        );
        assert!(memory.passes().iter().all(|pass| !pass.libtest.contains(&"--include-ignored")));
    }

    /// The crate of the simulation is Cassandra's, but holds its servers to those of the others as well.
    #[test]
    fn nothing_is_held_to_servers_that_are_not_there() {
        let tests = words(&plan(&[&cassandra::ENGINE], ServersOf::Xtask), What::Tests);
        assert!(tests.contains("ylock-simulation real_cassandra"), "{tests}");
        assert!(!tests.contains("real_redis"), "{tests}");
    }

    #[test]
    fn prometheus_is_wanted_for_the_whole_alone() {
        assert!(plan(&[], ServersOf::User).wants_prometheus());
        assert!(!plan(&[&redis::ENGINE], ServersOf::Xtask).wants_prometheus());
    }

    #[test]
    fn an_engine_brings_its_own_crate_alone() {
        let zookeeper = plan(&[&zookeeper::ENGINE], ServersOf::Xtask);
        assert_eq!(words(&zookeeper, What::Docs), "--all-features -p ylock-engine-zookeeper --doc");
        assert_eq!(words(&zookeeper, What::Tests), "ylock-engine-zookeeper unit tests");
        assert_eq!(words(&zookeeper, What::Conformance), "ylock-engine-zookeeper conformance");
    }

    #[test]
    fn an_engine_brings_what_is_held_to_its_servers_and_nothing_else_of_that_crate() {
        assert_eq!(
            words(&plan(&[&redis::ENGINE], ServersOf::Xtask), What::Tests),
            "ylock-engine-redis unit tests, ylock-simulation unit tests, ylock-simulation real_redis"
        );
    }
}
