//! The errands of a task: what it wants of a lock, and how it waits for it.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, select};
use ylock_core::environment::Environment;
use ylock_core::{Fairness, Guard, HandOver, Lock, Mode, Options, Result};

use crate::chance::Chance;
use crate::clocks::Clocks;

/// One acquisition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Errand {
    pub(super) mode: Mode,
    pub(super) manner: Manner,
}

/// The manner of waiting.
#[derive(Clone, Copy, Debug)]
pub(super) enum Manner {
    /// As long as the options say.
    Wait,
    Try,
    Within(Duration),
    /// The future is dropped after this time, wherever it is.
    Dropped(Duration),
}

impl Errand {
    pub(super) fn any(chance: &mut Chance, lease: Duration) -> Self {
        let mode = [Mode::Read, Mode::Write, Mode::Write][chance.below(3) as usize];
        let time = chance.between(Duration::ZERO, lease);
        let manner = match chance.below(20) {
            0..=2 => Manner::Try,
            3..=5 => Manner::Within(time),
            6..=8 => Manner::Dropped(time),
            _ => Manner::Wait,
        };
        Self { mode, manner }
    }

    /// Acquires the lock in this manner.
    pub(super) async fn acquire(self, lock: &Lock, clocks: &Clocks) -> Result<Option<Guard>> {
        match self.manner {
            Manner::Wait => self.wait(lock).await,
            Manner::Try if self.mode == Mode::Write => lock.write().now().await,
            Manner::Try => lock.read().now().await,
            Manner::Within(time) if self.mode == Mode::Write => lock.write().within(time).await,
            Manner::Within(time) => lock.read().within(time).await,
            Manner::Dropped(time) => match select(self.wait(lock), clocks.sleep(time)).await {
                Either::Left((answer, _)) => answer,
                Either::Right(_) => Ok(None),
            },
        }
    }

    fn wait(self, lock: &Lock) -> BoxFuture<'_, Result<Option<Guard>>> {
        match self.mode {
            Mode::Write => lock.write().map(|answer| answer.map(Some)).boxed(),
            Mode::Read => lock.read().map(|answer| answer.map(Some)).boxed(),
        }
    }
}

/// Returns options as different users choose them.
pub(super) fn options(chance: &mut Chance, lease: Duration) -> Options {
    let fairness = [Fairness::Fair, Fairness::Fair, Fairness::Strict, Fairness::Unfair];
    let hand_overs = [
        HandOver::default(),
        HandOver::up_to(0, Duration::ZERO),
        HandOver::up_to(5, Duration::from_secs(10)),
    ];
    let is_limited = chance.happens(0.1);
    let options = Options::default()
        .with_lease(lease)
        .with_fairness(fairness[chance.below(4) as usize])
        .with_hand_over(hand_overs[chance.below(3) as usize]);
    if is_limited { options.with_max_wait(lease) } else { options }
}
