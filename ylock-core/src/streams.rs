//! What a program reads one by one, as values of the trait `Stream`.

use futures_util::stream::{Stream, unfold};

use crate::election::{Leader, Leaders};
use crate::error::Result;
use crate::events::{Event, Events};
use crate::listing::{Listed, Listing};

impl Events {
    /// Returns the same events as a [`Stream`], which ends when the client is gone.
    pub fn into_stream(self) -> impl Stream<Item = Event> + Send + 'static {
        unfold(self, |mut events| async move {
            let event = events.next().await?;
            Some((event, events))
        })
    }
}

impl Leaders {
    /// Returns the same changes as a [`Stream`], which never ends by itself. After an error it looks again.
    pub fn into_stream(self) -> impl Stream<Item = Result<Option<Leader>>> + Send + 'static {
        unfold(self, |mut leaders| async move {
            let leader = leaders.next().await;
            Some((leader, leaders))
        })
    }
}

impl Listing {
    /// Returns the same locks as a [`Stream`]. After an error it asks again for what is left.
    pub fn into_stream(self) -> impl Stream<Item = Result<Listed>> + Send + 'static {
        unfold(self, |mut listing| async move {
            let listed = listing.next().await.transpose()?;
            Some((listed, listing))
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, TryStreamExt};

    use crate::Ylock;

    #[tokio::test]
    async fn what_is_read_one_by_one_is_read_as_a_stream() {
        let ylock = Ylock::in_memory();
        let events = ylock.events();
        let leads = ylock.locks("elections").election("reminders").campaign().await.unwrap();
        let listed: Vec<_> = ylock.list().into_stream().try_collect().await.unwrap();
        assert_eq!(listed.len(), 1);
        let leaders = ylock.locks("elections").election("reminders").observe().into_stream();
        let leader = Box::pin(leaders).next().await.unwrap().unwrap();
        assert_eq!(leader.unwrap().term(), leads.term());
        drop((leads, ylock));
        assert!(Box::pin(events.into_stream()).count().await >= 2);
    }
}
