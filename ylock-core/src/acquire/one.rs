//! The acquisition of one lock, down through the layers to the keeper.

use std::sync::OnceLock;
use std::time::Duration;

use super::told::{acquisition, layers_over, tell};
use super::work::new_owner;
use crate::deadline::timed_out;
use crate::error::{Error, ErrorKind, Result};
use crate::guard::Guard;
use crate::keeper::{AcquireArgs, Acquired, Before, Site};
use crate::key::Key;
use crate::layer::Layers;
use crate::mode::Mode;
use crate::owner::Owner;
use crate::terms::Terms;

/// Acquires, and waits at most as long as the options say.
pub(crate) async fn acquire_or_time_out(terms: &Terms, key: Key, mode: Mode, at: Site) -> Result<Guard> {
    let (max_wait, before) = (terms.handle.options.max_wait(), OnceLock::new());
    let acquired = acquire_within(terms, key.clone(), mode, max_wait, Some(&before), at).await?;
    acquired.ok_or_else(|| {
        let mut message = timed_out(&format!("the {mode} lock was not granted"), max_wait);
        if let Some(before) = before.get() {
            message.push_str(&format!(": {before}"));
        }
        Error::new(ErrorKind::TimedOut, message).with_key(&key)
    })
}

/// Acquires, or returns `None` when the wait is over. Notes in `before` which holders and waiters are before the caller, shortly before that.
pub(crate) async fn acquire_within(
    terms: &Terms,
    key: Key,
    mode: Mode,
    max_wait: Option<Duration>,
    before: Option<&OnceLock<Before>>,
    at: Site,
) -> Result<Option<Guard>> {
    let owner = terms.owner.or_else(Owner::current);
    let args = AcquireArgs {
        key,
        mode,
        owner,
        max_wait,
        answer_within: None,
        options: &terms.handle.options,
        attendance: None,
        before,
        at,
    };
    let layers = layers_over(terms);
    if layers.is_empty() {
        Ok(terms.handle.keeper.acquire(args).await?.map(Guard::new))
    } else {
        acquire_watched(terms, layers, args).await
    }
}

/// Acquires once more for an owner that holds the lock; `None` where that is not so, or a layer is to be told.
pub(super) fn reenter(terms: &Terms, key: &Key, mode: Mode, at: Site) -> Option<Result<Guard>> {
    let owner = terms.owner.or_else(Owner::current)?;
    if !layers_over(terms).is_empty() {
        return None;
    }
    let again = terms.handle.keeper.reenter(key, owner, mode, at)?;
    Some(again.map(Guard::new))
}

/// Acquires, and tells the layers.
async fn acquire_watched(terms: &Terms, layers: Layers, mut args: AcquireArgs<'_>) -> Result<Option<Guard>> {
    let owner = *args.owner.get_or_insert_with(|| new_owner(terms));
    let acquisition = acquisition(terms, &args.key, args.mode, owner, args.max_wait);
    let acquiring = terms.handle.keeper.acquire(args);
    let told = tell(terms, layers, acquisition, acquiring, Acquired::outcome).await?;
    Ok(told.map(|(acquired, told)| told.watch(Guard::new(acquired))))
}
