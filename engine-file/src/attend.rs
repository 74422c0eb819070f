//! What a client does by itself: it reads its pipe, watches the clients that its waiters wait for, and clears away what dead clients have left.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::oneshot;
use ylock_core::environment;

use crate::client::Client;
use crate::client_id::ClientId;
use crate::driver::{Messages, Watch};
use crate::idle::LEFT_FOR;
use crate::sweep;

/// The time after which a pipe that cannot be read is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// How often a client looks for what dead clients have left.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Starts it, if it does not run.
pub(crate) fn start(client: &Arc<Client>) {
    let weak = Arc::downgrade(client);
    let work = move || -> environment::BoxFuture { Box::pin(attend(Weak::clone(&weak))) };
    client.background_task.start(&client.environment, work);
}

/// Goes on until the client is gone.
async fn attend(client: Weak<Client>) {
    let closed = client.upgrade().map(|client| Arc::clone(&client.closed));
    let Some(closed) = closed else { return };
    let attending = async {
        while let Some(living) = client.upgrade() {
            // All, whatever was told while nothing read the pipe: this begins anew when a runtime has ended.
            living.waiters.wake_all();
            drop(living);
            let Err(error) = attend_in_this_runtime(&client).await else { return };
            tracing::debug!(%error, "the pipe of this client cannot be read; waiters look by themselves meanwhile");
            let Some(pause) = client.upgrade().map(|client| client.environment.sleep(AGAIN)) else { return };
            pause.await;
        }
    };
    tokio::select! {
        // When both have come there is no client any more that could be told anything.
        biased;
        () = closed.notified() => {}
        () = attending => {}
    }
}

/// Returns when the client is gone.
async fn attend_in_this_runtime(client: &Weak<Client>) -> io::Result<()> {
    let Some(living) = client.upgrade() else { return Ok(()) };
    let (mut reader, peers_changed) = (living.pipe.reader()?, Arc::clone(&living.waiters.peers_changed));
    let idle_begun = Arc::clone(&living.idle.begun);
    // Also for what was left before: in a runtime that has ended.
    let (mut sweep, mut tidy) =
        (living.environment.sleep(SWEEP_EVERY), Some(living.environment.sleep(LEFT_FOR)));
    let mut watched = Watched::default();
    watched.follow(&living);
    drop(living);
    loop {
        let event = tokio::select! {
            // What is told comes first: waiters wait for it. A reading takes all that there is, so the others have their turn too.
            biased;
            messages = reader.read() => Event::Told(messages?),
            peer = watched.next() => Event::Ended(peer),
            () = peers_changed.notified() => Event::PeersChanged,
            () = &mut sweep => Event::Sweep,
            () = idle_begun.notified(), if tidy.is_none() => Event::IdleBegun,
            () = async { tidy.as_mut().expect("guarded").await }, if tidy.is_some() => Event::Tidy,
        };
        let Some(living) = client.upgrade() else { return Ok(()) };
        match event {
            Event::Told(Messages::For(messages)) => {
                messages.into_iter().for_each(|message| living.waiters.hear(message))
            }
            Event::Told(Messages::ForAll) => living.waiters.wake_all(),
            Event::Ended(peer) => tell(&living, peer),
            Event::PeersChanged => watched.follow(&living),
            Event::Sweep => {
                watched.let_go(&living);
                living.waiters.forget_ended();
                sweep::sweep(&living).await;
                sweep = living.environment.sleep(SWEEP_EVERY);
            }
            Event::IdleBegun => tidy = Some(living.environment.sleep(LEFT_FOR)),
            Event::Tidy => {
                sweep::remove_idle(&living, false).await;
                tidy = (living.idle.len() > 0).then(|| living.environment.sleep(LEFT_FOR));
            }
        }
    }
}

enum Event {
    Told(Messages),
    /// A client that was watched has ended.
    Ended(ClientId),
    PeersChanged,
    Sweep,
    IdleBegun,
    Tidy,
}

/// The clients that are watched: each one that a waiter waits for, once, however many wait for it. They stay so for a while when none does: the
/// next waiter often waits for the same.
#[derive(Default)]
struct Watched {
    watches: FuturesUnordered<BoxFuture<'static, Option<ClientId>>>,
    stop: HashMap<ClientId, oneshot::Sender<()>>,
}

impl Watched {
    /// Watches those that waiters wait for now.
    fn follow(&mut self, client: &Client) {
        for peer in client.waiters.peers() {
            if self.stop.contains_key(&peer) {
                continue;
            }
            match client.folder.watch(peer) {
                Some(watch) => {
                    let (stop, stopped) = oneshot::channel();
                    self.stop.insert(peer, stop);
                    self.watches.push(until(watch, stopped, peer).boxed());
                }
                None => tell(client, peer),
            }
        }
    }

    /// Watches those no more for which no waiter waits.
    fn let_go(&mut self, client: &Client) {
        let peers = client.waiters.peers();
        self.stop.retain(|peer, _| peers.contains(peer));
    }

    /// Waits until one of them has ended.
    async fn next(&mut self) -> ClientId {
        loop {
            match self.watches.next().await {
                Some(Some(peer)) => {
                    self.stop.remove(&peer);
                    return peer;
                }
                // One that was let go of.
                Some(None) => {}
                None => std::future::pending().await,
            }
        }
    }
}

/// Tells those that wait for this client, if it has ended.
fn tell(client: &Client, peer: ClientId) {
    // Otherwise it could only not be watched: waiters ask by themselves, now and then.
    if client.folder.is_dead(peer) {
        client.waiters.ended(peer);
    }
}

/// Returns the client when it has ended, or nothing when it is not watched any more.
async fn until(watch: Watch, stopped: oneshot::Receiver<()>, peer: ClientId) -> Option<ClientId> {
    tokio::select! {
        // Nothing is told of one that is not watched.
        biased;
        _ = stopped => None,
        () = watch.ended() => Some(peer),
    }
}
