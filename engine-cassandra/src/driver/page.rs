//! Decodes a page of locks.

use scylla::DeserializeRow;
use scylla::response::query_result::QueryResult;
use uuid::Uuid;
use ylock_core::{Key, Result};

use super::cql::PAGE;
use super::errors;
use super::values::state_of;
use crate::algorithm::store::{Page, State};

/// One row of the answer. The rows are in the order of their positions, and those of one partition follow each other.
#[derive(DeserializeRow)]
#[allow(dead_code, reason = "all that is written together is read together; see `cql::keys`")]
pub(super) struct Listed<'frame> {
    lock_group: &'frame str,
    lock_name: &'frame str,
    acquisition: Option<Uuid>,
    mode: Option<&'frame str>,
    state: Option<&'frame str>,
    ticket: Option<i64>,
    owner: Option<Uuid>,
    client: Option<&'frame str>,
    since: Option<i64>,
    lease_millis: Option<i64>,
    heartbeat: Option<i64>,
    next_acquisition: Option<Uuid>,
    next_owner: Option<Uuid>,
    next_mode: Option<&'frame str>,
    next_ticket: Option<i64>,
    hint_address: Option<&'frame str>,
    hint_key: Option<Uuid>,
    position: i64,
}

/// Of which lock a row is, and how its client takes part.
#[derive(Clone, Copy)]
struct Participant<'frame> {
    lock_group: &'frame str,
    lock_name: &'frame str,
    state: Option<&'frame str>,
    position: i64,
}

impl<'frame> From<Listed<'frame>> for Participant<'frame> {
    fn from(Listed { lock_group, lock_name, state, position, .. }: Listed<'frame>) -> Self {
        Self { lock_group, lock_name, state, position }
    }
}

/// Decodes a page of locks.
pub(super) fn page(answer: QueryResult) -> Result<Page> {
    let answer = answer.into_rows_result().map_err(errors::answer)?;
    let rows = answer.rows::<Listed<'_>>().map_err(errors::answer)?.map(|row| row.map(Participant::from));
    let rows: Vec<_> = rows.collect::<std::result::Result<_, _>>().map_err(errors::answer)?;
    Ok(page_of(&rows))
}

/// Returns the page that has these rows.
///
/// One that is full may have ended in the middle of a partition. The next page begins with that partition, so nothing is said of it yet; and if
/// two partitions are at one position, which happens in one of thirty million tables with a million locks, with both. If the partition is all that
/// there is on the page, the next one goes on behind it, and it is named, whatever was seen.
fn page_of(rows: &[Participant<'_>]) -> Page {
    let last = rows.last().filter(|_| rows.len() >= PAGE).map(|row| row.position);
    let Some(last) = last else { return Page { keys: taken(rows), next: None } };
    match rows.partition_point(|row| row.position < last) {
        0 => Page { keys: keys(rows.iter()), next: Some(last) },
        whole => Page { keys: taken(&rows[..whole]), next: Some(last.saturating_sub(1)) },
    }
}

/// Returns the locks in which a client takes part, as far as its word can be understood: a look at the lock will say what is wrong with it.
fn taken(rows: &[Participant<'_>]) -> Vec<Key> {
    let takes_part =
        |row: &&Participant<'_>| row.state.is_some_and(|word| state_of(word) != Some(State::Idle));
    keys(rows.iter().filter(takes_part))
}

/// Returns the locks, each once. Where the global time is kept there is none.
fn keys<'a>(rows: impl Iterator<Item = &'a Participant<'a>>) -> Vec<Key> {
    let mut keys: Vec<Key> = rows.filter_map(|row| Key::new(row.lock_group, row.lock_name).ok()).collect();
    keys.dedup();
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["a", "b", "c", "d"];

    /// The rows of partitions with these positions, and so many rows each, all of which say this.
    fn rows(partitions: &[(i64, usize)], state: Option<&'static str>) -> Vec<Participant<'static>> {
        let rows = partitions.iter().zip(NAMES).flat_map(|(&(position, count), lock_name)| {
            std::iter::repeat_n(Participant { lock_group: "g", lock_name, state, position }, count)
        });
        rows.collect()
    }

    fn names(page: &Page) -> Vec<&str> {
        page.keys.iter().map(Key::name).collect()
    }

    #[test]
    fn a_page_that_is_not_full_is_the_last_one() {
        let page = page_of(&rows(&[(-7, 2), (3, 1)], Some("held")));
        assert_eq!((names(&page), page.next), (vec!["a", "b"], None));
        assert_eq!(page_of(&[]), Page::default());
    }

    #[test]
    fn the_next_page_begins_with_what_a_full_one_may_have_cut() {
        let page = page_of(&rows(&[(-7, 1), (3, PAGE - 2), (9, 1)], Some("waiting")));
        assert_eq!((names(&page), page.next), (vec!["a", "b"], Some(8)));
        // With both, if two are at one position.
        let page = page_of(&rows(&[(-7, PAGE - 2), (3, 1), (3, 1)], Some("waiting")));
        assert_eq!((names(&page), page.next), (vec!["a"], Some(2)));
    }

    #[test]
    fn a_partition_that_is_larger_than_a_page_is_named_and_passed() {
        let page = page_of(&rows(&[(i64::MAX, PAGE)], Some("idle")));
        assert_eq!((names(&page), page.next), (vec!["a"], Some(i64::MAX)));
    }

    #[test]
    fn locks_in_which_no_client_takes_part_are_not_named_and_odd_words_are() {
        for (state, expected) in [(None, 0), (Some("idle"), 0), (Some("claimed"), 1), (Some("odd"), 1)] {
            assert_eq!(page_of(&rows(&[(5, 3)], state)).keys.len(), expected, "{state:?}");
        }
        let time = Participant { lock_group: "", lock_name: "global time", state: None, position: 0 };
        assert_eq!(page_of(&[time; PAGE]).keys, []);
    }
}
