//! The bound on how long a holder may have a lock.

use std::time::Duration;

use super::OptionValue;
use crate::error::Result;

/// The option `max_hold`: none, or the longest time of a hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MaxHold(pub(super) Option<Duration>);

impl OptionValue for MaxHold {
    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self(None)),
            _ => Duration::from_text(text)
                .map(|longest| Self(Some(longest)))
                .map_err(|_| "must be none or a duration such as 10m or 90s".to_owned()),
        }
    }
}
