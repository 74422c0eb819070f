//! The files of keys that this client was the last to use. They stay for a moment: a lock that is taken again and again would have its file made
//! and removed each time, which takes longer than all the rest.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use ylock_core::Key;
use ylock_core::environment::Moment;

/// The most files that are left. A program that takes a lock of another name each time leaves no more.
const MOST: usize = 1000;
/// How long a file is left.
pub(crate) const LEFT_FOR: Duration = Duration::from_secs(1);

/// The keys, each with the moment at which this client has left it.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    keys: Mutex<HashMap<Key, Moment>>,
    /// Notified when there is a key after there was none.
    pub(crate) begun: Arc<Notify>,
}

impl Idle {
    /// Returns whether the file of this key is to stay for now.
    pub(crate) fn keep(&self, key: &Key, now: Moment) -> bool {
        let mut keys = self.keys.lock();
        if let Some(left) = keys.get_mut(key) {
            *left = now;
            return true;
        }
        if keys.len() >= MOST {
            return false;
        }
        let is_first = keys.is_empty();
        keys.insert(key.clone(), now);
        drop(keys);
        if is_first {
            self.begun.notify_one();
        }
        true
    }

    /// Takes those whose time is over, or all.
    pub(crate) fn over(&self, now: Moment, all: bool) -> Vec<Key> {
        let mut keys = self.keys.lock();
        let is_over = |left: &Moment| all || now.since(*left) >= LEFT_FOR;
        let over: Vec<_> =
            keys.iter().filter(|(_, left)| is_over(left)).map(|(key, _)| key.clone()).collect();
        keys.retain(|key, _| !over.contains(key));
        over
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.lock().len()
    }
}
