//! Waiters that a renewal is about to announce. One that is released meanwhile must not come back by it: a renewal waits where another process
//! has the lock's file locked, and a release need not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use ylock_core::engine::AcquisitionId;

/// Each announcement that is under way, and whether its waiter has been released since it began.
#[derive(Debug, Default)]
pub(crate) struct Announcing(Mutex<Vec<(AcquisitionId, Arc<AtomicBool>)>>);

/// One of them; over when this is dropped.
#[derive(Debug)]
pub(crate) struct Announcement<'a> {
    all: &'a Announcing,
    is_void: Arc<AtomicBool>,
}

impl Announcing {
    pub(crate) fn begin(&self, waiter: AcquisitionId) -> Announcement<'_> {
        let is_void = Arc::new(AtomicBool::new(false));
        self.0.lock().push((waiter, Arc::clone(&is_void)));
        Announcement { all: self, is_void }
    }

    /// Makes void what is under way. Called under the lock of the file: an announcement is made before that, or not at all.
    pub(crate) fn released(&self, waiter: AcquisitionId) {
        let all = self.0.lock();
        all.iter()
            .filter(|(id, _)| *id == waiter)
            .for_each(|(_, is_void)| is_void.store(true, Ordering::SeqCst));
    }
}

impl Announcement<'_> {
    /// Asked under the lock of the file.
    pub(crate) fn is_void(&self) -> bool {
        self.is_void.load(Ordering::SeqCst)
    }
}

impl Drop for Announcement<'_> {
    fn drop(&mut self) {
        self.all.0.lock().retain(|(_, is_void)| !Arc::ptr_eq(is_void, &self.is_void));
    }
}
