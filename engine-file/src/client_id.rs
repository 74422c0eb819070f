//! The number of a client in a folder.

use std::fmt;
use std::str::FromStr;

use ylock_core::environment::Environment;

/// One client, for ever: the name of its pipe, and what a lock's file says of whose a contender is. Drawn by chance, and never used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ClientId(u64);

impl ClientId {
    pub(crate) fn draw(environment: &dyn Environment) -> Self {
        // Zero is what a contender has before it has a client.
        Self(environment.random().max(1))
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for ClientId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(text, 16).map(Self)
    }
}
