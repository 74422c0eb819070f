//! A number that is right only if the clients that count take turns, and the times of their turns.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use ylock_core::Token;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Counter(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    value: u64,
    written: u64,
    refused: u64,
    /// The largest token that was seen.
    highest: Option<Token>,
    turns: Vec<Turn>,
}

/// One turn, for no longer than its holder has found its grant valid: the holder may have noticed late that the grant was not.
#[derive(Clone, Copy, Debug)]
struct Turn {
    from: Instant,
    to: Instant,
    token: Token,
}

impl Counter {
    /// Counts under a lock as long as it is valid, but not for longer than `longest`.
    pub(super) async fn take_turn(&self, token: Token, longest: Duration, is_valid: impl Fn() -> bool) {
        let from = Instant::now();
        let mut turn = Turn { from, to: from, token };
        loop {
            let read = self.read(token);
            tokio::time::sleep(Duration::from_millis(1)).await;
            let now = Instant::now();
            if !is_valid() {
                break;
            }
            turn.to = now;
            self.write(token, read + 1);
            if from.elapsed() >= longest {
                break;
            }
        }
        self.0.lock().turns.push(turn);
    }

    fn read(&self, token: Token) -> u64 {
        let mut state = self.0.lock();
        state.highest = state.highest.max(Some(token));
        state.value
    }

    fn write(&self, token: Token, value: u64) {
        let mut state = self.0.lock();
        if state.highest > Some(token) {
            state.refused += 1;
            return;
        }
        state.value = value;
        state.written += 1;
    }

    /// Returns what came of all turns.
    pub(super) fn report(&self) -> Report {
        let state = self.0.lock();
        let mut turns = state.turns.clone();
        turns.sort_by_key(|turn| turn.from);
        let mut report = Report {
            turns: turns.len(),
            overlaps: 0,
            out_of_order: 0,
            written: state.written,
            refused: state.refused,
            lost: state.written - state.value,
        };
        for pair in turns.windows(2) {
            report.overlaps += usize::from(pair[1].from < pair[0].to);
            report.out_of_order += usize::from(pair[1].token <= pair[0].token);
        }
        report
    }
}

/// The number of times that each thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) turns: usize,
    /// Turns that began before the turn before was over.
    pub(super) overlaps: usize,
    /// Turns with a token that was not larger than that of the turn before.
    pub(super) out_of_order: usize,
    pub(super) written: u64,
    /// Writes that were refused because their token was not the largest any more.
    pub(super) refused: u64,
    pub(super) lost: u64,
}
