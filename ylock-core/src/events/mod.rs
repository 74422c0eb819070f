//! Events: what a client tells of its acquisitions and of what it does by itself, and the way of these events to those that hear them.
//!
//! This room is below the keeper and the layers. The keeper tells [`Observers`] and shows itself as a [`Viewed`]; layers observe. So
//! neither of the two knows the other.

mod event;
mod observers;
mod stream;
mod view;

pub use event::{Acquisition, ClientEvent, End, Outcome, Renewed};
pub(crate) use observers::{Observer, Observers};
pub(crate) use stream::EventBus;
pub use stream::{Event, Events};
pub(crate) use view::Viewed;
pub use view::{ClientView, GroupUsage};
