//! How much a test does: what takes half a minute in the short run takes many in the long one.

use std::env;
use std::ops::Range;
use std::sync::OnceLock;

/// Set by `cargo xtask test --long`.
const LONG: &str = "YLOCK_LONG";
/// Set by `cargo xtask test` without that: a number that chooses which part of the long run the short one takes along.
const PART: &str = "YLOCK_PART";

/// Returns `long` under `cargo xtask test --long`, otherwise `short`.
pub fn short_or_long<T>(short: T, long: T) -> T {
    if env::var_os(LONG).is_some() { long } else { short }
}

/// Returns which of `all` seeds this run plays: all of them if it is long, otherwise as many as `short` says, from a place that differs from run to
/// run. So what short runs leave out is played by others of them, one after the other. A test that fails shows [`part_again`].
pub fn part_of(all: Range<u64>, short: u64) -> Range<u64> {
    short_or_long(part(all.clone(), short, number()), all)
}

/// Returns what repeats the parts of this run, as one writes it before a command.
pub fn part_again() -> String {
    short_or_long(format!("{PART}={}", number()), format!("{LONG}=1"))
}

/// Returns the number of the parts of this run.
fn number() -> u64 {
    static DRAWN: OnceLock<u64> = OnceLock::new();
    named_part().unwrap_or_else(|| *DRAWN.get_or_init(|| rand::random_range(0..1_000_000)))
}

/// Returns the number of the part that this run was told to take along: nothing in the long run, and in one that `cargo xtask test` has not begun.
///
/// # Panics
/// If what the variable says is no number.
pub(crate) fn named_part() -> Option<u64> {
    if env::var_os(LONG).is_some() {
        return None;
    }
    let given = env::var(PART).ok()?;
    Some(given.parse().unwrap_or_else(|_| panic!("{PART} is a number, not {given:?}")))
}

/// Returns the part of this number. The last one is as long as the others, and has some seeds of the one before it.
fn part(all: Range<u64>, short: u64, number: u64) -> Range<u64> {
    let count = all.end - all.start;
    let short = short.clamp(1, count);
    let first = (number % count.div_ceil(short) * short).min(count - short);
    all.start + first..all.start + first + short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_follow_each_other_leave_no_seed_out() {
        for (all, short, parts) in [(0..10, 3, 4), (100..110, 5, 2), (7..8, 20, 1)] {
            let played: Vec<_> = (0..parts).map(|number| part(all.clone(), short, number)).collect();
            let length = short.min(all.end - all.start);
            assert!(played.iter().all(|part| part.end - part.start == length), "{played:?}");
            assert!(all.clone().all(|seed| played.iter().any(|part| part.contains(&seed))), "{played:?}");
            assert_eq!(part(all.clone(), short, parts), played[0], "it begins anew");
        }
    }
}
