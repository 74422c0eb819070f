//! What the screen shows: the last look, and what is selected, filtered and asked. It knows neither the store nor the terminal.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use ylock::engine::AcquisitionId;

use super::row::{Row, sort};
use crate::name::Named;

/// What one look at the store has shown.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) rows: Vec<Row>,
    /// Whether the store has more locks than were read.
    pub(super) has_more: bool,
    pub(super) at: SystemTime,
    pub(super) took: Duration,
    /// The lock that is shown by itself, where it is not among the rows.
    pub(super) single: Option<Row>,
}

/// A question before locks are taken away.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) named: Named,
    /// The holders that the user was asked about.
    pub(super) holders: Vec<AcquisitionId>,
    pub(super) text: String,
}

/// The holders and waiters of one lock.
#[derive(Debug)]
pub(super) struct Details {
    pub(super) named: Named,
    pub(super) lines: Vec<String>,
    /// The first line that is shown.
    pub(super) first: usize,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) store: String,
    pub(super) look: Option<Look>,
    /// Why the store is away.
    pub(super) away: Option<String>,
    /// What the last revocation has done.
    pub(super) note: Option<String>,
    pub(super) filter: String,
    pub(super) is_typing: bool,
    pub(super) details: Option<Details>,
    pub(super) question: Option<Question>,
    /// The selected lock stays selected when others move.
    selected: Option<Named>,
    /// Where it stands among the rows that are shown, or stood before it went.
    pub(super) place: usize,
    /// The first row that is shown.
    first: usize,
    /// The number of lines of the table, as it was drawn last.
    pub(super) page: usize,
}

impl State {
    pub(super) fn new(store: String) -> Self {
        Self { store, ..Self::default() }
    }

    /// Takes over a look.
    pub(super) fn looked(&mut self, mut look: Look) {
        sort(&mut look.rows);
        self.away = None;
        if let Some(details) = &mut self.details {
            let mut rows = look.rows.iter().chain(&look.single);
            if let Some(row) = rows.find(|row| row.named == details.named) {
                details.lines = row.lines();
                // A queue that has become short is not scrolled out of sight.
                details.first = details.first.min(details.lines.len().saturating_sub(1));
            }
        }
        self.look = Some(look);
        self.follow();
    }

    /// Returns the rows that the filter lets through.
    pub(super) fn rows(&self) -> Vec<&Row> {
        let filter = self.filter.to_lowercase();
        let rows = self.look.iter().flat_map(|look| &look.rows);
        rows.filter(|row| row.matches(&filter)).collect()
    }

    /// Returns the selected row.
    pub(super) fn row(&self) -> Option<&Row> {
        self.rows().get(self.place).copied()
    }

    /// Selects the row that is so many lines further down.
    pub(super) fn move_by(&mut self, lines: isize) {
        self.place = self.place.saturating_add_signed(lines).min(self.rows().len().saturating_sub(1));
        self.selected = self.row().map(|row| row.named.clone());
    }

    /// Finds the selected lock again; if it has gone, the lock that stands in its place is selected.
    pub(super) fn follow(&mut self) {
        let rows = self.rows();
        let place = self.selected.as_ref().and_then(|named| rows.iter().position(|row| row.named == *named));
        self.place = place.unwrap_or(self.place).min(rows.len().saturating_sub(1));
        self.selected = self.row().map(|row| row.named.clone());
    }

    /// Returns which rows are shown in so many lines: the selected one is among them.
    pub(super) fn shown(&mut self, lines: usize) -> Range<usize> {
        self.page = lines.max(1);
        let count = self.rows().len();
        self.first = self.first.clamp((self.place + 1).saturating_sub(self.page), self.place);
        // No empty lines at the end while there are rows above.
        self.first = self.first.min(count.saturating_sub(self.page));
        self.first..count.min(self.first + self.page)
    }

    /// Shows the holders and waiters of the selected lock.
    pub(super) fn open(&mut self) {
        let details =
            self.row().map(|row| Details { named: row.named.clone(), lines: row.lines(), first: 0 });
        self.details = details;
    }

    /// Asks whether the lock is to be taken away: the one that is shown by itself, or the selected one.
    pub(super) fn ask(&mut self) {
        let shown = self.details.as_ref().map(|details| &details.named);
        let rows = self.look.iter().flat_map(|look| look.rows.iter().chain(&look.single));
        let row = match shown {
            Some(named) => rows.into_iter().find(|row| row.named == *named),
            None => self.row(),
        };
        let Some(row) = row else { return };
        if row.seen.contenders.holders.is_empty() {
            self.note = Some(format!("{} has no holder", row.lock));
            return;
        }
        let text = format!("(y/n) Revoke {} from {}?", row.lock, row.holder);
        let holders = row.seen.contenders.holders.iter().map(|holder| holder.id).collect();
        self.question = Some(Question { named: row.named.clone(), holders, text });
    }
}
