//! Plans which tests run, in which order, with which flags, and what may run side by side.

use std::{cmp::Reverse, fmt};

use super::{chosen::Chosen, needs, output::Target, times};
use crate::{ENGINES, cargo::Package, engine::Engine};

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

/// A program and how it is run.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Job {
    pub(crate) what: What,
    pub(crate) program: Of,
    /// The arguments of the program.
    pub(crate) libtest: Vec<&'static str>,
    /// How much of the [room](ROOM) it takes.
    pub(crate) weight: usize,
    /// The names of the engines whose servers it shares with other jobs.
    pub(crate) shares: Vec<&'static str>,
}

/// Programs run side by side as long as their weights are not more than this: four that wait for most of their time, or two that do not, keep two cores
/// busy.
pub(crate) const ROOM: usize = 4;
const HALF: usize = ROOM / 2;
const QUARTER: usize = ROOM / 4;

#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Of {
    /// What cargo alone can make, with these arguments of `cargo test`: the examples of the documentation.
    Cargo(Vec<String>),
    Target(Target),
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
    /// Tests that kill and pause servers that other tests use too: when no other test uses them, one after the other. They wait most of the time.
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
    chosen: Chosen,
    servers: ServersOf,
    is_long: bool,
}

impl Plan {
    pub(crate) fn new(packages: Vec<Package>, chosen: Chosen, servers: ServersOf, is_long: bool) -> Self {
        Self { packages, chosen, servers, is_long }
    }

    /// Returns the name of the crate that cargo knows by this id.
    pub(crate) fn package_named(&self, id: &str) -> Option<&str> {
        self.packages.iter().find(|package| package.id == id).map(|package| package.name.as_str())
    }

    /// Returns whether the plan contains tests that start a Prometheus.
    pub(crate) fn wants_prometheus(&self) -> bool {
        let has_tests = self.targets().iter().any(|target| target.package == "ylock-observability");
        has_tests && self.servers != ServersOf::Nobody
    }

    /// Returns the engines whose servers the tests use.
    pub(crate) fn engines(&self) -> &[&'static Engine] {
        &self.chosen.engines
    }

    pub(crate) fn targets(&self) -> &[Target] {
        &self.chosen.targets
    }

    /// Returns the arguments of one build of all programs. It is always of the workspace: alone, a crate would want its dependencies with other features,
    /// and all of them would be built again. So targets of the same name are built, too.
    pub(crate) fn build(&self) -> Vec<String> {
        let mut words = vec!["--workspace".to_owned(), "--all-features".to_owned()];
        let mut names: Vec<_> = self.targets().iter().map(|target| &*target.name).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            words.extend(match name {
                _ if self.chosen.is_whole => vec![],
                Target::UNIT_TESTS => vec!["--lib".to_owned(), "--bins".to_owned()],
                name => vec!["--test".to_owned(), name.to_owned()],
            });
        }
        if self.chosen.is_whole {
            words.extend(["--lib", "--bins", "--tests"].map(str::to_owned));
        }
        words
    }

    /// Returns what runs beside all others, one after the other.
    pub(crate) fn beside(&self) -> Vec<Job> {
        self.jobs_of(What::Computing, 0, "--test-threads=2")
    }

    /// Returns all other jobs, in the order in which they start as soon as there is room. What breaks servers comes as soon as the suite that uses them has
    /// ended, and waits beside suites that compute.
    pub(crate) fn jobs(&self) -> Vec<Job> {
        // In the long run the nodes of Cassandra answer a whole conformance suite while their clocks step.
        let trouble = if self.is_long { ROOM } else { HALF };
        let mut jobs = self.jobs_of(What::Tests, QUARTER, "--test-threads=4");
        jobs.extend(self.docs());
        let trouble = self.jobs_of(What::Trouble, trouble, "--test-threads=1");
        let suites = self.jobs_of(What::Conformance, HALF, "--test-threads=12");
        let runs_alone = |suite: &Job| {
            ENGINES.iter().any(|engine| engine.suite_runs_alone && suite.shares.contains(&engine.name))
        };
        let (mut alone, others): (Vec<_>, _) = suites.into_iter().partition(runs_alone);
        alone.iter_mut().for_each(|suite| suite.weight = ROOM);
        jobs.extend([alone, trouble, others].into_iter().flatten());
        jobs.extend(self.jobs_of(What::OwnServers, HALF, "--test-threads=4"));
        jobs
    }

    /// Returns jobs, those that take the longest first. Cases with servers mostly wait for leases, so more of them than there are cores run at
    /// the same time.
    fn jobs_of(&self, what: What, weight: usize, threads: &'static str) -> Vec<Job> {
        let is_of = |target: &&Target| What::of(&target.name) == what;
        let mut targets: Vec<_> = self.targets().iter().filter(is_of).collect();
        targets.sort_by_key(|target| Reverse(times::seconds(target, self.is_long)));
        let job = |target: &Target| {
            let mut libtest = vec![threads];
            libtest.extend(self.runs_ignored(what).then_some("--include-ignored"));
            let mut shares = Vec::new();
            if what != What::OwnServers {
                let needed = needs::of([target], &self.packages);
                shares.extend(needed.iter().map(|engine| engine.name));
            }
            Job { what, program: Of::Target(target.clone()), libtest, weight, shares }
        };
        targets.into_iter().map(job).collect()
    }

    /// Returns whether tests that need servers run. We do not break servers that are not ours; tests that would are then counted as skipped.
    fn runs_ignored(&self, what: What) -> bool {
        match self.servers {
            ServersOf::Nobody => false,
            ServersOf::User => what != What::Trouble,
            ServersOf::Xtask => true,
        }
    }

    /// Returns the job of the documentation. It runs no examples that are marked as ignored, which are not to be run.
    fn docs(&self) -> Option<Job> {
        let mut words: Vec<_> = ["--workspace", "--all-features", "--doc"].map(str::to_owned).into();
        let is_documented = |package: &&Package| self.chosen.documented.contains(&package.name);
        let (documented, others): (Vec<_>, Vec<_>) = self.packages.iter().partition(is_documented);
        if documented.is_empty() {
            return None;
        }
        // An example is named by its path. That of the crate at the root has nothing before `src`, as others have.
        let has_root = documented.iter().any(|package| package.folder.is_empty());
        let folder = |package: &&Package| format!("{}/", package.folder);
        if has_root && !self.chosen.is_whole {
            words.push("--".to_owned());
            words.extend(others.iter().flat_map(|package| ["--skip".to_owned(), folder(package)]));
        } else if !has_root {
            words.push("--".to_owned());
            words.extend(documented.iter().map(folder));
        }
        Some(Job {
            what: What::Docs,
            program: Of::Cargo(words),
            libtest: vec![],
            weight: HALF,
            shares: vec![],
        })
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

fn has_own_servers(name: &str) -> bool {
    name.starts_with("own_servers")
}

#[cfg(test)]
mod tests;
