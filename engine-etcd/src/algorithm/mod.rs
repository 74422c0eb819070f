//! The algorithm: how a lock is a queue of keys, over the small trait in [`store`]. Nothing here knows the driver, and all time comes from the
//! environment.
//!
//! - `acquire`, `renew`, `release`, `inspect`: what the engine is asked for. `announce`: the place of a waiter behind a grant.
//! - `runs`: the last runs of jobs, which are no locks. `keys`: which locks there are. `owners`:
//!   the keys of holders, for transactions of others.
//! - `judge`: what one look means; safety and order in one place. Pure.
//! - `names`, `contender`: the keys, and what is stored at them. `look`: what is asked of a queue.
//! - `claim`, `claims`: what this client has in the store, or may have.
//! - `link`: what sends, below all that is kept of it. `session`: one etcd lease. `kept`: a key as
//!   it was stored last. `floor`: what makes tokens of revisions.
//! - `client`: what all calls share: a link, sessions and claims. `sessions`: how it makes new
//!   sessions. `moves`: keys go to younger ones. `upkeep`, `cleanup`: the tasks that look after
//!   these.

pub(crate) mod acquire;
pub(crate) mod announce;
pub(crate) mod claim;
pub(crate) mod claims;
pub(crate) mod cleanup;
pub(crate) mod client;
pub(crate) mod contender;
pub(crate) mod floor;
pub(crate) mod inspect;
pub(crate) mod judge;
pub(crate) mod kept;
pub(crate) mod keys;
pub(crate) mod link;
pub(crate) mod look;
pub(crate) mod moves;
pub(crate) mod names;
pub(crate) mod owners;
pub(crate) mod release;
pub(crate) mod renew;
pub(crate) mod runs;
pub(crate) mod session;
mod sessions;
pub mod store;
pub(crate) mod upkeep;
