//! How a write is done: the leader logs it, a majority takes it, and each member applies it when it hears of that.

use std::sync::Arc;

use ylock_engine_etcd::algorithm::store::KeyEvent;

use super::MemberId;
use super::cluster::Members;
use super::event::{Change, Logged, Origin, Word};
use super::member::{Made, Role};

impl Members {
    /// Logs a change, or hands it on to the leader.
    pub(super) fn proposes(&mut self, member: MemberId, change: Change, origin: Option<Origin>) {
        match &self.members[member].role {
            Role::Leading(leading) => {
                let logged = Logged { term: leading.term, change, origin };
                self.logs(member, logged);
            }
            Role::Following(_) => self.say_to_leader(member, Word::Propose(change, origin)),
            Role::Looking => {}
        }
    }

    pub(super) fn logs(&mut self, leader: MemberId, logged: Logged) {
        let logged = Arc::new(logged);
        self.world.note(|| format!("member {leader} logs {}", logged.change));
        let before = self.members[leader].log.len();
        self.members[leader].log.push(Arc::clone(&logged));
        self.tell_followers(leader, &Word::Append(before, logged));
        self.commits(leader);
    }

    /// Does what a majority has, once an entry of the leader's own term is among it.
    pub(super) fn commits(&mut self, leader: MemberId) {
        let (own, members) = (self.members[leader].log.len(), self.members.len());
        let Some(leading) = self.leading(leader) else { return };
        let (done, term) = (leading.done(own, members), leading.term);
        let state = &self.members[leader];
        let is_own = done.checked_sub(1).is_some_and(|last| state.log[last].term == term);
        if is_own && done > state.applied {
            self.applies(leader, done);
            self.tell_followers(leader, &Word::Commit(done));
        }
    }

    /// Applies so many entries, tells the watches, and answers those that asked.
    pub(super) fn applies(&mut self, member: MemberId, count: usize) {
        while let Some(Made { logged, answer, changed }) = self.members[member].apply_next(count) {
            let revision = self.members[member].data.revision();
            for change in &changed {
                let event = KeyEvent { is_deletion: change.1, revision };
                for (connection, number) in self.members[member].watches_of(change) {
                    self.tell_of_watch(connection, number, event);
                }
            }
            self.minds_leases(member, &logged.change, &answer);
            if let Some(origin) = logged.origin.filter(|origin| origin.member == member) {
                self.applied(origin, answer);
            }
        }
        for waiting in self.members[member].due_looks() {
            self.shows(waiting.origin, &waiting.transaction);
        }
    }
}
