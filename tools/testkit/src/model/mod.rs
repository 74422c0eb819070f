//! The queue of the core under random operations, and beside it what an engine has on its server: no difference.
//!
//! `YLOCK_TEST_SEED=…` plays one seed again.

mod chance;
mod play;
mod reference;

use std::ops::Range;

use async_trait::async_trait;
use ylock_core::Mode;
use ylock_core::engine::{AcquisitionId, Renewal};

pub use chance::Chance;
use play::Play;
pub use reference::{Asked, Hears, LEASE, Manner, Reply, Shown};

/// What is driven by the same operations as the queue: scripts, or functions, on a server.
#[async_trait]
pub trait Driven: Send {
    /// Returns the answer, and the token of a grant.
    async fn acquire(&mut self, place: &str, asked: Asked, manner: Manner) -> (Reply, Option<u64>);

    /// Returns whether there was a grant or a place. If it is late, requests of the acquisition may still be on their way.
    async fn release(&mut self, place: &str, id: AcquisitionId, is_late: bool, next: Option<Asked>) -> bool;

    /// Renews a grant as that of a reader or a writer, with a waiter behind it.
    async fn renew(&mut self, place: &str, id: AcquisitionId, mode: Mode, behind: Option<Asked>) -> Renewal;

    /// Returns whether this acquisition held the lock.
    async fn revoke(&mut self, place: &str, id: AcquisitionId) -> bool;

    /// Returns what the server has, after checking whether it contradicts itself.
    async fn show(&mut self, place: &str) -> Shown;

    /// Removes all that there is of a lock.
    async fn remove(&mut self, place: &str);
}

/// Drives it by random operations, 20 000 of them, or a million in a long run.
pub async fn random_operations_make_no_difference(driven: &mut dyn Driven) {
    let all = crate::short_or_long(100, 5_000);
    let given = std::env::var("YLOCK_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = given.map_or(0..all, |seed: u64| seed..seed + 1);
    play(driven, seeds).await;
}

/// Drives it by the random operations of these seeds.
pub async fn play(driven: &mut dyn Driven, seeds: Range<u64>) {
    for seed in seeds {
        Play::new(seed).play(driven).await;
    }
}
