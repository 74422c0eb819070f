//! Does two things at once, each of which is in vain without the other.

use std::{
    panic::resume_unwind,
    sync::{Mutex, PoisonError},
    thread,
};

use anyhow::{Error, Result};

/// Does both, and waits until both have ended. As soon as one fails, `give_up` is called to end the other; its error is returned.
pub(crate) fn both<A: Send, B>(
    one: impl FnOnce() -> Result<A> + Send,
    other: impl FnOnce() -> Result<B>,
    give_up: impl Fn() + Sync,
) -> Result<(A, B)> {
    let first: Mutex<Option<Error>> = Mutex::default();
    let note = |error| {
        first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        give_up();
    };
    let done = thread::scope(|threads| {
        let one = threads.spawn(|| one().map_err(note).ok());
        let other = other().map_err(note).ok();
        one.join().unwrap_or_else(|panic| resume_unwind(panic)).zip(other)
    });
    let first = first.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.ok_or_else(|| first.expect("what failed has said why"))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use anyhow::bail;

    use super::*;

    #[test]
    fn what_fails_ends_the_other_and_says_why() {
        let (end, is_ended) = channel();
        let waits = move || -> Result<()> {
            is_ended.recv()?;
            bail!("ended")
        };
        let error = both(waits, || -> Result<()> { bail!("broken") }, || _ = end.send(()));
        assert_eq!(error.expect_err("one has failed").to_string(), "broken");
    }

    #[test]
    fn what_both_return_is_returned() {
        assert_eq!(both(|| Ok(1), || Ok(2), || ()).expect("none has failed"), (1, 2));
    }
}
