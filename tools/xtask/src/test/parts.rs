//! Divides the targets into parts that take about the same time.

use std::{cmp::Reverse, str::FromStr};

use anyhow::{Context, Result, ensure};

use super::{output::Target, times};

/// One of several parts: `2/3`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Part {
    number: usize,
    of: usize,
}

impl Part {
    /// Returns whether what is not divided belongs to this part.
    pub(crate) fn is_first(self) -> bool {
        self.number == 1
    }
}

impl FromStr for Part {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (number, of) = text.split_once('/').context("not like `2/3`")?;
        let part = Self { number: number.parse()?, of: of.parse()? };
        ensure!((1..=part.of).contains(&part.number), "there is no such part");
        Ok(part)
    }
}

/// Returns the targets of a part, in their order. Each target, those that take the longest first, goes to the part that has the least by then.
pub(crate) fn targets_of(part: Part, all: &[Target], is_long: bool) -> Vec<Target> {
    let seconds = |target: &Target| times::seconds(target, is_long);
    let mut sorted: Vec<_> = all.iter().collect();
    sorted.sort_by_key(|target| (Reverse(seconds(target)), *target));
    let mut parts = vec![(0, Vec::new()); part.of];
    for target in sorted {
        let (sum, targets) = parts.iter_mut().min_by_key(|(sum, _)| *sum).expect("there is a part");
        *sum += seconds(target);
        targets.push(target);
    }
    let (_, mine) = &parts[part.number - 1];
    all.iter().filter(|target| mine.contains(target)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(part: &str) -> Vec<String> {
        let all =
            [("ylock", "book"), ("ylock-engine-cassandra", "trouble"), ("ylock-engine-postgres", "model")];
        let all = all.map(|(package, name)| Target::of(package, name));
        let targets = targets_of(part.parse().unwrap(), &all, true);
        targets.into_iter().map(|target| target.name).collect()
    }

    #[test]
    fn parts_are_the_whole_together_and_take_about_the_same_time() {
        assert_eq!(targets("1/1"), ["book", "trouble", "model"]);
        assert_eq!(
            (targets("1/2"), targets("2/2")),
            (vec!["model".into()], vec!["book".into(), "trouble".into()])
        );
    }

    #[test]
    fn a_part_that_is_not_there_is_an_error() {
        for text in ["", "2", "0/2", "3/2", "1/0", "a/2"] {
            assert!(text.parse::<Part>().is_err(), "{text}");
        }
    }
}
