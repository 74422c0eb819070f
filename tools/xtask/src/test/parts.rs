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
