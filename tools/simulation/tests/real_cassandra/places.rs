//! How many keys are compared at once: as many as the machine answers within a second.

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Each key waits for ends of its TTLs, and meanwhile the others go on.
pub(crate) const MOST: usize = 128;
/// So many begin, before anything is known of the machine.
const AT_FIRST: usize = 16;
/// So many are left, however slow the machine is.
const FEWEST: usize = 4;
/// After so many operations that were done in time there is a place more, and so many places are
/// lost by one that was not.
const STEP: usize = 4;

pub(crate) struct Places {
    free: Semaphore,
    numbers: Mutex<Numbers>,
}

struct Numbers {
    /// How many places there are, free or taken.
    there: usize,
    /// How many there should be.
    wanted: usize,
    /// Operations that were done in time since the last change.
    in_time: usize,
}

impl Places {
    pub(crate) fn new() -> Self {
        let numbers = Mutex::new(Numbers { there: AT_FIRST, wanted: AT_FIRST, in_time: 0 });
        Self { free: Semaphore::new(AT_FIRST), numbers }
    }

    pub(crate) async fn take(&self) -> SemaphorePermit<'_> {
        self.free.acquire().await.expect("it is not closed")
    }

    pub(crate) fn give_back(&self, place: SemaphorePermit<'_>) {
        let numbers = &mut *self.numbers.lock();
        if numbers.there > numbers.wanted {
            numbers.there -= 1;
            place.forget();
        }
    }

    /// Notes that an operation was done within its second.
    pub(crate) fn note_in_time(&self) {
        let numbers = &mut *self.numbers.lock();
        numbers.in_time += 1;
        if numbers.in_time < STEP || numbers.wanted == MOST {
            return;
        }
        numbers.in_time = 0;
        numbers.wanted += 1;
        if numbers.there < numbers.wanted {
            numbers.there += 1;
            self.free.add_permits(1);
        }
    }

    /// Notes that an answer came so late that its key is given up.
    pub(crate) fn note_late(&self) {
        let numbers = &mut *self.numbers.lock();
        numbers.in_time = 0;
        numbers.wanted = numbers.wanted.saturating_sub(STEP).max(FEWEST);
    }
}

#[tokio::test]
async fn there_are_fewer_places_where_answers_are_late_and_more_again_where_they_are_not() {
    let places = Places::new();
    let taken = futures_util::future::join_all((0..AT_FIRST).map(|_| places.take())).await;
    (0..AT_FIRST).for_each(|_| places.note_late());
    taken.into_iter().for_each(|place| places.give_back(place));
    assert_eq!(places.free.available_permits(), FEWEST);
    (0..2 * STEP * MOST).for_each(|_| places.note_in_time());
    assert_eq!(places.free.available_permits(), MOST);
}
