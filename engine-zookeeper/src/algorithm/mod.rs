//! The algorithm: how a lock is a queue of nodes, over the small traits in [`store`]. Nothing here knows the driver, and all time comes
//! from the environment: it runs the same over an ensemble and in a simulation.
//!
//! - `acquire`, `renew`, `release`, `inspect`: what the engine is asked for. `announce`: the place of a waiter behind a grant.
//! - `runs`: the last runs of jobs, which are no locks. `keys`: which locks there are.
//! - `judge`: what one look means; safety and order in one place. Pure.
//! - `node`, `place`: the names, the contents and the paths of nodes. `create`: making a node, and finding it again.
//! - `claim`, `claims`: what this client has in the store, or may have. `watch`: whether anything has changed there.
//! - `link`: one session as far as requests go, below all that is kept of it. `requests`: what it
//!   sends, each with a time limit and counted; `in_flight`: a request that is on its way.
//!   `heartbeat`: until when the session can be relied on; `signs`: what the leader has heard.
//! - `floor`: what the tokens of all clients are above; `token_floor`: where that is stored.
//!   `confirm`: what counts only as long as it is the same.
//! - `session`: a link, its claims, and the nodes of locks (`lock_nodes`): what lives and dies with
//!   it. `keepalive`, `cleanup`: the tasks that look after it.
//! - `client`, `sessions`: the sessions of a client. `connection`: one of them, made again when it
//!   has ended.

pub(crate) mod acquire;
pub(crate) mod announce;
pub(crate) mod claim;
pub(crate) mod claims;
pub(crate) mod cleanup;
pub(crate) mod client;
mod confirm;
pub(crate) mod connection;
pub(crate) mod create;
pub(crate) mod diagnose;
pub(crate) mod floor;
pub(crate) mod heartbeat;
pub(crate) mod in_flight;
pub(crate) mod inspect;
pub(crate) mod judge;
pub(crate) mod keepalive;
pub(crate) mod keys;
pub(crate) mod link;
pub(crate) mod lock_nodes;
pub(crate) mod node;
pub(crate) mod place;
pub(crate) mod release;
pub(crate) mod renew;
pub(crate) mod requests;
pub(crate) mod runs;
pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod signs;
pub mod store;
pub(crate) mod token_floor;
pub(crate) mod watch;
