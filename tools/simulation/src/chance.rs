//! Randomness that a seed decides, the same on every machine and with every version of every library.

use std::time::Duration;

/// SplitMix64: enough for a simulation, and small enough to stay what it is, so that a seed keeps its meaning.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// Creates randomness from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns another source that does not depend on how often this one is used later.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(self.number())
    }

    /// Returns any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, which is not zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    /// Returns whether something happens that has this probability.
    pub fn happens(&mut self, probability: f64) -> bool {
        ((self.number() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    /// Returns a duration from `least` on and below `most`.
    pub fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let span = u64::try_from(most.saturating_sub(least).as_nanos()).unwrap_or(u64::MAX).max(1);
        least + Duration::from_nanos(self.below(span))
    }

    /// Returns a number from `-most` to `most`.
    pub fn around_zero(&mut self, most: i64) -> i64 {
        let span = u64::try_from(most).unwrap_or(0) * 2 + 1;
        i64::try_from(self.below(span)).unwrap_or(0) - most
    }
}
