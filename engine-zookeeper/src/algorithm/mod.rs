//! The algorithm: how a lock is a queue of nodes, and what keeps the nodes, and what rests on them, true.
//!
//! - `acquire`, `renew`, `release`, `inspect`: what the engine is asked for. `announce`: the place of a waiter behind a grant.
//! - `judge`: what one look means; safety and order in one place. Pure.
//! - `node`, `place`: the names, the contents and the paths of nodes. `create`: making a node, and finding it again.
//! - `claim`, `claims`: what this client has in the store, or may have. `watch`: whether anything has changed there.
//! - `sessions`: the sessions of a client. `pulse`, `cleanup`: the tasks that look after a session.

pub(crate) mod acquire;
pub(crate) mod announce;
pub(crate) mod claim;
pub(crate) mod claims;
pub(crate) mod cleanup;
pub(crate) mod create;
pub(crate) mod inspect;
pub(crate) mod judge;
pub(crate) mod node;
pub(crate) mod place;
pub(crate) mod pulse;
pub(crate) mod release;
pub(crate) mod renew;
pub(crate) mod sessions;
pub(crate) mod watch;
