//! The task that looks at the store, so that keys are answered while the store is slow or away.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use ylock::Ylock;

use super::row::Row;
use super::state::{Look, Question};
use crate::arguments::TopArguments;
use crate::commands::client::Client;
use crate::commands::revoke::done;
use crate::exit::Failed;
use crate::name::Named;
use crate::output::printable;
use crate::store::Store;

/// The shortest pause between two looks.
const SHORTEST: Duration = Duration::from_millis(100);

/// What the task tells the screen.
pub(super) enum News {
    Looked(Box<Look>),
    /// The store is away, for this reason. The task tries again.
    Away(String),
    /// What a revocation has done.
    Revoked(String),
    /// Trying again is of no use.
    Failed(Failed),
}

pub(super) struct Looker {
    pub(super) store: Store,
    pub(super) arguments: TopArguments,
    pub(super) news: mpsc::Sender<News>,
    /// The locks to take away. The task ends when the sender is gone.
    pub(super) orders: mpsc::Receiver<Question>,
    /// The lock that is shown by itself.
    pub(super) single: watch::Receiver<Option<Named>>,
}

impl Looker {
    /// Looks again and again, until the screen is gone.
    pub(super) async fn run(mut self) {
        let mut client = Client::new(self.store);
        let mut pause = Duration::ZERO;
        loop {
            let looked = tokio::select! {
                // A user who has answered does not wait for the end of a long look.
                biased;
                order = self.orders.recv() => {
                    let Some(order) = order else { break };
                    pause = Duration::ZERO;
                    revoked(client.last(), &order).await
                }
                looked = look_after(pause, &mut client, &self.arguments, &self.single) => {
                    pause = self.arguments.every.max(SHORTEST);
                    looked
                }
            };
            let news = looked.unwrap_or_else(why);
            let is_end = matches!(news, News::Failed(_));
            if self.news.send(news).await.is_err() || is_end {
                break;
            }
        }
        client.leave().await;
    }
}

fn why(error: ylock::Error) -> News {
    if error.is_retryable() { away(&error) } else { News::Failed(error.into()) }
}

fn away(error: &ylock::Error) -> News {
    News::Away(printable(&format!("{error:#}")))
}

async fn look_after(
    pause: Duration,
    client: &mut Client,
    arguments: &TopArguments,
    single: &watch::Receiver<Option<Named>>,
) -> ylock::Result<News> {
    sleep(pause).await;
    let ylock = client.get().await?;
    match look(ylock, arguments, single).await {
        Ok(look) => Ok(News::Looked(Box::new(look))),
        Err(error) if client.is_left_after(&error).await => Ok(away(&error)),
        Err(error) => Err(error),
    }
}

async fn look(
    ylock: &Ylock,
    arguments: &TopArguments,
    single: &watch::Receiver<Option<Named>>,
) -> ylock::Result<Look> {
    let begun = Instant::now();
    let mut listing = ylock.list();
    if let Some(group) = &arguments.group {
        listing = listing.of_group(group);
    }
    // A listing may return a lock twice.
    let mut seen = HashMap::new();
    let mut has_more = false;
    while let Some(lock) = listing.next().await? {
        let (named, contenders) = Named::listed(lock);
        has_more = seen.len() >= arguments.limit && !seen.contains_key(&named);
        if has_more {
            break;
        }
        seen.insert(named, contenders);
    }
    let named = single.borrow().clone().filter(|named| !seen.contains_key(named));
    let single = match named {
        Some(named) => Some((named.inspect(ylock).await?, named)),
        None => None,
    };
    let (at, took) = (SystemTime::now(), begun.elapsed());
    let rows = seen.into_iter().map(|(named, seen)| match seen {
        Ok(seen) => Row::new(named, seen, at),
        Err(error) => Row::damaged(named, &error, at),
    });
    let rows = rows.collect();
    let single = single.map(|(seen, named)| Row::new(named, seen, at));
    Ok(Look { rows, has_more, at, took, single })
}

/// Takes a lock away from the holders that the user was asked about: the answer may come long after the question.
async fn revoked(client: Option<&Ylock>, order: &Question) -> ylock::Result<News> {
    // A question names a lock, and there is none before the first look.
    let Some(ylock) = client else { return Ok(News::Revoked("nothing was revoked".to_owned())) };
    let named = &order.named;
    let text = match named.revoke_from(ylock, &order.holders).await? {
        0 => format!("{named}: it has another holder by now, or none; nothing was revoked"),
        count => done(named, count),
    };
    Ok(News::Revoked(printable(&text)))
}
