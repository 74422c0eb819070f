//! Which files decide, and which tests are to notice a mistake in them.

/// The files of one crate and their tests.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) name: &'static str,
    pub(super) folder: &'static str,
    files: &'static [&'static str],
    /// The crates whose tests run beside those of the crate itself.
    packages: &'static [&'static str],
    /// The tests beside unit tests and seeds.
    tests: &'static [&'static str],
    /// What Cargo is told beside the seeds: tests that take too long for every mutant.
    slow: &'static [&'static str],
    /// The subjects of the simulation. None: the engine is not in it.
    pub(super) subjects: &'static str,
}

/// The tests that a mutant meets, one stage after the other: what the first has noticed is not built again for the second, whose crates
/// are more.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    /// The tests of the crate itself, and the plan's.
    Own,
    /// The seeds of the simulation, and tests that take as long.
    Seeds,
}

impl Stage {
    /// Returns for how many seconds a test may run at least before it is taken for one that does not end.
    pub(super) fn shortest_timeout(self) -> u32 {
        match self {
            // They take less than one.
            Self::Own => 10,
            Self::Seeds => 60,
        }
    }
}

impl Plan {
    /// Returns what Cargo is told to build and run in `stage`.
    pub(super) fn arguments(&self, stage: Stage) -> Vec<String> {
        let (packages, tests): (&[_], &[_]) = match stage {
            Stage::Own => (self.packages, self.tests),
            Stage::Seeds if self.subjects.is_empty() => (&[], &["conformance"]),
            Stage::Seeds => (&["ylock-simulation"], &["mutants"]),
        };
        let packages = packages.iter().map(|package| format!("--package={package}"));
        let tests = tests.iter().map(|test| format!("--test={test}"));
        let more = match stage {
            Stage::Own => ["--lib"].as_slice(),
            Stage::Seeds => self.slow,
        };
        packages.chain(more.iter().map(|&argument| argument.to_owned())).chain(tests).collect()
    }

    pub(super) fn files(&self) -> impl Iterator<Item = String> {
        self.files.iter().map(|file| format!("{}{file}", self.folder))
    }
}

pub(super) const PLANS: [Plan; 6] = [
    Plan {
        name: "core",
        folder: "ylock-core/",
        files: &[
            "src/keeper/acquire.rs",
            "src/keeper/admission.rs",
            "src/keeper/answers.rs",
            "src/keeper/at_once.rs",
            "src/keeper/entry.rs",
            "src/keeper/granted.rs",
            "src/keeper/release.rs",
            "src/keeper/renewal.rs",
            "src/keeper/validity.rs",
            "src/keeper/validity/until.rs",
            "src/queue/joining.rs",
            "src/queue/mod.rs",
            "src/queue/places.rs",
            "src/records.rs",
            "src/lease.rs",
        ],
        packages: &["ylock-testkit"],
        tests: &["keeper"],
        slow: &["--package=ylock-testkit", "--features=ylock-testkit/suite", "--test=memory_conformance"],
        subjects: "keeper-over-memory,keeper-at-once",
    },
    Plan {
        name: "cassandra",
        folder: "engine-cassandra/",
        files: &[
            "src/algorithm/acquire/queue.rs",
            "src/algorithm/judge.rs",
            "src/algorithm/line.rs",
            "src/algorithm/mute.rs",
            "src/algorithm/notebook.rs",
            "src/algorithm/pace.rs",
            "src/algorithm/release.rs",
            "src/algorithm/renew.rs",
            "src/algorithm/own_row/burying.rs",
            "src/algorithm/own_row/last_write.rs",
            "src/algorithm/own_row/mod.rs",
            "src/algorithm/own_row/release.rs",
            "src/algorithm/told.rs",
            "src/own_rows.rs",
        ],
        packages: &[],
        tests: &["holes"],
        slow: &[],
        subjects: "engine,keeper-over-cassandra",
    },
    Plan {
        name: "file",
        folder: "engine-file/",
        files: &[
            "src/acquire.rs",
            "src/client.rs",
            "src/driver/clients.rs",
            "src/driver/folder.rs",
            "src/driver/key_file.rs",
            "src/driver/layout.rs",
            "src/driver/open.rs",
            "src/driver/pipe.rs",
            "src/driver/slots.rs",
            "src/idle.rs",
            "src/let_in.rs",
            "src/message.rs",
            "src/release.rs",
            "src/renew.rs",
            "src/state.rs",
            "src/sweep.rs",
            "src/waiters.rs",
        ],
        packages: &[],
        tests: &["announced", "left", "let_in", "model", "processes", "refused", "root", "runs"],
        slow: &[],
        // It is not in the simulation: its conformance suite is the second stage.
        subjects: "",
    },
    Plan {
        name: "etcd",
        folder: "engine-etcd/",
        files: &[
            "src/algorithm/acquire.rs",
            "src/algorithm/announce.rs",
            "src/algorithm/claim.rs",
            "src/algorithm/claims.rs",
            "src/algorithm/floor.rs",
            "src/algorithm/judge.rs",
            "src/algorithm/look.rs",
            "src/algorithm/release.rs",
            "src/algorithm/renew.rs",
            "src/algorithm/session.rs",
        ],
        packages: &[],
        tests: &["algorithm"],
        slow: &[],
        subjects: "etcd,keeper-over-etcd",
    },
    Plan {
        name: "redis",
        folder: "engine-redis/",
        files: &["src/acquire.rs", "src/release.rs", "src/renew.rs"],
        packages: &[],
        tests: &["requests"],
        slow: &[],
        subjects: "redis,keeper-over-redis",
    },
    Plan {
        name: "zookeeper",
        folder: "engine-zookeeper/",
        files: &[
            "src/algorithm/acquire.rs",
            "src/algorithm/announce.rs",
            "src/algorithm/claim.rs",
            "src/algorithm/claims/inner.rs",
            "src/algorithm/claims/mod.rs",
            "src/algorithm/claims/removal.rs",
            "src/algorithm/create.rs",
            "src/algorithm/heartbeat.rs",
            "src/algorithm/judge.rs",
            "src/algorithm/release.rs",
            "src/algorithm/renew.rs",
            "src/algorithm/signs.rs",
        ],
        packages: &[],
        tests: &["algorithm"],
        slow: &[],
        subjects: "zookeeper,keeper-over-zookeeper",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo;

    #[test]
    fn every_file_is_there() {
        for file in PLANS.iter().flat_map(Plan::files) {
            assert!(cargo::workspace().join(&file).is_file(), "{file}");
        }
    }
}
