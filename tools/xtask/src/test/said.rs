//! Keeps what tests that failed have printed: a program of tests repeats it at its end.

/// What a test has printed.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Said {
    pub(crate) name: String,
    /// Its lines, without those of backtraces.
    pub(crate) lines: Vec<String>,
}

/// What the tests of a program that failed have printed.
#[derive(Debug, Default)]
pub(crate) struct SaidByFailed {
    said: Vec<Said>,
    /// True while the program repeats it.
    is_repeating: bool,
}

impl SaidByFailed {
    /// Takes the line if the program repeats what a test that failed has printed: from a line with the name of such a test on, until `failures:`,
    /// after which their names follow. Lines of a test may look like lines of the program.
    pub(super) fn takes(&mut self, line: &str, failed: &[String]) -> bool {
        let named = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
        if let Some(name) = named.filter(|&name| failed.iter().any(|failed| failed == name)) {
            self.is_repeating = true;
            self.said.push(Said { name: name.to_owned(), lines: Vec::new() });
        } else if line == "failures:" {
            self.is_repeating = false;
        } else if self.is_repeating
            && !line.is_empty()
            && !is_of_backtrace(line)
            && let Some(said) = self.said.last_mut()
        {
            said.lines.push(line.to_owned());
        }
        self.is_repeating
    }

    /// Prints the last lines of each test, which say why it failed.
    pub(super) fn print(&self, package: &str, target: &str) {
        for Said { name, lines } in &self.said {
            println!("\n{package}  {target}  {name}:");
            let first = lines.len().saturating_sub(LAST_LINES);
            lines[first..].iter().for_each(|line| println!("  {line}"));
        }
    }
}

const LAST_LINES: usize = 12;

/// Returns whether this is a line like `3: tokio::runtime::park` or `at src/lib.rs:7:5`.
fn is_of_backtrace(line: &str) -> bool {
    let is_number = |(number, _): (&str, &str)| number.bytes().all(|byte| byte.is_ascii_digit());
    line.starts_with("at ") || line == "stack backtrace:" || line.split_once(": ").is_some_and(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_test_has_said_ends_where_the_names_begin() {
        let printed = "---- one stdout ----
test result: ok. 1 passed; of a child
failures:
---- one stdout ----
thread 'one' panicked at src/lib.rs:7:5:
test result: its words
stack backtrace:
0: core::panicking::panic_fmt
at /rustc/library/core/src/panicking.rs:75:14
---- two stdout ----
why
failures:
one";
        let (mut said, failed) = (SaidByFailed::default(), ["one", "two"].map(str::to_owned));
        // The first lines come before the test has failed.
        let taken = |(number, line)| said.takes(line, if number < 2 { &[] } else { &failed });
        let taken: Vec<_> = printed.lines().enumerate().map(taken).collect();
        assert_eq!(taken.iter().position(|&taken| taken), Some(3));
        assert_eq!(taken.iter().rposition(|&taken| taken), Some(10));
        let lines = ["thread 'one' panicked at src/lib.rs:7:5:", "test result: its words"];
        let one = Said { name: "one".to_owned(), lines: lines.map(str::to_owned).to_vec() };
        assert_eq!(said.said, [one, Said { name: "two".to_owned(), lines: vec!["why".to_owned()] }]);
    }
}
