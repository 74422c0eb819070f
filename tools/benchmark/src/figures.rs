//! Computes numbers from what was written down. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use ylock_testkit::measure::Times;

use crate::critical_section::Visit;

/// Milliseconds that a half, 99 of 100 and all do not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Quantiles {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Quantiles {
    /// Returns the quantiles of these times; nothing if there are none.
    pub(crate) fn of(times: Vec<Duration>) -> Option<Self> {
        let mut times = Times::from(times);
        let is_empty = times.is_empty();
        let mut at = |part| millis(times.quantile(part));
        (!is_empty).then(|| Self { p50: at(0.5), p99: at(0.99), max: at(1.0) })
    }
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Returns Jain's index of fairness: 1 if all have the same share, 1/n if one has everything. Nothing if no contender has anything.
pub(crate) fn jain(shares: &[u64]) -> Option<f64> {
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| (share as f64).powi(2)).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// Returns how often each of so many contenders was inside.
pub(crate) fn shares(visits: &[Visit], contenders: u32) -> Vec<u64> {
    let mut shares = vec![0; contenders as usize];
    for visit in visits {
        shares[visit.contender as usize] += 1;
    }
    shares
}

/// Returns how often at most one contender came in without another one in between. The visits are in order.
pub(crate) fn longest_run(visits: &[Visit]) -> u64 {
    let runs = visits.chunk_by(|one, next| one.contender == next.contender);
    runs.map(|run| run.len() as u64).max().unwrap_or(0)
}

/// Returns the times from the end of a hold to the next entry in the same round. The visits are in order.
pub(crate) fn gaps(visits: &[Visit]) -> Vec<Duration> {
    let pairs = visits.windows(2).filter(|pair| pair[0].round == pair[1].round);
    pairs.map(|pair| pair[1].entered.since(pair[0].left)).collect()
}

/// Returns how often a contender came in before the one before it had left. The visits are in order.
pub(crate) fn overlaps_in_rounds(visits: &[Visit]) -> u64 {
    visits.windows(2).filter(|pair| pair[0].round == pair[1].round && pair[1].entered < pair[0].left).count()
        as u64
}

/// Sorts visits into the order in which their contenders came in.
pub(crate) fn in_order(mut visits: Vec<Visit>) -> Vec<Visit> {
    visits.sort_by_key(|visit| (visit.round, visit.entered, visit.left));
    visits
}

/// Returns how many different contenders came in, in the round in which the fewest did.
pub(crate) fn fewest_in(visits: &[Visit], rounds: u32) -> u32 {
    let mut each = BTreeMap::<u32, u32>::new();
    for visit in visits {
        *each.entry(visit.round).or_default() += 1;
    }
    (0..rounds).map(|round| each.get(&round).copied().unwrap_or(0)).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use ylock_core::environment::Moment;

    use super::*;

    fn visit(round: u32, contender: u32, entered: u64, left: u64) -> Visit {
        let [called, entered, left] = [0, entered, left].map(Moment::from_nanos);
        Visit { round, contender, called, entered, left }
    }

    #[test]
    fn jain_is_one_when_all_have_the_same() {
        assert_eq!(jain(&[3, 3, 3]), Some(1.0));
    }

    #[test]
    fn jain_is_one_part_when_one_has_everything() {
        assert_eq!(jain(&[0, 8, 0, 0]), Some(0.25));
        assert_eq!(jain(&[0, 0]), None);
    }

    #[test]
    fn the_longest_run_is_that_of_one_contender() {
        let visits = [1, 1, 2, 2, 2, 1, 2].map(|contender| visit(0, contender, 0, 0));
        assert_eq!(longest_run(&visits), 3);
        assert_eq!(longest_run(&[]), 0);
    }

    #[test]
    fn quantiles_are_times_that_occurred() {
        let times = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(Quantiles::of(times), Some(Quantiles { p50: 51.0, p99: 99.0, max: 100.0 }));
        assert_eq!(Quantiles::of(vec![]), None);
    }

    #[test]
    fn gaps_are_within_a_round() {
        let visits = [visit(0, 1, 10, 20), visit(0, 2, 25, 30), visit(1, 1, 100, 110), visit(1, 2, 111, 120)];
        assert_eq!(gaps(&visits), [5, 1].map(Duration::from_nanos));
    }

    #[test]
    fn who_comes_in_too_early_overlaps() {
        let visits = in_order(vec![visit(0, 2, 15, 30), visit(0, 1, 10, 20)]);
        assert_eq!((visits[0].contender, overlaps_in_rounds(&visits)), (1, 1));
    }

    #[test]
    fn a_round_in_which_nobody_came_in_counts() {
        let visits = [visit(0, 1, 1, 2), visit(0, 2, 3, 4), visit(2, 1, 1, 2)];
        assert_eq!((fewest_in(&visits, 1), fewest_in(&visits, 3)), (2, 0));
    }
}
