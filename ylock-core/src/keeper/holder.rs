//! A holder of this process: one owner with its counts.

use std::sync::Arc;

use super::attendance::Attendance;
use super::entry::Context;
use super::hold::Hold;
use super::self_wait::{Caller, Site};
use crate::environment::Moment;
use crate::error::{Error, ErrorKind, Result};
use crate::events::{ClientEvent, End};
use crate::key::Key;
use crate::mode::Mode;

/// One owner's hold and its counts.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) hold: Arc<Hold>,
    pub(super) writes: u32,
    pub(super) reads: u32,
    /// The moment at which its first acquisition was granted. Without layers no clock is read for it, and it is that of the grant.
    pub(super) since: Moment,
    pub(super) caller: Caller,
    /// The time of the first renewal at which no caller had read the answer.
    pub(super) unread_since: Option<Moment>,
    /// Of the call that holds it on its way to others, and reads it when it has all of them.
    pub(super) attendance: Option<Arc<Attendance>>,
    /// The place of the last acquisition by which the owner entered again, whether its guard is still there or not.
    pub(super) again: Option<Site>,
}

impl Holder {
    pub(super) fn mode(&self) -> Mode {
        if self.writes > 0 { Mode::Write } else { Mode::Read }
    }

    /// Returns the moment at which its hold ends by its bound, if it has one.
    pub(super) fn end(&self) -> Option<Moment> {
        self.hold.bound.as_ref().map(|bound| bound.end())
    }

    /// Returns what the layers are told of the end of this hold.
    pub(super) fn ended(&self, context: &Context<'_>, mode: Mode, end: End) -> ClientEvent {
        ClientEvent::HoldEnded {
            key: context.key.clone(),
            owner: self.hold.owner,
            mode,
            held: context.now().since(self.since),
            end,
        }
    }

    /// Counts one more acquisition of the same owner, made at this place.
    pub(super) fn reenter(&mut self, mode: Mode, at: Site, key: &Key) -> Result<()> {
        if mode == Mode::Write && self.writes == 0 {
            let message =
                "the owner holds this lock as a reader and wants to write: give the read guard back first";
            return Err(Error::new(ErrorKind::WouldDeadlock, message).with_key(key));
        }
        let count = if mode == Mode::Write { &mut self.writes } else { &mut self.reads };
        *count = count.checked_add(1).ok_or_else(|| {
            Error::new(ErrorKind::Invalid, "one owner holds this lock more than 4 294 967 295 times")
                .with_key(key)
        })?;
        self.again = Some(at);
        Ok(())
    }
}
