//! Places in the queue.

use ylock_core::engine::Ticket;
use ylock_core::queue::Now;

/// Returns a place in the queue as of now. All processes of a machine read one clock, so places are in the order in which they were taken.
pub(crate) fn place(now: Now) -> Ticket {
    Ticket::from_number(i64::try_from(now.moment.as_nanos()).unwrap_or(i64::MAX))
}
