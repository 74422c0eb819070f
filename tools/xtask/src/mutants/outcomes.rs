//! What became of each mutant, as `cargo-mutants` reports it.

use std::{fmt, path::Path};

use anyhow::{Context, Result};
use serde_json::Value;

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Killed,
    /// A test did not end: it was noticed, too.
    TimedOut,
    Survived,
    /// It does not compile.
    Unviable,
}

/// The outcomes of a run.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    all: Vec<(String, Outcome)>,
    seconds: f64,
}

impl Outcomes {
    pub(super) fn read(file: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("no outcomes in {}", file.display()))?;
        Self::parse(&serde_json::from_str(&text)?).context("outcomes of another form")
    }

    fn parse(report: &Value) -> Option<Self> {
        let mut outcomes = Self::default();
        for one in report["outcomes"].as_array()? {
            let phases = one["phase_results"].as_array()?;
            outcomes.seconds += phases.iter().filter_map(|phase| phase["duration"].as_f64()).sum::<f64>();
            let Some(name) = one["scenario"]["Mutant"]["name"].as_str() else { continue };
            let outcome = match one["summary"].as_str()? {
                "CaughtMutant" => Outcome::Killed,
                "Timeout" => Outcome::TimedOut,
                "MissedMutant" => Outcome::Survived,
                "Unviable" => Outcome::Unviable,
                _ => return None,
            };
            outcomes.all.push((name.to_owned(), outcome));
        }
        Some(outcomes)
    }

    /// Adds those of a later run, which counts where both have tried a mutant.
    pub(super) fn add(&mut self, other: Self) {
        self.all.retain(|(name, _)| !other.all.iter().any(|(again, _)| again == name));
        self.all.extend(other.all);
        self.seconds += other.seconds;
    }

    pub(super) fn of(&self, outcome: Outcome) -> impl Iterator<Item = &str> {
        self.all.iter().filter(move |(_, is)| *is == outcome).map(|(name, _)| name.as_str())
    }
}

/// Returns the name of a mutant without line and column, which change with everything above.
pub(super) fn without_line(name: &str) -> String {
    let (place, what) = name.split_once(": ").unwrap_or((name, ""));
    let file = place.split(':').next().unwrap_or(place);
    format!("{file}: {what}")
}

impl fmt::Display for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |outcome| self.of(outcome).count();
        write!(
            f,
            "{} mutants: {} killed, {} timed out, {} survived, {} do not compile; {:.1} hours",
            self.all.len(),
            count(Outcome::Killed),
            count(Outcome::TimedOut),
            count(Outcome::Survived),
            count(Outcome::Unviable),
            self.seconds / 3_600.0
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn outcomes_are_read() {
        let report = json!({ "outcomes": [
            { "scenario": "Baseline", "summary": "Success", "phase_results": [{ "duration": 3600.0 }] },
            { "scenario": { "Mutant": { "name": "a.rs:1:2: replace < with <=" } }, "summary": "MissedMutant",
              "phase_results": [{ "duration": 1800.0 }, { "duration": 1800.0 }] },
            { "scenario": { "Mutant": { "name": "a.rs:3:4: replace f -> bool with true" } }, "summary": "Timeout",
              "phase_results": [] },
        ] });
        let outcomes = Outcomes::parse(&report).unwrap();
        let shown = "2 mutants: 0 killed, 1 timed out, 1 survived, 0 do not compile; 2.0 hours";
        assert_eq!(outcomes.to_string(), shown);
        let survivors: Vec<_> = outcomes.of(Outcome::Survived).map(without_line).collect();
        assert_eq!(survivors, ["a.rs: replace < with <="]);
    }

    #[test]
    fn the_later_run_counts() {
        let of = |outcome| Outcomes { all: vec![("a.rs: one".to_owned(), outcome)], seconds: 1.0 };
        let mut outcomes = of(Outcome::Survived);
        outcomes.add(of(Outcome::Killed));
        assert_eq!((outcomes.of(Outcome::Survived).count(), outcomes.of(Outcome::Killed).count()), (0, 1));
    }
}
