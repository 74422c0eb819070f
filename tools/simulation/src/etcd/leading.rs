//! What a leader knows beside what every member knows: who has which entries, which of its questions were answered, and when leases end.

use std::collections::{BTreeMap, BTreeSet};

use super::{LeaseId, MemberId};

/// The knowledge of a leader; see the [module](self).
#[derive(Debug, Default)]
pub(super) struct Leading {
    pub(super) term: u64,
    pub(super) followers: BTreeMap<MemberId, Follower>,
    /// The number of the last question whether it still leads.
    pub(super) asked: u64,
    /// The looks of members that wait for the answer to a question: its number, whose look it is, its number there, and how many entries were done
    /// when it came.
    pub(super) looks: Vec<(u64, MemberId, u64, usize)>,
    /// The moment at which each lease ends unless it is prolonged before.
    pub(super) ends: BTreeMap<LeaseId, u64>,
    /// The leases that have ended, and are about to be revoked.
    pub(super) ending: BTreeSet<LeaseId>,
    /// The keep-alives that came for one of these: they are answered when it is revoked.
    pub(super) too_late: Vec<(LeaseId, MemberId, u64)>,
}

/// One follower, as its leader sees it.
#[derive(Debug)]
pub(super) struct Follower {
    pub(super) membership: u64,
    /// The number of entries that it has on its disk.
    pub(super) has: usize,
    /// The last question that it has answered.
    pub(super) answered: u64,
    pub(super) heard: u64,
}

impl Leading {
    pub(super) fn new(term: u64) -> Self {
        Self { term, ..Self::default() }
    }

    /// Returns how many entries a majority has, given how many the leader has.
    pub(super) fn done(&self, own: usize, members: usize) -> usize {
        self.of_a_majority(own, members, |follower| follower.has)
    }

    /// Returns the last question that a majority has answered.
    pub(super) fn confirmed(&self, members: usize) -> u64 {
        self.of_a_majority(self.asked, members, |follower| follower.answered)
    }

    fn of_a_majority<T: Copy + Default + Ord>(
        &self,
        own: T,
        members: usize,
        known: impl Fn(&Follower) -> T,
    ) -> T {
        let mut all: Vec<_> = self.followers.values().map(known).chain([own]).collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        all.get(members / 2).copied().unwrap_or_default()
    }

    /// Returns the followers, with their memberships.
    pub(super) fn memberships(&self) -> Vec<(MemberId, u64)> {
        self.followers.iter().map(|(&member, follower)| (member, follower.membership)).collect()
    }

    /// Takes the looks that are confirmed.
    pub(super) fn confirmed_looks(&mut self, members: usize) -> Vec<(MemberId, u64, usize)> {
        let confirmed = self.confirmed(members);
        let (due, later) = self.looks.drain(..).partition(|(question, ..)| *question <= confirmed);
        self.looks = later;
        let due: Vec<(u64, MemberId, u64, usize)> = due;
        due.into_iter().map(|(_, member, number, at)| (member, number, at)).collect()
    }

    /// Takes the keep-alives that came for a lease when it had ended.
    pub(super) fn revoked(&mut self, lease: LeaseId) -> Vec<(MemberId, u64)> {
        self.ends.remove(&lease);
        self.ending.remove(&lease);
        let (own, others) = self.too_late.drain(..).partition(|(of, ..)| *of == lease);
        self.too_late = others;
        let own: Vec<(LeaseId, MemberId, u64)> = own;
        own.into_iter().map(|(_, member, number)| (member, number)).collect()
    }
}
