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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn key(name: usize) -> Key {
        Key::new("users", name).unwrap()
    }

    fn after(time: Duration) -> Moment {
        Moment::ZERO.plus(time)
    }

    #[test]
    fn a_file_is_left_for_a_time_that_begins_anew_when_it_is_used() {
        let idle = Idle::default();
        assert!(idle.keep(&key(1), Moment::ZERO) && idle.keep(&key(2), Moment::ZERO));
        assert!(idle.keep(&key(2), after(LEFT_FOR / 2)));
        assert_eq!((idle.over(after(LEFT_FOR / 2), false), idle.len()), (Vec::new(), 2));
        assert_eq!((idle.over(after(LEFT_FOR), false), idle.len()), (vec![key(1)], 1));
        assert_eq!((idle.over(after(LEFT_FOR), true), idle.len()), (vec![key(2)], 0));
    }

    #[test]
    fn so_many_files_are_left_and_no_more() {
        let idle = Idle::default();
        assert!((0..MOST).all(|name| idle.keep(&key(name), Moment::ZERO)));
        assert!(!idle.keep(&key(MOST), Moment::ZERO));
        assert!(idle.keep(&key(0), Moment::ZERO), "it is left already");
        assert_eq!(idle.len(), MOST);
    }

    #[test]
    fn the_first_one_is_told_and_no_other() {
        let idle = Idle::default();
        let told = || idle.begun.notified().now_or_never().is_some();
        assert!(!told());
        idle.keep(&key(1), Moment::ZERO);
        assert!(told());
        idle.keep(&key(2), Moment::ZERO);
        assert!(!told());
    }
}
