//! A limit that there may be none of.

use std::time::Duration;

use super::OptionValue;
use crate::error::Result;

/// The options `max_wait` and `max_hold`: none, or the longest time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Longest(pub(super) Option<Duration>);

impl OptionValue for Longest {
    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self(None)),
            _ => Duration::from_text(text)
                .map(|longest| Self(Some(longest)))
                .map_err(|_| "must be none or a duration such as 10m or 90s".to_owned()),
        }
    }
}
