//! The result of one point, as it is kept.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use ylock_core::environment::Moment;

use crate::critical_section::{CriticalSection, Log, Visit};
use crate::figures::{self, Quantiles, millis};
use crate::matrix::{Names, Point};

/// The play of one point, as it was written down.
#[derive(Debug)]
pub(crate) struct Played {
    /// The rounds with fresh names, or the time that counts at a hot one.
    pub(crate) rounds: Vec<Round>,
    pub(crate) requests: u64,
    pub(crate) calls: u64,
    pub(crate) log: Log,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) start: Moment,
    pub(crate) end: Moment,
}

/// The result of one point. Nothing where there is nothing to tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) point: Point,
    /// The time for which it was measured.
    pub(crate) seconds: f64,
    pub(crate) rounds: u32,
    pub(crate) grants: u64,
    /// Calls that were answered, with the lock or without.
    pub(crate) calls: u64,
    /// Contenders that got in; of several rounds, in the worst one.
    pub(crate) got_in: u32,
    pub(crate) rounds_without_grant: u32,
    pub(crate) errors: u64,
    pub(crate) last_error: Option<String>,
    /// The waits of contenders that got in; the longest also of those that still waited at the end.
    pub(crate) wait_millis: Option<Quantiles>,
    pub(crate) gap_millis: Option<Quantiles>,
    /// Over the rounds; only with fresh names.
    pub(crate) first_grant_millis: Option<Quantiles>,
    pub(crate) grants_per_second: f64,
    pub(crate) requests: u64,
    /// Only at a hot name: with fresh ones each gets in once.
    pub(crate) jain: Option<f64>,
    pub(crate) longest_run: Option<u64>,
    pub(crate) overlaps: u64,
    pub(crate) lost_increments: u64,
}

impl Record {
    pub(crate) fn of(point: Point, section: &CriticalSection, played: Played) -> Self {
        let all = figures::in_order(played.log.visits);
        let overlaps = section.overlaps().max(figures::overlaps_in_rounds(&all));
        let counts = |visit: &&Visit| played.rounds.iter().any(|round| round.has(visit.entered));
        let visits: Vec<Visit> = all.iter().filter(counts).copied().collect();
        let seconds: f64 = played.rounds.iter().map(|round| round.time().as_secs_f64()).sum();
        let rounds = played.rounds.len() as u32;
        let first = first_grants(&visits, &played.rounds);
        let is_hot = point.names == Names::Hot;
        let shares = figures::shares(&visits, point.contenders);
        let (errors, last_error) = section.errors();
        Self {
            point,
            seconds,
            rounds,
            grants: visits.len() as u64,
            calls: played.calls,
            got_in: if is_hot {
                shares.iter().filter(|&&share| share > 0).count() as u32
            } else {
                figures::fewest_in(&visits, rounds)
            },
            rounds_without_grant: rounds - first.len() as u32,
            errors,
            last_error,
            wait_millis: waits(&visits, &played.log.unfinished),
            gap_millis: Quantiles::of(figures::gaps(&visits)),
            first_grant_millis: Quantiles::of(first).filter(|_| !is_hot),
            grants_per_second: if seconds > 0.0 { visits.len() as f64 / seconds } else { 0.0 },
            requests: played.requests,
            jain: figures::jain(&shares).filter(|_| is_hot),
            longest_run: is_hot.then(|| figures::longest_run(&visits)),
            overlaps,
            lost_increments: section.lost_increments(),
        }
    }

    /// Returns the requests per grant; nothing if there were no grants.
    pub(crate) fn requests_per_grant(&self) -> Option<f64> {
        (self.grants > 0).then(|| self.requests as f64 / self.grants as f64)
    }

    pub(crate) fn requests_per_call(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.requests as f64 / self.calls as f64)
    }
}

impl Round {
    fn time(self) -> Duration {
        self.end.since(self.start)
    }

    fn has(self, moment: Moment) -> bool {
        self.start <= moment && moment <= self.end
    }
}

/// Returns the times from the start of each round to its first grant; fewer than rounds if there was none in one.
fn first_grants(visits: &[Visit], rounds: &[Round]) -> Vec<Duration> {
    let firsts = visits.chunk_by(|one, next| one.round == next.round);
    firsts
        .filter_map(|round| {
            let first = round.first()?;
            Some(first.entered.since(rounds.get(first.round as usize)?.start))
        })
        .collect()
}

fn waits(visits: &[Visit], unfinished: &[(Moment, Moment)]) -> Option<Quantiles> {
    let waits = visits.iter().map(|visit| visit.entered.since(visit.called)).collect();
    let longest = unfinished.iter().map(|(called, until)| until.since(*called)).max().unwrap_or_default();
    let of = Quantiles::of(waits)?;
    Some(Quantiles { max: of.max.max(millis(longest)), ..of })
}
