//! The queue of the core under random operations, and beside it what an engine has on its server: no difference.
//!
//! `YLOCK_TEST_SEED=…` plays one seed again.

mod chance;
mod play;
mod reference;

use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use ylock_core::Mode;
use ylock_core::engine::{AcquisitionId, Renewal};

use crate::waiting::while_it_goes_on;

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

/// A server that answers nothing for this long is stuck.
const STUCK: Duration = Duration::from_secs(60);

/// Drives it by random operations, 4 000 of the million of a long run.
pub async fn random_operations_make_no_difference(driven: &mut dyn Driven) {
    let given = std::env::var("YLOCK_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = given.map_or_else(|| crate::part_of(0..5_000, 20), |seed: u64| seed..seed + 1);
    println!("{}: seeds {seeds:?}", crate::part_again());
    for seed in seeds {
        play(driven, seed).await;
    }
}

/// Drives it by the random operations of these seeds, up to the first one whose operations make a difference. Returns that one.
pub async fn first_difference(driven: &mut dyn Driven, seeds: Range<u64>) -> Option<u64> {
    for seed in seeds {
        // Only the play itself may fail here: one that is stuck has made no difference.
        let played = AssertUnwindSafe(Play::new(seed).play(driven)).catch_unwind();
        if while_it_goes_on(STUCK, "the server answers", played).await.is_err() {
            return Some(seed);
        }
    }
    None
}

async fn play(driven: &mut dyn Driven, seed: u64) {
    while_it_goes_on(STUCK, "the server answers", Play::new(seed).play(driven)).await;
}
