//! Whether a call that blocks its thread would stall an async runtime.
//!
//! `Handle::try_current` does not tell: it has a runtime inside `spawn_blocking` and `block_in_place` as well, where to block is right. What
//! `Runtime::block_on` goes by is private. But what tokio polls, a task or the future of `block_on`, has a budget, and what may block has none:
//! that shows from outside. (A task has it again after `block_in_place`; the future of `block_on` only when it is polled anew, in tokio 1.54.)

use std::task::{Context, Poll, Waker};

use tokio::runtime::Handle;
use tokio::task::coop::{has_budget_remaining, poll_proceed};

use crate::{Error, ErrorKind, Result};

/// More steps than any budget has: tokio keeps it in one byte.
const MORE_THAN_A_BUDGET: usize = 256;

/// Fails where the caller must not block its thread.
pub(super) fn refuse_to_stall() -> Result<()> {
    let message = match Handle::try_current() {
        Ok(_) if has_budget() => {
            "a blocking call inside an async runtime would stall it: use the async API of ylock here, or make the call in \
             `tokio::task::spawn_blocking`"
        }
        // To enter the runtime of the client would panic.
        Err(error) if error.is_thread_local_destroyed() => "a blocking call is made while its thread ends",
        _ => return Ok(()),
    };
    Err(Error::new(ErrorKind::Invalid, message))
}

/// Returns whether tokio limits how much is done in this poll. What is taken from the budget to find out is put back.
fn has_budget() -> bool {
    let mut context = Context::from_waker(Waker::noop());
    let mut taken = Vec::new();
    while has_budget_remaining() && taken.len() < MORE_THAN_A_BUDGET {
        if let Poll::Ready(step) = poll_proceed(&mut context) {
            taken.push(step);
        }
    }
    let is_limited = !has_budget_remaining();
    // The last one first: each puts back the budget that it has found.
    while taken.pop().is_some() {}
    is_limited
}
