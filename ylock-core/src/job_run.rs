//! The last run of a job, as a store keeps it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::client_name::ClientName;
use crate::token::Token;

/// The first word of the text, and its version.
const VERSION: &str = "1";

/// A run of a job that [`once_per`](crate::Locks::once_per) has begun: for which period, by which client, and whether it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobRun {
    /// When the period begins: microseconds since 1970, not negative.
    period: i64,
    /// The fencing token under which it was begun; `None` if the engine gives none.
    pub token: Option<Token>,
    /// True if the work came to its end: otherwise it is under way, or the process has died in the middle, or the work has failed.
    pub is_done: bool,
    /// When it was begun: microseconds since 1970, by the wall clock of its client.
    since: i64,
    /// The name of the client that has begun it.
    pub client: ClientName,
}

impl JobRun {
    /// The bytes at the beginning of the [text](Self::to_text) that are in the order of the runs: of two texts, that of the later run is larger in
    /// them.
    pub const ORDERED: usize = 43;

    /// Creates a run that has just been begun. Times are microseconds since 1970.
    pub fn begun(period: i64, token: Option<Token>, since: i64, client: ClientName) -> Self {
        Self { period: period.max(0), token, is_done: false, since, client }
    }

    /// Returns the same run, which is done.
    #[must_use]
    pub fn done(self) -> Self {
        Self { is_done: true, ..self }
    }

    /// Returns when the period of this run begins.
    pub fn period(&self) -> SystemTime {
        time(self.period)
    }

    /// Returns when the period of this run begins, in microseconds since 1970.
    pub fn period_micros(&self) -> i64 {
        self.period
    }

    /// Returns when the run was begun, by the wall clock of its client.
    pub fn since(&self) -> SystemTime {
        time(self.since)
    }

    /// Returns whether a store that has `stored` is to take this run in its place: that of a later period wins, within a period that under the larger
    /// token, and of one and the same run the word that it is done. A copy of a run takes its own place.
    pub fn replaces(&self, stored: &Self) -> bool {
        self.order() >= stored.order()
    }

    fn order(&self) -> (i64, i64, bool) {
        (self.period, self.token_number(), self.is_done)
    }

    fn token_number(&self) -> i64 {
        self.token.map_or(0, |token| token.get().max(0))
    }

    /// Returns the run as a text without line breaks, for a store. Its first [`ORDERED`](Self::ORDERED) bytes are in the order of the runs.
    pub fn to_text(&self) -> String {
        // "begun" is before "done", also by the first letter alone.
        let state = if self.is_done { "done" } else { "begun" };
        let (period, token, since) = (self.period, self.token_number(), self.since);
        format!("{VERSION} {period:019} {token:019} {state} {since} {}", self.client.as_str())
    }

    /// Reads what [`to_text`](Self::to_text) has written. `None` if this is not such a text.
    pub fn read(text: &str) -> Option<Self> {
        let mut words = text.splitn(6, ' ');
        let mut next = || words.next();
        if next()? != VERSION {
            return None;
        }
        let (period, token) = (number(next()?)?, number(next()?)?);
        let is_done = match next()? {
            "begun" => false,
            "done" => true,
            _ => return None,
        };
        let since = next()?.parse().ok()?;
        let token = (token > 0).then_some(Token::from_number(token));
        Some(Self { period, token, is_done, since, client: ClientName::stored(next()?) })
    }
}

/// Reads a number that was written with all of its digits, so that texts are in the order of numbers.
fn number(word: &str) -> Option<i64> {
    word.parse().ok().filter(|number| *number >= 0 && word.len() == 19)
}

fn time(micros: i64) -> SystemTime {
    let distance = Duration::from_micros(micros.unsigned_abs());
    if micros < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(period: i64, token: i64) -> JobRun {
        let token = (token > 0).then_some(Token::from_number(token));
        JobRun::begun(period, token, -5, ClientName::stored("web-3/4711 of two words"))
    }

    #[test]
    fn a_run_comes_back_from_its_text() {
        for run in [run(0, 0), run(1_764_000_000_000_000, 1_806_336_000_000_000_123), run(i64::MAX, i64::MAX)]
        {
            assert_eq!(JobRun::read(&run.to_text()), Some(run.clone()));
            assert_eq!(JobRun::read(&run.clone().done().to_text()), Some(run.done()));
        }
    }

    #[test]
    fn another_text_is_no_run() {
        let text = run(7, 8).to_text();
        for wrong in [
            text.replacen('1', "2", 1),
            text.replace("begun", "began"),
            text.replacen(" 0", " ", 1),
            text.replacen(" 0", " -", 1),
            text.split_at(47).0.to_owned(),
            String::new(),
        ] {
            assert_eq!(JobRun::read(&wrong), None, "{wrong:?}");
        }
    }

    /// Stores compare texts, and clients compare runs.
    #[test]
    fn texts_are_in_the_order_of_the_runs() {
        let in_order = [
            run(0, 0),
            run(0, 0).done(),
            run(0, 1),
            run(0, 9).done(),
            run(0, 10),
            run(9, 2),
            run(9, 3),
            run(10, 1),
            run(10, 1).done(),
            run(i64::MAX, 0),
        ];
        for (place, earlier) in in_order.iter().enumerate() {
            assert!(earlier.replaces(earlier), "a copy");
            for later in &in_order[place + 1..] {
                assert!(later.replaces(earlier) && !earlier.replaces(later), "{earlier:?}, {later:?}");
                let begin = |run: &JobRun| run.to_text()[..JobRun::ORDERED].to_owned();
                assert!(begin(later) > begin(earlier), "{earlier:?}, {later:?}");
            }
        }
        let renamed = JobRun { client: ClientName::stored("a"), since: 3, ..run(9, 2) };
        assert_eq!(renamed.to_text()[..JobRun::ORDERED], run(9, 2).to_text()[..JobRun::ORDERED]);
    }
}
