//! The columns of the tables.

use crate::matrix::{Call, Names};
use crate::record::Record;

/// The function that shows a record in a cell.
pub(crate) type Show = fn(&Record) -> Option<String>;
/// The heading of a column, and the function that shows it.
pub(crate) type Column = (&'static str, Show);

const SERVED: [Column; 9] = [
    ("got in", |record| Some(format!("{}", record.got_in))),
    ("wait p50, ms", |record| record.wait_millis.map(|wait| number(wait.p50))),
    ("wait p99, ms", |record| record.wait_millis.map(|wait| number(wait.p99))),
    ("longest wait, ms", |record| record.wait_millis.map(|wait| number(wait.max))),
    ("gap p50, ms", |record| record.gap_millis.map(|gap| number(gap.p50))),
    ("gap p99, ms", |record| record.gap_millis.map(|gap| number(gap.p99))),
    ("grants per second", |record| Some(number(record.grants_per_second))),
    ("requests per grant", |record| record.requests_per_grant().map(number)),
    ("grants counted", |record| Some(record.grants.to_string())),
];

const FIRST: Column =
    ("first grant p50, ms", |record| record.first_grant_millis.map(|first| number(first.p50)));

const FAIRNESS: [Column; 2] = [
    ("Jain index", |record| record.jain.map(|jain| format!("{jain:.2}"))),
    ("longest run, grants", |record| record.longest_run.map(|run| run.to_string())),
];

const TRIES: [Column; 6] = [
    ("got it per round", |record| Some(number(record.grants as f64 / f64::from(record.rounds.max(1))))),
    ("rounds", |record| Some(record.rounds.to_string())),
    ("rounds without a grant", |record| Some(record.rounds_without_grant.to_string())),
    FIRST,
    ("first grant max, ms", |record| record.first_grant_millis.map(|first| number(first.max))),
    ("requests per try", |record| record.requests_per_call().map(number)),
];

const HOT_TRIES: [Column; 5] = [
    ("grants per second", |record| Some(number(record.grants_per_second))),
    ("tries per grant", |record| {
        (record.grants > 0).then(|| number(record.calls as f64 / record.grants as f64))
    }),
    ("requests per grant", |record| record.requests_per_grant().map(number)),
    ("gap p50, ms", |record| record.gap_millis.map(|gap| number(gap.p50))),
    ("got in", |record| Some(record.got_in.to_string())),
];

/// Returns the columns of a table of such points.
pub(crate) fn columns(names: Names, call: Call) -> Vec<Column> {
    match (names, call) {
        (Names::Fresh, Call::GetLock) => std::iter::once(FIRST).chain(SERVED).collect(),
        (Names::Hot, Call::GetLock) => SERVED.into_iter().chain(FAIRNESS).collect(),
        (Names::Fresh, Call::TryGetLock) => TRIES.to_vec(),
        (Names::Hot, Call::TryGetLock) => HOT_TRIES.into_iter().chain(FAIRNESS).collect(),
    }
}

/// Formats a value with the three digits that count.
pub(crate) fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!([0.123, 12.345, 123.45].map(number), ["0.12", "12.3", "123"]);
    }
}
