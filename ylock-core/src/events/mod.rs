//! Events: what a client tells of its acquisitions and of what it does by itself, and the way of these events to those that hear them.

mod event;
mod observers;
mod stream;
mod view;

pub use event::{Acquisition, ClientEvent, End, Outcome, Renewed};
pub(crate) use observers::Observers;
pub(crate) use stream::EventBus;
pub use stream::{Event, Events};
pub use view::{ClientView, GroupUsage};
