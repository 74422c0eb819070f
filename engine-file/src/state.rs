//! What a lock's file says: the last token, and the contenders.

use std::fmt::Write;

use ylock_core::StoreToken;
use ylock_core::engine::AcquisitionId;
use ylock_core::queue::{Now, Queue};

use crate::client_id::ClientId;

/// The first word of the first line, and the version of this text.
const BEGIN: &str = "ylock 1 ";
const TOKEN: &str = "token ";

/// The contenders for one key, each with its client.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The token of the last grant; zero if there was none. It outlives its grant for as long as the file does.
    pub(crate) last_token: u64,
    pub(crate) queue: Queue<ClientId>,
}

impl State {
    /// Reads the state of the key with this title. `None` if this is not such a text, or is that of another key.
    pub(crate) fn read(text: &str, title: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::default());
        }
        let (first, rest) = text.split_once('\n')?;
        if first.strip_prefix(BEGIN)? != title {
            return None;
        }
        let (token, queue) = rest.split_once('\n')?;
        Some(Self { last_token: token.strip_prefix(TOKEN)?.parse().ok()?, queue: Queue::read(queue)? })
    }

    pub(crate) fn to_text(&self, title: &str) -> String {
        let mut text = String::with_capacity(512);
        let written = writeln!(text, "{BEGIN}{title}\n{TOKEN}{}", self.last_token);
        debug_assert!(written.is_ok(), "a text has room");
        self.queue.write_to(&mut text);
        text
    }

    /// Returns the last token in this text.
    pub(crate) fn token_in(text: &str) -> Option<u64> {
        text.lines().nth(1)?.strip_prefix(TOKEN)?.parse().ok()
    }

    /// Takes the next token: larger than the last one of this file, and than all that were given before the file was made, which are below
    /// `clock`. Returns nothing if there is no larger one.
    fn next_token(&mut self, clock: u64) -> Option<StoreToken> {
        let token = StoreToken::new(clock.max(self.last_token.checked_add(1)?))?;
        self.last_token = token.get();
        Some(token)
    }

    /// Lets a contender in with the next token. Returns nothing if it may not enter, or there is no larger token.
    pub(crate) fn enter(&mut self, id: AcquisitionId, clock: u64, now: Now) -> Option<StoreToken> {
        self.next_token(clock).filter(|token| self.queue.enter(id, *token, now))
    }

    /// Returns whether nothing is lost if the file goes: no contender, and no token that a later file could give again.
    pub(crate) fn is_forgettable(&self, clock: u64) -> bool {
        self.queue.is_empty() && self.last_token < clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: u64 = 1_000_000;

    #[test]
    fn a_state_comes_back() {
        let state = State { last_token: 7, queue: Queue::default() };
        let text = state.to_text("users=alice");
        assert_eq!(State::read(&text, "users=alice").map(|read| read.last_token), Some(7));
        assert_eq!(State::token_in(&text), Some(7));
        assert!(State::read("", "users=alice").is_some());
    }

    #[test]
    fn the_state_of_another_key_and_what_is_none_are_refused() {
        let text = State { last_token: 7, queue: Queue::default() }.to_text("users=alice");
        for (wrong, title) in [
            (&*text, "users=bob"),
            ("ylock 2 users=alice\ntoken 1\n", "users=alice"),
            ("ylock 1 x=y\ntoken x\n", "x=y"),
            ("x", ""),
        ] {
            assert!(State::read(wrong, title).is_none(), "{wrong}");
        }
    }

    #[test]
    fn tokens_grow_also_where_the_file_is_made_anew() {
        let mut state = State::default();
        assert_eq!(state.next_token(CLOCK).unwrap().get(), CLOCK);
        // In the same microsecond, and where the clock has gone back, as it never does.
        assert_eq!(state.next_token(CLOCK).unwrap().get(), CLOCK + 1);
        assert_eq!(state.next_token(5).unwrap().get(), CLOCK + 2);
        // The file stays until the clock is past its token: the next file's first token is the clock.
        assert!(!state.is_forgettable(CLOCK + 2) && state.is_forgettable(CLOCK + 3));
        assert!(State { last_token: StoreToken::MAX, ..State::default() }.next_token(CLOCK).is_none());
        assert!(State { last_token: u64::MAX, ..State::default() }.next_token(CLOCK).is_none());
    }
}
