//! One lock as a line of the table.

use std::cmp::Reverse;
use std::time::{Duration, SystemTime};

use humantime::format_duration;
use ylock::Error;
use ylock::engine::Inspection;

use crate::name::{Named, Seen};
use crate::output::{lines, printable};

/// A lock as it was at one look. All texts are free of what a terminal would obey.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) named: Named,
    pub(super) lock: String,
    pub(super) mode: String,
    pub(super) holder: String,
    /// How long the first of its holders has held it.
    pub(super) held: Option<Duration>,
    pub(super) waiting: usize,
    pub(super) longest_wait: Option<Duration>,
    /// Holders and waiters, as `ylock inspect` shows them.
    pub(super) seen: Seen,
    /// Why neither can be read, if the lock is damaged.
    damage: Option<String>,
    /// What a filter is compared with.
    text: String,
}

impl Row {
    pub(super) fn new(named: Named, seen: Seen, now: SystemTime) -> Self {
        // The clock of another machine may be ahead.
        let ago = |since: SystemTime| now.duration_since(since).unwrap_or_default();
        let Inspection { holders, queue, .. } = &seen.contenders;
        let clients = holders.iter().map(|holder| &holder.client);
        let clients = clients.chain(queue.iter().map(|waiter| &waiter.client));
        let clients: String = clients.map(|client| format!(" {client}")).collect();
        Self {
            lock: printable(&named.to_string()),
            mode: mode(&seen),
            holder: printable(&holder(&seen.contenders)),
            held: holders.iter().map(|holder| holder.since).min().map(ago),
            waiting: queue.len(),
            longest_wait: queue.iter().map(|waiter| waiter.since).min().map(ago),
            text: printable(&format!("{named}{clients}")).to_lowercase(),
            damage: None,
            named,
            seen,
        }
    }

    /// Creates the row of a lock that cannot be read.
    pub(super) fn damaged(named: Named, error: &Error, now: SystemTime) -> Self {
        let row = Self::new(named, Seen::default(), now);
        let damage = format!("DAMAGED: {}", printable(&format!("{error:#}")));
        Self { holder: damage.clone(), damage: Some(damage), ..row }
    }

    /// Returns whether the lock, a holder or a waiter has this in its name. The text is in lower case.
    pub(super) fn matches(&self, text: &str) -> bool {
        self.text.contains(text)
    }

    /// Returns the holders and waiters as lines, as of `ylock inspect`.
    pub(super) fn lines(&self) -> Vec<String> {
        if let Some(damage) = &self.damage {
            return vec![self.lock.clone(), format!("  {damage}")];
        }
        lines(&self.named, &self.seen).iter().map(|line| printable(line)).collect()
    }
}

/// Returns how it is held: the mode of a lock, or how many of the permits.
fn mode(seen: &Seen) -> String {
    let holders = &seen.contenders.holders;
    match (seen.permits, holders.first()) {
        (Some(permits), _) => format!("{}/{permits}", holders.len()),
        (None, Some(first)) => first.mode.to_string(),
        (None, None) => "-".to_owned(),
    }
}

fn holder(seen: &Inspection) -> String {
    match &seen.holders[..] {
        [] => "-".to_owned(),
        [first] => first.client.to_string(),
        [first, others @ ..] => format!("{} and {} more", first.client, others.len()),
    }
}

/// Sorts: what is damaged first, then the longest waits, and after the locks that no client waits for the longest holds.
pub(super) fn sort(rows: &mut [Row]) {
    rows.sort_by(|a, b| {
        let urgency = |row: &Row| Reverse((row.damage.is_some(), row.longest_wait, row.held));
        urgency(a).cmp(&urgency(b)).then_with(|| a.named.cmp(&b.named))
    });
}

/// Returns a time in a few letters.
pub(super) fn short(time: Option<Duration>) -> String {
    let Some(time) = time else { return "-".to_owned() };
    let whole = Duration::from_secs(time.as_secs());
    // Minutes beside days say nothing.
    format_duration(whole).to_string().split(' ').take(2).collect::<Vec<_>>().join(" ")
}
