//! The view of a key: that of the store, with the details that only this process knows.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Keeper;
use super::entry::{Entry, Phase};
use crate::client_name::ClientName;
use crate::engine::{AcquisitionId, Diagnostics, Holder, Inspection, KeyPage, Waiter};
use crate::error::Result;
use crate::foreign::shielded;
use crate::key::{Key, check_group};
use crate::mode::Mode;
use crate::owner::Owner;
use crate::token::Token;

/// The details that this process knows about its own contender.
#[derive(Default)]
struct Local {
    client: ClientName,
    held_as: Option<AcquisitionId>,
    waits_as: Option<AcquisitionId>,
    holders: Vec<(Owner, Mode, Option<Token>)>,
    queue: Vec<(Owner, Mode)>,
}

impl Keeper {
    /// Returns the holders of a key and the waiters for it; see [`Ylock::inspect`](crate::Ylock::inspect).
    pub(crate) async fn inspect(&self, key: &Key) -> Result<Inspection> {
        self.inspect_as_others(key).await.map(|seen| self.with_details(key, seen))
    }

    /// Returns what the store shows of a key, to every client alike: of the holders of one client that share a grant only the first one.
    pub(crate) async fn inspect_as_others(&self, key: &Key) -> Result<Inspection> {
        shielded(self.engine.inspect(key)).await.map_err(|error| self.about(key, error))
    }

    /// Returns all holders that the store has at some moment of this call.
    pub(crate) async fn exact_holders(&self, key: &Key) -> Result<Vec<Holder>> {
        shielded(self.engine.exact_holders(key)).await.map_err(|error| self.about(key, error))
    }

    /// Returns whether a try to write may get the key; also where the store does not answer, as that try will tell.
    pub(crate) async fn may_be_free(&self, key: &Key) -> bool {
        shielded(self.engine.may_be_free(key)).await.unwrap_or(true)
    }

    /// Returns the same view, with the details that only this process knows.
    pub(crate) fn with_details(&self, key: &Key, seen: Inspection) -> Inspection {
        let local = self.shard(key).lock().get(key).map(|entry| Local::of(entry, self.name.get()));
        let wall = u64::try_from(self.environment.wall_micros()).unwrap_or_default();
        local.unwrap_or_default().merge(seen, UNIX_EPOCH + Duration::from_micros(wall))
    }

    /// Returns whether the store shows a grant with this token as held; see [`Ylock::verify`](crate::Ylock::verify).
    pub(crate) async fn verify(&self, key: &Key, token: Token) -> Result<bool> {
        let holders = self.exact_holders(key).await?;
        // The store knows a grant by its own number: how often it was handed on inside its process, only that process knows.
        let is_of_grant =
            |holder: &&Holder| holder.token.is_some_and(|shown| shown.of_store() == token.of_store());
        let Some(own) = holders.iter().find(is_of_grant) else { return Ok(false) };
        // A store may show a holder whose lease has ended beside the next one for a while: the larger token is that of the next one.
        let follows = |other: &Holder| {
            other.mode.conflicts_with(own.mode) && other.token.is_some_and(|other| other > token)
        };
        Ok(!holders.iter().any(|other| other.id != own.id && follows(other)))
    }

    /// Returns whether this client holds the key now.
    pub(crate) fn holds(&self, key: &Key) -> bool {
        self.shard(key).lock().get(key).is_some_and(|entry| !entry.holders.is_empty())
    }

    /// Returns a page of the keys that the store shows as held or waited for.
    pub(crate) async fn keys_in_store(&self, group: Option<&str>, after: Option<&str>) -> Result<KeyPage> {
        if let Some(group) = group {
            check_group(group)?;
        }
        let page = shielded(self.engine.keys(group, after)).await;
        page.map_err(|error| error.with_engine(self.engine.name()))
    }

    /// Returns what the servers tell of themselves.
    pub(crate) async fn diagnose(&self) -> Result<Diagnostics> {
        shielded(self.engine.diagnose()).await.map_err(|error| error.with_engine(self.engine.name()))
    }

    /// Takes a key away from all of its holders; see [`Ylock::revoke`](crate::Ylock::revoke).
    ///
    /// Returns how many that were.
    pub(crate) async fn revoke(self: &Arc<Self>, key: &Key) -> Result<usize> {
        let mut revoked = 0;
        // An inspection may miss a holder that has just come, and the operator would read that there was none.
        for holder in self.exact_holders(key).await? {
            revoked += usize::from(self.revoke_one(key, holder.id).await?);
        }
        Ok(revoked)
    }

    /// Takes a key away from one holder. Returns whether it held the key.
    pub(crate) async fn revoke_one(self: &Arc<Self>, key: &Key, id: AcquisitionId) -> Result<bool> {
        let revoked = shielded(self.engine.revoke(key, id)).await.map_err(|error| self.about(key, error))?;
        self.look_at_own_grant(key);
        Ok(revoked)
    }

    /// If the grant is ours, there is no need to wait for the next renewal to find out that it was revoked.
    fn look_at_own_grant(self: &Arc<Self>, key: &Key) {
        self.change(key, |entry, _, effects| {
            if let Phase::Granted(granted) = &mut entry.phase {
                granted.renew_soon(effects);
            }
        });
    }
}

impl Local {
    fn of(entry: &Entry, client: ClientName) -> Self {
        let mut local = Self {
            client,
            queue: entry.queue.iter().map(|waiter| (waiter.owner, waiter.mode)).collect(),
            ..Self::default()
        };
        match &entry.phase {
            Phase::Contending(contender) => local.waits_as = Some(contender.request.id),
            Phase::Granted(granted) => {
                local.held_as = Some(granted.grant.id);
                local.waits_as = granted.next.as_ref().map(|next| next.id);
                let mode = |writes| if writes > 0 { Mode::Write } else { Mode::Read };
                let holders = entry.holders.iter();
                local.holders = holders.map(|h| (h.hold.owner, mode(h.writes), h.hold.token)).collect();
            }
            Phase::Absent | Phase::Releasing(_) => {}
        }
        local
    }

    /// Merges the store's view with these details: the store shows one contender for this process, which stands for all of its tasks.
    fn merge(mut self, seen: Inspection, now: SystemTime) -> Inspection {
        let mut merged = Inspection::default();
        for mut holder in seen.holders {
            if Some(holder.id) == self.waits_as {
                // The store has granted, and its answer is on its way, to the first waiter that the contender stands for.
                if let Some(place) = self.queue.iter().position(|(_, mode)| *mode == holder.mode) {
                    (holder.owner, _) = self.queue.remove(place);
                }
                merged.holders.push(holder);
            } else if Some(holder.id) == self.held_as {
                merged.holders.extend(self.holders.iter().map(|&(owner, mode, token)| Holder {
                    owner,
                    mode,
                    token,
                    ..holder.clone()
                }));
            } else {
                merged.holders.push(holder);
            }
        }
        let mut shown = false;
        for waiter in seen.queue {
            if Some(waiter.id) == self.waits_as {
                shown = true;
                merged.queue.extend(self.waiters(waiter.id, waiter.since));
            } else {
                merged.queue.push(waiter);
            }
        }
        if let (false, Some(id)) = (shown, self.shown_as()) {
            merged.queue.extend(self.waiters(id, now));
        }
        merged
    }

    /// Returns the acquisition as which the waiters of this process stand in the queue.
    fn shown_as(&self) -> Option<AcquisitionId> {
        self.waits_as.or(self.held_as)
    }

    fn waiters(&self, id: AcquisitionId, since: SystemTime) -> impl Iterator<Item = Waiter> {
        let client = self.client.clone();
        self.queue.iter().map(move |&(owner, mode)| Waiter { id, owner, client: client.clone(), mode, since })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the owners of the holders and of the waiters, where the store shows a writer of this owner as granted, and these writers wait here for its
    /// answer.
    fn shown(granted: Owner, waiting: &[Owner]) -> (Vec<Owner>, Vec<Owner>) {
        let id = AcquisitionId::from_u128(1);
        let queue = waiting.iter().map(|owner| (*owner, Mode::Write)).collect();
        let local = Local { waits_as: Some(id), queue, ..Local::default() };
        let holder = Waiter::new(id, granted, ClientName::default(), Mode::Write, UNIX_EPOCH);
        let seen = Inspection { holders: vec![Holder::of(holder, None)], ..Inspection::default() };
        let merged = local.merge(seen, UNIX_EPOCH);
        let holders = merged.holders.iter().map(|holder| holder.owner).collect();
        (holders, merged.queue.iter().map(|waiter| waiter.owner).collect())
    }

    /// The store has granted, and the answer is on its way.
    #[test]
    fn a_contender_that_the_store_shows_as_a_holder_is_shown_once() {
        let (first, second) = (Owner::new(), Owner::new());
        assert_eq!(shown(first, &[first, second]), (vec![first], vec![second]));
        // The caller that the contender was made for has given up: it stands for the next one.
        assert_eq!(shown(first, &[second]), (vec![second], vec![]));
        assert_eq!(shown(first, &[second, first]), (vec![second], vec![first]));
        // All have given up, and the release is on its way.
        assert_eq!(shown(first, &[]), (vec![first], vec![]));
    }
}
