//! The same locks for synchronous code: each call waits on the thread of its caller, and nothing here is a future.
//!
//! An acquisition has [`wait`](Acquire::wait) in the place of `.await`; every other method waits by itself, such as `unlock`, `inspect` and `run`.
//! Names and meaning are those of the async API, of which the values here are thin covers: what is not said here is said there. Values that wait for
//! nothing are the same: [`Lease`](crate::Lease), [`Token`](crate::Token), [`Owner`](crate::Owner), [`Options`](crate::Options) and so on.
//!
//! # The threads of the client
//! A client starts two threads, on which it renews leases, gives back what was dropped, and talks to its store; every value of the client keeps them.
//! When the last value goes the threads end by themselves, without a wait for them: at once where nothing is left to be given back, and two leases later
//! at the latest.
//!
//! # What cannot be promised without futures
//! - **A call that waits cannot be cancelled.** Bound it by [`within`](Acquire::within), or
//!   [`Options::with_max_wait`](crate::Options::with_max_wait) for all calls. [`Ylock::close`] on another thread ends every wait of the client.
//! - **Work cannot be dropped when its lock is lost.** `run` calls a closure, and no thread can be stopped from outside. Long work asks
//!   [`Lease::check`](crate::Lease::check) between its steps; in any case `run` fails with [`Lost`](crate::ErrorKind::Lost) when the work has ended
//!   and the lock is lost by then. Send the [token](crate::Lease::token) with everything that must not happen twice.
//!
//! Streams are with the async API only ([`events`](crate::Ylock::events), [`observe`](crate::Election::observe)): [`Ylock::as_async`] is the way to
//! them.
//!
//! # Owners and reentrancy
//! An owner is a value here, too, and never a thread. Inside the work of `run` its owner is current on that thread, so that the work may acquire
//! the same lock again. Elsewhere [`Owner::sync_scope`](crate::Owner::sync_scope) takes the place of [`Owner::scope`](crate::Owner::scope): it
//! makes an owner current for as long as a closure runs, on the thread that runs it. Threads that are started inside are not part of the scope;
//! what is to belong to the owner there names it by `owned_by`.
//!
//! # Inside an async runtime
//! A task that blocks its thread stalls its runtime. So a call here that would block a task of tokio, or the future of its `block_on`, fails with
//! [`Invalid`](crate::ErrorKind::Invalid) instead, of whichever flavour the runtime is: use the async API there, or `tokio::task::spawn_blocking`.
//! Inside `spawn_blocking` and `block_in_place` calls wait, as they do on a thread of your own. A guard that is dropped blocks no thread, so it may
//! be dropped anywhere.
//!
//! Calls find out by the budget that tokio gives to what it polls and to nothing else. So they do not notice other executors than tokio, a future in
//! `tokio::task::unconstrained`, nor the future of `block_on` after a `block_in_place` of its own, until it is polled again: there a call blocks the
//! thread. It is no deadlock by itself, because the client has a thread of its own, and never a panic.
//!
//! # Examples
//! An order is charged once, whichever process gets the message first:
//! ```
//! # fn charge(_: &str) {}
//! fn main() -> ylock::Result<()> {
//!     let ylock = ylock::blocking::connect("memory://")?;
//!     let orders = ylock.locks("orders");
//!
//!     let guard = orders.write("4711").wait()?;
//!     charge("4711");
//!     if !guard.unlock()?.is_released() {
//!         eprintln!("order 4711: the lock was lost while it was charged");
//!     }
//!     Ok(())
//! }
//! ```

mod acquire;
mod client;
mod election;
mod guard;
mod guards;
mod listing;
mod lock;
mod locks;
mod multi_lock;
mod outside;
mod own_runtime;
mod semaphore;
mod stalls;
mod tied;
mod two_phase_locking;
mod waiting;

pub use acquire::{Acquirable, Acquire, TryAcquire};
pub use client::{Ylock, connect, connect_to, connect_with};
pub use election::{Election, Leadership};
pub use guard::Guard;
pub use guards::Guards;
pub use listing::Listing;
pub use lock::Lock;
pub use locks::Locks;
pub use multi_lock::MultiLock;
pub use semaphore::{Permit, Semaphore};
pub use two_phase_locking::TwoPhaseLocking;
