//! `ylock top`: a live screen of the locks in the store.

mod keys;
mod looker;
mod row;
mod screen;
mod state;
mod terminal;
#[cfg(test)]
mod tests;

use std::io::{IsTerminal, stdin, stdout};
use std::time::Duration;

use crossterm::event::{Event, EventStream};
use futures_util::StreamExt;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use ylock::Key;

use crate::arguments::TopArguments;
use crate::commands::signals::Signals;
use crate::exit::{Failed, OTHER, Result, USAGE};
use crate::name::Named;
use crate::output::printable;
use crate::store::Store;
use keys::Action;
use looker::{Looker, News};
use state::{Question, State};
use terminal::Screen;

/// So long the end waits for the client to be closed. It holds nothing, so that a store which is away is not worth more.
const CLOSING: Duration = Duration::from_secs(1);

pub(crate) async fn top(store: Store, arguments: TopArguments) -> Result<u8> {
    if !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(Failed::new(USAGE, "top needs a terminal; `ylock list` prints the locks"));
    }
    if let Some(group) = &arguments.group {
        // Said before the screen is there; any name does.
        Key::new(group, "name")?;
    }
    let signals = Signals::listen()?;
    let state = State::new(printable(&store.title()));
    let (news_sender, news) = mpsc::channel(1);
    let (orders, orders_receiver) = mpsc::channel(1);
    let (single, single_receiver) = watch::channel(None);
    let looker =
        Looker { store, arguments, news: news_sender, orders: orders_receiver, single: single_receiver };
    let looker = tokio::spawn(looker.run());
    let done = Top { state, news, orders, single }.show(signals).await;
    // The screen, and the sender of orders with it, is gone: the task ends.
    let _ = timeout(CLOSING, looker).await;
    done
}

/// The screen, and its ways to the task that looks at the store.
struct Top {
    state: State,
    news: mpsc::Receiver<News>,
    orders: mpsc::Sender<Question>,
    single: watch::Sender<Option<Named>>,
}

impl Top {
    /// Shows the screen until the user or a signal ends it.
    async fn show(mut self, mut signals: Signals) -> Result<u8> {
        let mut screen = Screen::open()?;
        let mut events = EventStream::new();
        loop {
            screen.draw(&mut self.state)?;
            let is_end = tokio::select! {
                signal = signals.ending() => return Err(Failed::by_signal(signal)),
                event = events.next() => match event {
                    Some(event) => self.event(&event?).await,
                    None => true,
                },
                news = self.news.recv() => {
                    self.take(news)?;
                    false
                }
            };
            if is_end {
                return Ok(0);
            }
        }
    }

    /// Does what an event says. Returns whether it is the end.
    async fn event(&mut self, event: &Event) -> bool {
        // Others, such as a new size, are drawn.
        let Event::Key(key) = event else { return false };
        let action = self.state.key(*key);
        self.single.send_replace(self.state.details.as_ref().map(|details| details.named.clone()));
        match action {
            Some(Action::Quit) => return true,
            Some(Action::Revoke(question)) => {
                // One that is under way is not overtaken; the task has ended if there is no receiver, and the loop hears of that.
                let is_sent = self.orders.try_send(question).is_ok();
                let text = if is_sent { "revoking" } else { "the last revocation is still under way" };
                self.state.note = Some(text.to_owned());
            }
            None => {}
        }
        false
    }

    fn take(&mut self, news: Option<News>) -> Result<()> {
        match news {
            Some(News::Looked(look)) => self.state.looked(*look),
            Some(News::Away(why)) => self.state.away = Some(why),
            Some(News::Revoked(text)) => self.state.note = Some(text),
            Some(News::Failed(failed)) => return Err(failed),
            None => return Err(Failed::new(OTHER, "the task that looks at the store has ended")),
        }
        Ok(())
    }
}
