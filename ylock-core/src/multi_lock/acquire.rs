//! One call that acquires a set: who may, which layers are told, and what a caller is told that came too late.

use std::time::Duration;

use super::guards::{Guards, as_set, give_back};
use super::leases::{Leases, lost_one};
use super::taking::{Missed, Taking};
use super::told::Told;
use super::wanted::Member;
use crate::acquire::{Acquirable, Call, Reentrant, owner_of};
use crate::deadline::{Deadline, timed_out};
use crate::error::{Error, ErrorKind, Result};
use crate::keeper::{AcquiringSet, Site};
use crate::layer::Outcome;
use crate::owner::Owner;
use crate::terms::Terms;

/// Acquires all members, and waits at most as long as the options say.
pub(super) async fn acquire_or_time_out(terms: &Terms, members: &[Member], at: Site) -> Result<Guards> {
    let max_wait = terms.options().max_wait();
    let missed = match acquire(terms, members, max_wait, true, at).await? {
        Ok(guards) => return Ok(guards),
        Err(missed) => missed,
    };
    let (Member { key, mode }, had, all) = (&members[missed.place], missed.place, members.len());
    let mut message = timed_out(&format!("a set of {all} locks was not granted"), max_wait);
    message.push_str(&format!(": it had {had} of them and waited for the {mode} lock"));
    if let Some(before) = missed.before {
        message.push_str(&format!(": {before}"));
    }
    Err(Error::new(ErrorKind::TimedOut, message).with_key(key))
}

impl Reentrant for Guards {}

impl Acquirable for Guards {
    type Target = Result<Vec<Member>>;
    type Lease = Leases;

    async fn acquire(Call { terms, target, at }: Call<Self::Target>) -> Result<Self> {
        acquire_or_time_out(&terms, &target?, at).await
    }

    async fn acquire_within(
        Call { terms, target, at }: Call<Self::Target>,
        max_wait: Option<Duration>,
    ) -> Result<Option<Self>> {
        Ok(acquire(&terms, &target?, max_wait, false, at).await?.ok())
    }

    fn work_lease(&self) -> Leases {
        self.leases()
    }

    async fn until_lost(&self) -> Error {
        let (key, _) = self.lost().await;
        lost_one(self, &key)
    }

    fn check_valid(&self) -> Result<()> {
        self.check()
    }

    async fn give_back(self, terms: &Terms) {
        give_back(terms, self).await;
    }
}

async fn acquire(
    terms: &Terms,
    members: &[Member],
    max_wait: Option<Duration>,
    explains: bool,
    at: Site,
) -> Result<Result<Guards, Missed>> {
    if members.is_empty() {
        return Ok(Ok(Guards::default()));
    }
    let keeper = &terms.handle.keeper;
    let (owner, deadline) = (owner_of(terms), Deadline::of(max_wait, &**keeper.environment()));
    // Until the set is granted: from then on its last key is known.
    let acquiring = keeper.acquire_set(owner);
    let mut told = Told::begin(terms, members, owner, max_wait)?;
    let taking = Taking { terms, owner, members, deadline, explains, at };
    let taken =
        match alone(acquiring.as_ref(), members).and_then(|()| in_order(terms, owner, members, deadline)) {
            Ok(()) => taking.take().await,
            Err(error) => Err(error),
        };
    match taken {
        Ok(Ok(taken)) => Ok(Ok(as_set(terms, told.granted(taken)))),
        Ok(Err(missed)) => {
            told.end(&Outcome::NotFree);
            Ok(Err(missed))
        }
        Err(error) => {
            told.end(&Outcome::Failed(error.clone()));
            Err(error)
        }
    }
}

/// Refuses an owner that is acquiring another set at the same time: one of the two could be granted while the other waits for a key before its last.
fn alone(acquiring: Option<&AcquiringSet<'_>>, members: &[Member]) -> Result<()> {
    if acquiring.is_some() {
        return Ok(());
    }
    let message = "the owner is acquiring another set of locks, and one of them could wait while it holds the other: acquire one after the \
                   other, or all at once";
    Err(Error::new(ErrorKind::WouldDeadlock, message).with_key(&members[0].key))
}

/// Refuses to wait for a key before the last one of a set that the owner holds: its holder may be waiting for that set.
fn in_order(terms: &Terms, owner: Owner, members: &[Member], deadline: Deadline) -> Result<()> {
    let keeper = &terms.handle.keeper;
    let Some(last) = keeper.last_of_sets(owner).filter(|_| !deadline.is_now()) else { return Ok(()) };
    let before = |member: &&Member| member.key < last && !keeper.is_held_by(&member.key, owner);
    let Some(member) = members.iter().find(before) else { return Ok(()) };
    let message = format!(
        "the owner holds a set of locks up to {last:?}, and wants to wait for one before that: take all of them at once, or by `two_phase_locking`"
    );
    Err(Error::new(ErrorKind::WouldDeadlock, message).with_key(&member.key))
}
