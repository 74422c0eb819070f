//! What the servers said, in a form in which both sides can be compared.

use std::collections::BTreeSet;

use ylock_engine_etcd::algorithm::store::{Done, Entry, Fault, Outcome};

/// The steps that a difference is shown with.
const BEFORE: usize = 8;

/// One step: what was asked, and what was answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Step {
    said: Vec<String>,
    /// The revisions, which are compared by their order: other clients write to the real server too.
    revisions: Vec<i64>,
}

impl Step {
    pub(crate) fn say(&mut self, words: impl Into<String>) {
        self.said.push(words.into());
    }

    pub(crate) fn fault(&mut self, what: &str, fault: &Fault) {
        let kind = match fault {
            Fault::LeaseGone => "LeaseGone".to_owned(),
            Fault::Refused(error) => format!("Refused({:?})", error.kind()),
            Fault::Unknown(error) => format!("Unknown({:?})", error.kind()),
        };
        self.say(format!("{what}: {kind}"));
    }

    /// Notes an outcome. `leases`: those of this side, in the order in which they were made.
    pub(crate) fn outcome(&mut self, what: &str, outcome: &Outcome, leases: &[i64]) {
        let changes = |done: &Done| matches!(done, Done::Put | Done::Deleted(1..));
        if outcome.done.iter().any(changes) {
            self.revisions.push(outcome.header.revision);
        }
        let held = if outcome.held { "held" } else { "not held" };
        let done: Vec<_> = outcome.done.iter().map(|done| self.done(done, leases)).collect();
        self.say(format!("{what}: {held}, {}", done.join("; ")));
    }

    fn done(&mut self, done: &Done, leases: &[i64]) -> String {
        match done {
            Done::Put => "put".to_owned(),
            Done::Deleted(count) => format!("deleted {count}"),
            Done::Looked(seen) => {
                let entries: Vec<_> = seen.entries.iter().map(|entry| self.entry(entry, leases)).collect();
                format!("[{}]{}", entries.join(", "), if seen.more { " and more" } else { "" })
            }
        }
    }

    fn entry(&mut self, entry: &Entry, leases: &[i64]) -> String {
        self.revisions.extend([entry.made, entry.changed]);
        let lease = leases.iter().position(|lease| *lease == entry.lease);
        // Without what the keys of all runs begin with.
        let key = String::from_utf8_lossy(&entry.key);
        let key = key.split_once('/').map_or("", |(_, key)| key);
        format!("{key} = {} of {lease:?}", String::from_utf8_lossy(&entry.value))
    }

    pub(crate) fn times(&self, answer: &str) -> usize {
        self.said.iter().filter(|said| said.contains(answer)).count()
    }
}

/// Returns the place of each revision among all of its side.
fn ranks(steps: &[Step]) -> Vec<Vec<usize>> {
    let all: BTreeSet<i64> = steps.iter().flat_map(|step| step.revisions.iter().copied()).collect();
    let all: Vec<_> = all.into_iter().collect();
    let rank = |revision: &i64| all.binary_search(revision).unwrap_or(usize::MAX);
    steps.iter().map(|step| step.revisions.iter().map(rank).collect()).collect()
}

/// Compares both sides. Returns the first difference.
pub(crate) fn compare(real: &[Step], simulated: &[Step]) -> Result<(), String> {
    let (of_real, of_simulated) = (ranks(real), ranks(simulated));
    let shown = |step: &Step, ranks: &[usize]| format!("{:#?}, revisions {ranks:?}", step.said);
    for (at, (one, other)) in real.iter().zip(simulated).enumerate() {
        if one.said == other.said && of_real[at] == of_simulated[at] {
            continue;
        }
        let before = real[at.saturating_sub(BEFORE)..at].iter().map(|step| step.said.join("; "));
        let before: Vec<_> = before.collect();
        let (real, simulated) = (shown(one, &of_real[at]), shown(other, &of_simulated[at]));
        return Err(format!(
            "step {at}, after\n{}\nthe real server: {real}\nthe simulated one: {simulated}",
            before.join("\n")
        ));
    }
    assert_eq!(real.len(), simulated.len(), "steps");
    Ok(())
}
