//! Prints the report at the end of a test run.

use std::collections::BTreeMap;

use super::{
    machine::Machine,
    output::{Cases, Row},
    skips::{LeftOut, Skip},
};

#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
    pub(crate) left_out: LeftOut,
    /// The part of the long run that a short one has taken along.
    pub(crate) part: Option<u64>,
    /// The problems outside of any test.
    pub(crate) problems: Vec<String>,
    pub(crate) deny_skips: bool,
    /// What the machine did meanwhile, if the system says it.
    pub(crate) machine: Option<Machine>,
}

impl Report {
    pub(crate) fn succeeded(&self) -> bool {
        self.failed() == 0 && !(self.deny_skips && self.not_run().next().is_some())
    }

    pub(crate) fn print(&self) {
        println!("\n{:44} {:>7} {:>7} {:>8} {:>8}", "", "passed", "failed", "ignored", "seconds");
        for row in self.rows.iter().filter(|row| !row.is_empty()) {
            let name = format!("{}  {}", row.target.package, row.target.name);
            let seconds = row.seconds.round();
            println!("{name:44} {:>7} {:>7} {:>8} {seconds:>8}", row.passed, row.failed, row.ignored);
        }
        self.print_conformance();
        // Once more, as the end of the output is often all that there is of a run.
        for Row { target, said_by_failed, .. } in &self.rows {
            said_by_failed.print(&target.package, &target.name);
        }
        self.print_names();
        if let Some(machine) = &self.machine {
            println!("\n{machine}");
        }
        println!("\n{}", self.last_line());
    }

    fn print_conformance(&self) {
        let mut engines: BTreeMap<&str, Cases> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.conformance != Cases::default()) {
            // The memory engine lives in the core; every other crate is named after its engine.
            let engine = row.target.package.strip_prefix("ylock-engine-").unwrap_or("memory");
            let cases = engines.entry(engine).or_default();
            cases.passed += row.conformance.passed;
            cases.failed += row.conformance.failed;
        }
        for (engine, cases) in engines {
            let left_out = self.left_out.skips.iter().filter(|skip| skip.engine == engine).count();
            let later = self.left_out.later.get(engine).copied().unwrap_or_default();
            // They were called, and did nothing.
            let passed = cases.passed.saturating_sub(later);
            println!(
                "\nconformance of {engine}: {passed} passed, {left_out} of them left out; {} failed; {later} later",
                cases.failed
            );
        }
        for Skip { engine, case } in &self.left_out.skips {
            println!("  left out  {engine}  {case}");
        }
        if let Some(part) = self.part {
            let later = self.left_out.all_later();
            println!(
                "\n{later} cases are left to the long run, of which part {part} was run: again with YLOCK_PART={part}"
            );
        }
    }

    fn print_names(&self) {
        for row in &self.rows {
            let package = &row.target.package;
            row.names_of_ignored.iter().for_each(|name| println!("ignored  {package}  {name}"));
            row.names_of_failed.iter().for_each(|name| println!("FAILED  {package}  {name}"));
            if !row.finished {
                println!("FAILED  {package}  {} did not finish {}", row.target.name, row.suspects());
            }
        }
        self.problems.iter().for_each(|problem| println!("FAILED  {problem}"));
        if self.deny_skips && self.not_run().next().is_some() {
            println!("FAILED  some tests did not run, and --deny-skips or CI=true forbids that");
        }
    }

    /// Returns the last line, which scripts read.
    fn last_line(&self) -> String {
        let passed: u32 = self.rows.iter().map(|row| row.passed).sum();
        let passed = passed.saturating_sub(self.left_out.all_later());
        let ignored: u32 = self.rows.iter().map(|row| row.ignored).sum();
        format!("{passed} passed, {} failed, {ignored} skipped", self.failed())
    }

    /// Returns the number of failures. A binary that did not end counts as one failure, and so does a problem that no test explains.
    fn failed(&self) -> usize {
        let tests: usize = self.rows.iter().map(|row| row.failed as usize).sum();
        let unfinished = self.rows.iter().filter(|row| !row.finished).count();
        let seen = tests + unfinished;
        if seen == 0 { self.problems.len() } else { seen }
    }

    /// Returns the names of the ignored tests. Examples in the documentation that are marked as ignored do not count.
    fn not_run(&self) -> impl Iterator<Item = &str> {
        let tests = self.rows.iter().filter(|row| row.target.name != "doc tests");
        tests.flat_map(|row| row.names_of_ignored.iter().map(String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(passed: u32, failed: u32, ignored: &[&str]) -> Row {
        let mut row = Row::default();
        (row.passed, row.failed, row.finished) = (passed, failed, true);
        row.names_of_ignored = ignored.iter().map(|&name| name.to_owned()).collect();
        row.ignored = ignored.iter().map(|_| 1).sum();
        row
    }

    #[test]
    fn the_last_line_sums_all_binaries() {
        let report = Report { rows: vec![row(3, 0, &["a"]), row(4, 0, &[])], ..Report::default() };
        assert_eq!(report.last_line(), "7 passed, 0 failed, 1 skipped");
        assert!(report.succeeded());
    }

    #[test]
    fn what_is_left_to_the_long_run_has_not_passed() {
        let later = BTreeMap::from([("redis".to_owned(), 2)]);
        let left_out = LeftOut { later, ..LeftOut::default() };
        let report = Report { rows: vec![row(3, 0, &[])], left_out, ..Report::default() };
        assert_eq!(report.last_line(), "1 passed, 0 failed, 0 skipped");
    }

    #[test]
    fn a_test_that_did_not_run_may_be_denied() {
        let report = Report { rows: vec![row(3, 0, &["a"])], deny_skips: true, ..Report::default() };
        assert!(!report.succeeded());
    }

    #[test]
    fn a_binary_without_an_end_is_a_failure() {
        let mut report = Report { rows: vec![row(2, 0, &[])], ..Report::default() };
        report.rows[0].finished = false;
        assert_eq!(report.last_line(), "2 passed, 1 failed, 0 skipped");
        assert!(!report.succeeded());
    }

    #[test]
    fn a_failure_outside_of_tests_counts_once() {
        let problems = vec!["`cargo test` ended with 101".to_owned()];
        assert_eq!(Report { problems: problems.clone(), ..Report::default() }.failed(), 1);
        assert_eq!(Report { problems, rows: vec![row(0, 2, &[])], ..Report::default() }.failed(), 2);
    }
}
