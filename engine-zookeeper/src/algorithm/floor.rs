//! The floor of the tokens as a value. [`token_floor`](super::token_floor) says where it is stored.

use std::sync::{Arc, OnceLock};

use ylock_core::{StoreToken, Token};

/// The floor that the sessions of a client share. It is zero until it has been
/// [agreed](super::token_floor::agree) upon, which is before the first acquisition.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenFloor(Arc<OnceLock<Token>>);

impl TokenFloor {
    /// Returns the token of a contender, above the floor; `None` if there is no room for it.
    pub(super) fn token(&self, transaction: StoreToken) -> Option<StoreToken> {
        transaction.above(self.get())
    }

    pub(super) fn get(&self) -> Token {
        self.0.get().copied().unwrap_or(Token::from_number(0))
    }

    /// Uses this floor, unless one was agreed upon before.
    pub(super) fn agree(&self, floor: Token) {
        self.0.get_or_init(|| floor);
    }
}
