//! A cluster that is set up anew: with nothing in it, or from a backup. It has another number, and its revisions and terms begin anew.

use std::sync::Arc;
use std::time::Duration;

use super::MemberId;
use super::cluster::{Cluster, Members};
use super::data::Data;
use super::event::Event;
use super::member::Member;
use crate::led::Elects;

/// The most entries that a backup lacks.
const LACKING: u64 = 200;

impl Cluster {
    /// Takes the whole cluster away, and sets another one up in its place after this time.
    pub fn set_up_anew(self: &Arc<Self>, after: Duration) {
        self.with(|members| members.ends_and_comes_back(after));
    }
}

impl Members {
    fn ends_and_comes_back(&mut self, after: Duration) {
        if self.is_rebuilding {
            return;
        }
        self.is_rebuilding = true;
        let newest = (0..self.members.len()).max_by_key(|member| self.members[*member].applied);
        self.base = match newest.filter(|_| self.chance.happens(0.5)) {
            Some(newest) => self.backup(newest),
            None => Data::default(),
        };
        let revision = self.base.revision();
        self.world.note(|| format!("the cluster is set up anew, from revision {revision}"));
        let is_noticed = self.chance.happens(0.5);
        (0..self.members.len()).for_each(|member| self.goes_down(member, is_noticed));
        self.after(after, Event::Rebuilt);
    }

    /// Returns what a backup has that was made a while ago.
    fn backup(&mut self, of: MemberId) -> Data {
        let lacking = self.chance.below(LACKING) as usize;
        let state = &self.members[of];
        let mut data = self.base.clone();
        for logged in &state.log[..state.applied.saturating_sub(lacking)] {
            drop(data.apply(&logged.change));
        }
        data
    }

    pub(super) fn rebuilt(&mut self) {
        self.world.note(|| "the new cluster is there".to_owned());
        self.is_rebuilding = false;
        self.cluster += 1;
        self.term = 0;
        self.held.clear();
        for member in &mut self.members {
            // What was said before is not heard.
            let membership = member.membership + 1;
            *member = Member { membership, ..Member::new(member.rate, &self.base) };
        }
        self.elect_soon();
    }
}
