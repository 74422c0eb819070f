//! The meters of the groups of an engine: found without a lock, and bounded in number.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::group::GroupMeters;
use crate::recorder::Sink;

/// The label of the groups for which there is no room.
pub(crate) const OTHER_GROUP: &str = "other";
/// The longest label, in bytes; longer names are cut. A name may be far longer than an operator wants to read, and every series repeats it.
const LONGEST_LABEL: usize = 128;

type Known = HashMap<Arc<str>, Arc<GroupMeters>, foldhash::fast::RandomState>;

/// The groups of one engine.
#[derive(Debug)]
pub(crate) struct Groups {
    engine: &'static str,
    sink: Sink,
    most: usize,
    /// Copied when a group is new: that is rare, and looking one up takes no lock.
    known: ArcSwap<Known>,
    growing: Mutex<()>,
    other: Arc<GroupMeters>,
}

impl Groups {
    pub(crate) fn new(sink: &Sink, engine: &'static str, most: usize) -> Self {
        Self {
            engine,
            sink: sink.clone(),
            most,
            known: ArcSwap::default(),
            growing: Mutex::new(()),
            other: Arc::new(GroupMeters::of_others(sink, engine, OTHER_GROUP)),
        }
    }

    /// Uses the meters of a group, or the meters that all others share.
    pub(crate) fn find<T>(&self, group: &str, use_them: impl FnOnce(&GroupMeters) -> T) -> T {
        let known = self.known.load();
        if let Some(meters) = known.get(group) {
            return use_them(meters);
        }
        let is_full = known.len() >= self.most;
        drop(known);
        if is_full { use_them(&self.other) } else { use_them(&self.add(group)) }
    }

    fn add(&self, group: &str) -> Arc<GroupMeters> {
        let _growing = self.growing.lock();
        let known = self.known.load_full();
        if let Some(meters) = known.get(group) {
            return Arc::clone(meters);
        }
        if known.len() >= self.most {
            return Arc::clone(&self.other);
        }
        let label = label(group);
        // Two series with the same labels would make Prometheus refuse the whole scrape.
        let same = known.values().chain([&self.other]).find(|meters| meters.group() == label).cloned();
        let meters = same.unwrap_or_else(|| Arc::new(GroupMeters::new(&self.sink, self.engine, &label)));
        let mut known = Known::clone(&known);
        known.insert(group.into(), Arc::clone(&meters));
        if known.len() == self.most {
            tracing::warn!(
                engine = self.engine,
                groups = self.most,
                "there are as many groups as are measured one by one; others are counted as {OTHER_GROUP:?}"
            );
        }
        self.known.store(Arc::new(known));
        meters
    }

    /// Returns all meters there are, each once.
    pub(crate) fn all(&self) -> Vec<Arc<GroupMeters>> {
        let mut all: Vec<_> = self.known.load().values().cloned().chain([Arc::clone(&self.other)]).collect();
        all.sort_unstable_by_key(|meters| Arc::as_ptr(meters) as usize);
        all.dedup_by(|one, other| Arc::ptr_eq(one, other));
        all
    }
}

/// Returns the label for a group's name. Quotes and new lines are escaped by the exporter; a backslash it takes for the beginning of an
/// escape, so that two names could become one label.
fn label(group: &str) -> String {
    let mut end = group.len().min(LONGEST_LABEL);
    while !group.is_char_boundary(end) {
        end -= 1;
    }
    group[..end].replace('\\', "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_between_letters() {
        assert_eq!(label("users"), "users");
        assert_eq!(label(&"ä".repeat(100)), "ä".repeat(64));
        assert_eq!(label(&format!("x{}", "ä".repeat(100))), format!("x{}", "ä".repeat(63)));
        assert_eq!(label(r"a\b"), "a/b");
    }
}
