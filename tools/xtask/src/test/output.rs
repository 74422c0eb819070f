//! Reads along with what tests print.

use std::collections::BTreeMap;

use super::{said::SaidByFailed, slow};

/// The executables in `target/…/deps`, by the names of their files.
pub(crate) type Executables = BTreeMap<String, Target>;

/// What cargo makes one program of tests of.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Target {
    pub(crate) package: String,
    /// The name of the file in `tests/`, or [`UNIT_TESTS`](Self::UNIT_TESTS).
    pub(crate) name: String,
}

impl Target {
    pub(crate) const UNIT_TESTS: &str = "unit tests";

    pub(crate) fn of(package: &str, name: &str) -> Self {
        Self { package: package.to_owned(), name: name.to_owned() }
    }
}

/// The result of one test binary.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) target: Target,
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    pub(crate) ignored: u32,
    /// Set when the binary has printed its own sums. A binary that aborts or is killed does not print them.
    pub(crate) finished: bool,
    /// As the binary says.
    pub(crate) seconds: f64,
    pub(crate) names_of_failed: Vec<String>,
    pub(crate) names_of_ignored: Vec<String>,
    /// The tests that libtest warned about and that have not ended since.
    names_of_stuck: Vec<String>,
    pub(crate) said_by_failed: SaidByFailed,
    /// The test that runs: its name is printed before it runs, and the output of its children comes before its outcome.
    open: Option<String>,
    /// The cases of the suite that all engines share.
    pub(crate) conformance: Cases,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Cases {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Reader {
    executables: Executables,
    unfinished_line: Vec<u8>,
    rows: Vec<Row>,
}

impl Reader {
    pub(crate) fn new(executables: Executables) -> Self {
        Self { executables, ..Self::default() }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.unfinished_line.extend_from_slice(bytes);
        while let Some(end) = self.unfinished_line.iter().position(|&byte| byte == b'\n') {
            let line: Vec<_> = self.unfinished_line.drain(..=end).collect();
            self.line(String::from_utf8_lossy(&line).trim());
        }
    }

    pub(crate) fn rows(self) -> Vec<Row> {
        self.rows
    }

    fn line(&mut self, line: &str) {
        if let Some(target) = self.target(line) {
            self.rows.push(Row { target, ..Row::default() });
        } else if let Some(row) = self.rows.last_mut() {
            row.line(line);
        }
    }

    /// Returns the target from lines like `Running ylock  x (target/debug/deps/x-0123456789abcdef)` and `Doc-tests ylock_core`.
    fn target(&self, line: &str) -> Option<Target> {
        if let Some(name) = line.strip_prefix("Doc-tests ") {
            return Some(Target::of(&name.replace('_', "-"), "doc tests"));
        }
        let path = line.strip_prefix("Running ")?.strip_suffix(')')?.rsplit_once('(')?.1;
        let file = path.rsplit(['/', '\\']).next()?;
        let unknown = || Target::of(file, "");
        Some(self.executables.get(file).map_or_else(unknown, Clone::clone))
    }
}

impl Row {
    pub(crate) fn is_empty(&self) -> bool {
        self.finished && self.passed + self.failed + self.ignored == 0
    }

    /// Returns the names of the tests that may be the reason why the binary did not end.
    pub(crate) fn suspects(&self) -> String {
        let names = self.names_of_stuck.iter().chain(&self.open).map(String::as_str);
        names.collect::<Vec<_>>().join(", ")
    }

    fn line(&mut self, line: &str) {
        if self.said_by_failed.takes(line, &self.names_of_failed) {
            return;
        }
        if let Some(sums) = line.strip_prefix("test result: ") {
            self.finished = true;
            self.passed += sum(sums, "passed");
            self.failed += sum(sums, "failed");
            self.ignored += sum(sums, "ignored");
            self.seconds += seconds(sums);
        } else if let Some((name, outcome)) = begun(line) {
            self.open = Some(name.to_owned());
            self.test(outcome);
        } else if matches!(line, "ok" | "FAILED") {
            self.test(line);
        } else if let Some((name, _)) = line.split_once(slow::WARNING) {
            self.names_of_stuck.push(name.trim_start_matches("test ").to_owned());
        }
    }

    /// Notes the outcome of the open test, unless the words are the output of a child.
    fn test(&mut self, outcome: &str) {
        if !matches!(outcome, "ok" | "FAILED") && !outcome.starts_with("ignored") {
            return;
        }
        let Some(name) = self.open.take() else { return };
        self.names_of_stuck.retain(|stuck| *stuck != name);
        let is_case = self.target.name.contains("conformance") || name.contains("conformance::");
        let mut cases = Cases::default();
        match outcome {
            "ok" => cases.passed = 1,
            "FAILED" => {
                cases.failed = 1;
                self.names_of_failed.push(name);
            }
            _ => self.names_of_ignored.push(name),
        }
        if is_case {
            self.conformance.passed += cases.passed;
            self.conformance.failed += cases.failed;
        }
    }
}

fn begun(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("test ")?.split_once(" ... ")
}

/// Returns the number before `word` in `ok. 3 passed; 0 failed; …`.
fn sum(sums: &str, word: &str) -> u32 {
    let words: Vec<_> = sums.split([' ', ';', '.']).filter(|part| !part.is_empty()).collect();
    let found = words.windows(2).find(|pair| pair[1] == word);
    found.and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

/// Returns the number from `…; finished in 12.34s`.
fn seconds(sums: &str) -> f64 {
    let found = sums.rsplit_once("finished in ").and_then(|(_, time)| time.trim().strip_suffix('s'));
    found.and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "
     Running tests/conformance.rs (target/debug/deps/conformance-0a1b)

running 4 tests
test writer_excludes_readers ... ok
test token_grows ... words of a child
more words
FAILED
test needs_server ... ignored, needs cassandra: run `cargo xtask test`
test slow has been running for over 60 seconds
test slow ... ok

failures:

---- token_grows stdout ----
test result: ok. 1 passed, in words of the test

failures:
    token_grows

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s

   Doc-tests ylock_core
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.11s
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
     Running unittests src/lib.rs (target/debug/deps/died-0c2d)
test it_hangs has been running for over 60 seconds
test it_";

    fn read(chunk: usize) -> Vec<Row> {
        let target = Target::of("ylock-engine-cassandra", "conformance");
        let mut reader = Reader::new([("conformance-0a1b".to_owned(), target)].into());
        PRINTED.as_bytes().chunks(chunk).for_each(|bytes| reader.feed(bytes));
        reader.rows()
    }

    #[test]
    fn sums_each_binary_however_the_output_is_cut() {
        for chunk in [1, 7, 4096] {
            let rows = read(chunk);
            let sums: Vec<_> =
                rows.iter().map(|row| (row.passed, row.failed, row.ignored, row.finished)).collect();
            assert_eq!(sums, [(2, 1, 1, true), (4, 0, 0, true), (0, 0, 0, false)]);
        }
    }

    #[test]
    fn knows_the_crate_and_the_cases() {
        let rows = read(4096);
        assert_eq!(rows[0].target.package, "ylock-engine-cassandra");
        assert_eq!(rows[0].names_of_failed, ["token_grows"]);
        assert_eq!(rows[0].names_of_ignored, ["needs_server"]);
        assert_eq!(rows[0].conformance, Cases { passed: 2, failed: 1 });
        assert_eq!(rows[1].target.package, "ylock-core");
        assert_eq!(rows[2].target.package, "died-0c2d");
        assert!(rows[0].names_of_stuck.is_empty());
        assert_eq!(rows[2].suspects(), "it_hangs");
    }
}
