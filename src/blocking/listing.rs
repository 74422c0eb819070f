//! The locks that are held or waited for, one after the other.

use std::iter::FusedIterator;

use super::tied::Tied;
use crate::{Listed, Name, Result};

/// The locks that are held or waited for, from [`Ylock::list`](super::Ylock::list); as [`ylock::Listing`](crate::Listing). Nothing is asked before
/// the first lock is wanted.
///
/// An error is the last that it returns, so that a loop ends while the store does not answer; list again then.
#[derive(Debug)]
pub struct Listing {
    listing: Tied<crate::Listing>,
    is_over: bool,
}

impl Listing {
    pub(super) fn new(listing: Tied<crate::Listing>) -> Self {
        Self { listing, is_over: false }
    }

    /// Returns the listing of the locks of one group only.
    #[must_use]
    pub fn of_group(self, group: impl Name) -> Self {
        Self { listing: self.listing.map(|listing| listing.of_group(group)), ..self }
    }

    fn ask(&mut self) -> Result<Option<Listed>> {
        let of = self.listing.tie(());
        of.wait(self.listing.value.next())?
    }
}

impl Iterator for Listing {
    type Item = Result<Listed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.ask().transpose();
        self.is_over = !matches!(next, Some(Ok(_)));
        next
    }
}

impl FusedIterator for Listing {}
