//! The client of a command that goes on looking: made anew when it is of no use any more.

use ylock::{Error, Ylock};

use crate::store::Store;

/// A client of a store, or none yet.
#[derive(Debug)]
pub(crate) struct Client {
    store: Store,
    ylock: Option<Ylock>,
    /// True until it was asked for once more after it was made.
    is_new: bool,
}

impl Client {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, ylock: None, is_new: true }
    }

    /// Returns the client, connected if there is none.
    pub(crate) async fn get(&mut self) -> ylock::Result<&Ylock> {
        self.is_new = self.ylock.is_none();
        if self.is_new {
            self.ylock = Some(ylock::connect_to(self.store.url.clone()).await?);
        }
        Ok(self.ylock.as_ref().expect("it was connected"))
    }

    /// Returns the client, if there is one.
    pub(crate) fn last(&self) -> Option<&Ylock> {
        self.ylock.as_ref()
    }

    /// Leaves a client that is of no use any more, as that of a folder that was removed and made again: [`get`](Self::get) then connects anew. Returns
    /// whether it did. Where an answer fails that another try may succeed with, the client stays; and the error of one that is new is final.
    pub(crate) async fn is_left_after(&mut self, error: &Error) -> bool {
        let is_left = !error.is_retryable() && !self.is_new;
        if is_left {
            self.leave().await;
        }
        is_left
    }

    /// Closes the client.
    pub(crate) async fn leave(&mut self) {
        if let Some(ylock) = self.ylock.take() {
            ylock.close().await;
        }
    }
}
