//! Fencing tokens.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};

/// The number of bits of a [`Token`] that count the hand-overs inside one process.
pub(crate) const HAND_OVER_BITS: u32 = 10;
/// The most local hand-overs that one store token can tell apart.
pub(crate) const MAX_HAND_OVERS: u32 = (1 << HAND_OVER_BITS) - 1;

/// A fencing token: strictly larger for every later holder of the same key.
///
/// Send it with every request to the resource that the lock protects, and let the resource remember the highest
/// tokens it has seen. A read is accepted with a token of at least the highest *write* token, a write with a token
/// of at least the highest of all. Then nothing that a former holder still sends can do harm, whatever pauses or
/// delays occur. Readers that share the lock may share a token.
///
/// It is positive and fits into an `i64`, as most databases need it.
///
/// Tokens are compared with those of the same store only. Those of Cassandra, Redis, files and memory follow the clock. Those of ZooKeeper count its
/// transactions and are far smaller, unless its option `token_floor` puts them above the tokens that resources remember of another engine.
/// An operator who changes to an engine without such an option, or who has two engines at a time, stores the engine's name beside the token
/// and compares only tokens of the same engine, or sets the tokens back that resources remember, while no holder is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(i64);

impl Token {
    /// Returns the token of the `hand_overs`-th local holder under a store's token.
    pub(crate) fn local(store: StoreToken, hand_overs: u32) -> Self {
        debug_assert!(hand_overs <= MAX_HAND_OVERS, "the keeper's bound keeps hand-overs within their bits");
        Self(((store.0 << HAND_OVER_BITS) | u64::from(hand_overs)) as i64)
    }

    /// Returns the token as a number.
    pub fn get(self) -> i64 {
        self.0
    }

    /// Returns the number that the store gave, without the count of hand-overs inside one process.
    pub(crate) fn of_store(self) -> i64 {
        self.0 >> HAND_OVER_BITS
    }

    /// Returns the token with this number, whatever it is. For engines and their tests; programs read a number back by `Token::try_from`.
    #[doc(hidden)]
    pub fn from_number(number: i64) -> Self {
        Self(number)
    }
}

impl From<StoreToken> for Token {
    fn from(store: StoreToken) -> Self {
        Self::local(store, 0)
    }
}

/// Reads a token back from the number that a database keeps.
///
/// # Examples
/// ```
/// # use ylock::Token;
/// # fn main() -> ylock::Result<()> {
/// let seen = Token::try_from(1_806_336_000_000_000_123_i64)?;
/// assert!(Token::try_from(0).is_err()); // no holder has written the row yet
/// # assert_eq!(seen.to_string().parse::<Token>()?, seen); Ok(()) }
/// ```
impl TryFrom<i64> for Token {
    type Error = Error;

    fn try_from(number: i64) -> Result<Self> {
        if number > 0 {
            return Ok(Self(number));
        }
        let message = format!("{number} is no fencing token: every token is above zero");
        Err(Error::new(ErrorKind::Invalid, message))
    }
}

impl FromStr for Token {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let no_number =
            |_| Error::new(ErrorKind::Invalid, format!("{text:?} is no fencing token: not a number"));
        text.parse::<i64>().map_err(no_number).and_then(Self::try_from)
    }
}

impl From<Token> for i64 {
    fn from(token: Token) -> Self {
        token.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The token that an engine gives to one grant: below 2^53, so that the keeper can count local hand-overs under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoreToken(u64);

impl StoreToken {
    /// The largest number a store's token may have.
    pub const MAX: u64 = (1 << 53) - 1;

    /// The smallest token: every other one exceeds it.
    pub const LOWEST: Self = Self(1);

    /// Returns the token with this number, or `None` if it is zero or above [`MAX`](Self::MAX).
    pub fn new(number: u64) -> Option<Self> {
        (1..=Self::MAX).contains(&number).then_some(Self(number))
    }

    /// Returns the token as a number.
    pub fn get(self) -> u64 {
        self.0
    }

    /// Returns this token moved up, so that the [`Token`] of every grant with it is larger than `floor`; `None` if there is no room above
    /// the floor. The order of tokens that are moved above the same floor stays.
    pub fn above(self, floor: Token) -> Option<Self> {
        let floor = u64::try_from(floor.0).unwrap_or(0) >> HAND_OVER_BITS;
        Self::new(self.0 + floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_token_is_still_positive_and_ordered() {
        let last = StoreToken::new(StoreToken::MAX).unwrap();
        let before = StoreToken::new(StoreToken::MAX - 1).unwrap();
        assert!(Token::local(last, MAX_HAND_OVERS).get() > 0);
        assert!(Token::local(last, 0) > Token::local(before, MAX_HAND_OVERS));
        assert!(Token::local(last, 1) > Token::local(last, 0));
        assert_eq!(StoreToken::new(StoreToken::MAX + 1), None);
        assert_eq!(StoreToken::new(0), None);
    }

    #[test]
    fn a_token_is_moved_above_a_floor_and_keeps_its_order() {
        for floor in
            [i64::MIN, 0, 1, 1023, 1024, 1_800_000_000_000_000_000, i64::MAX / 2].map(Token::from_number)
        {
            let first = StoreToken::LOWEST.above(floor).unwrap();
            let second = StoreToken::new(2).unwrap().above(floor).unwrap();
            assert!(Token::local(first, 0) > floor, "{floor}");
            assert!(Token::local(second, 0) > Token::local(first, MAX_HAND_OVERS), "{floor}");
        }
        assert_eq!(StoreToken::LOWEST.above(Token::from_number(0)), Some(StoreToken::LOWEST));
        assert_eq!(StoreToken::LOWEST.above(Token::from_number(i64::MAX)), None);
        assert_eq!(StoreToken(StoreToken::MAX).above(Token::from_number(1024)), None);
    }
}
