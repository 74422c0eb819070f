//! What the log is told of a key. Not while the shard is locked: a subscriber may do anything, such as drop a guard.

use std::sync::Arc;
use std::time::Duration;

use tracing::field;

use super::Keeper;
use super::hold::Hold;
use super::holder::Holder;
use super::self_wait::Site;
use crate::engine::LossReason;
use crate::environment::Moment;
use crate::error::Error;
use crate::foreign::tell;
use crate::key::Key;
use crate::owner::Owner;
use crate::token::Token;

pub(super) enum Logged {
    Lost {
        owners: String,
        /// As the holders see them: with these they wrote to what the lock protects.
        tokens: String,
        reason: LossReason,
        failure: Option<Error>,
        /// How long a hold with a bound has lasted, and the bound, if that is the reason.
        lasted: Option<(Duration, Duration)>,
    },
    /// Without a hold if the grant came when no waiter was left.
    GivenUp {
        hold: Option<Arc<Hold>>,
        error: Error,
    },
    RenewalFailed(Error),
    /// No caller has read that it has the lock.
    Unread {
        owner: Owner,
        at: Site,
    },
}

impl Logged {
    pub(super) fn lost(holders: &[Holder], reason: LossReason, failure: Option<&Error>) -> Self {
        Self::lost_after(holders, reason, failure, None)
    }

    pub(super) fn unread(holder: &Holder) -> Self {
        Self::Unread { owner: holder.hold.owner, at: holder.caller.site() }
    }

    /// Of a hold that has lasted too long.
    pub(super) fn held_too_long(holder: &Holder, now: Moment) -> Self {
        let lasted = holder.hold.bound.as_ref().map(|bound| (bound.lasted(now), bound.longest()));
        Self::lost_after(std::slice::from_ref(holder), LossReason::HeldTooLong, None, lasted)
    }

    fn lost_after(
        holders: &[Holder],
        reason: LossReason,
        failure: Option<&Error>,
        lasted: Option<(Duration, Duration)>,
    ) -> Self {
        let tokens = holders.iter().filter_map(|holder| holder.hold.token).map(|token| token.to_string());
        Self::Lost {
            owners: joined(holders.iter().map(|holder| holder.hold.owner.to_string())),
            tokens: joined(tokens),
            reason,
            failure: failure.cloned(),
            lasted,
        }
    }

    pub(super) fn write(self, keeper: &Keeper, key: &Key) {
        match self {
            Self::Lost { owners, tokens, reason, failure, lasted } => tell!(
                warn, client = %keeper.name, engine = keeper.engine.name(), ?key, owners, tokens, reason = reason.as_str(),
                error = failure.map(|error| format!("{error:#}")), held = lasted.map(|(held, _)| field::debug(held)),
                max_hold = lasted.map(|(_, longest)| field::debug(longest)), "a lock was lost"
            ),
            Self::GivenUp { hold, error } => tell!(
                warn, client = %keeper.name, engine = keeper.engine.name(), ?key,
                owner = hold.as_ref().map(|hold| field::display(hold.owner)),
                token = hold.and_then(|hold| hold.token).map(Token::get),
                error = format!("{error:#}"), "a release was given up"
            ),
            Self::Unread { owner, at } => tell!(
                warn, client = %keeper.name, engine = keeper.engine.name(), ?key, %owner, at = %at,
                "a lock was granted to a task that has not run for a lease, and goes to others: does work block its thread, or \
                 does no thread drive its runtime?"
            ),
            Self::RenewalFailed(error) => tell!(
                debug,
                ?key,
                error = format!("{error:#}"),
                "a renewal failed; it is tried again until the lease ends"
            ),
        }
    }
}

fn joined(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join(" ")
}
