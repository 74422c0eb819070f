//! The watches of one connection: all over one stream, from now on, each until it has told of something once.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use http::uri::PathAndQuery;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Status;
use tonic::client::Grpc;
use tonic_prost::ProstCodec;
use ylock_core::environment::Environment;

use super::errors;
use super::live::Way;
use super::messages::{
    Event, WatchAsked, WatchCancelRequest, WatchCreateRequest, WatchRequest, WatchResponse,
};
use crate::algorithm::store::{KeyEvent, Watching};

const WATCH: &str = "/etcdserverpb.Watch/Watch";
/// The filter that leaves puts out, and the kind of an event that is a deletion.
const NO_PUT: i32 = 0;
const DELETED: i32 = 1;

/// The watches of one connection; see the [module](self).
#[derive(Default)]
pub(super) struct Watches(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The stream, once there was a watch. Without it the task that reads the answers has ended, or is about to.
    stream: Option<Stream>,
    waiting: HashMap<i64, Waiting>,
    last: i64,
    ended: bool,
}

/// The way to the task that reads.
struct Stream {
    requests: mpsc::UnboundedSender<WatchRequest>,
    /// Dropped, it ends that task, whatever the server does.
    _reading: oneshot::Sender<()>,
}

/// A watch that has not told of anything.
struct Waiting {
    created: Option<oneshot::Sender<i64>>,
    told: oneshot::Sender<KeyEvent>,
}

impl Watches {
    /// Watches a key from now on.
    pub(super) async fn watch(
        &self,
        way: &Way,
        environment: &Arc<dyn Environment>,
        key: Vec<u8>,
        changes: bool,
    ) -> Result<Watching, Status> {
        let (created, is_created) = oneshot::channel();
        let (tell, told) = oneshot::channel();
        let guard = {
            let mut state = self.0.lock();
            if state.ended {
                return Err(ended());
            }
            state.last += 1;
            let watch_id = state.last;
            state.waiting.insert(watch_id, Waiting { created: Some(created), told: tell });
            let filters = if changes { Vec::new() } else { vec![NO_PUT] };
            let create = WatchCreateRequest { key, filters, watch_id };
            let request = WatchRequest { request_union: Some(WatchAsked::Create(create)) };
            if let Some(stream) = &state.stream {
                // The task that reads may have ended: then `created` is dropped by it.
                let _ = stream.requests.send(request);
            } else {
                let (send, requests) = mpsc::unbounded_channel();
                let (reading, ended) = oneshot::channel::<()>();
                let _ = send.send(request);
                state.stream = Some(Stream { requests: send, _reading: reading });
                let (way, reader) = (way.clone(), Reader(Arc::clone(&self.0)));
                environment.spawn_beside(Box::pin(async move {
                    tokio::select! {
                        () = read(way, reader, requests) => {}
                        _ = ended => {}
                    }
                }));
            }
            Guard { state: Arc::downgrade(&self.0), watch_id }
        };
        let since = is_created.await.map_err(|_| ended())?;
        Ok(Watching { since, told, guard: Box::new(guard) })
    }

    /// Ends all watches.
    pub(super) fn end(&self) {
        let waiting = {
            let mut state = self.0.lock();
            state.ended = true;
            state.stream = None;
            std::mem::take(&mut state.waiting)
        };
        // Those that wait are woken here.
        drop(waiting);
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        self.end();
    }
}

/// The end of a watch that is not wanted any more.
struct Guard {
    state: Weak<Mutex<State>>,
    watch_id: i64,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(state) = self.state.upgrade() else { return };
        let mut state = state.lock();
        let was_there = state.waiting.remove(&self.watch_id);
        if let Some(stream) = &state.stream {
            let cancel = WatchCancelRequest { watch_id: self.watch_id };
            let _ = stream.requests.send(WatchRequest { request_union: Some(WatchAsked::Cancel(cancel)) });
        }
        drop(state);
        drop(was_there);
    }
}

/// What the task that reads has. Dropped with its runtime, or at the end of the stream, it ends the watches: new ones open another stream.
struct Reader(Arc<Mutex<State>>);

impl Drop for Reader {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.0.lock();
            state.stream = None;
            std::mem::take(&mut state.waiting)
        };
        drop(waiting);
    }
}

async fn read(way: Way, reader: Reader, requests: mpsc::UnboundedReceiver<WatchRequest>) {
    if let Err(status) = read_on(&way, &reader, requests).await {
        tracing::debug!(error = %status, "the watches of this connection have ended");
    }
}

async fn read_on(
    way: &Way,
    reader: &Reader,
    requests: mpsc::UnboundedReceiver<WatchRequest>,
) -> Result<(), Status> {
    let mut grpc = Grpc::new(way.channel.clone());
    grpc.ready().await.map_err(errors::not_ready)?;
    let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
    let requests = way.request(UnboundedReceiverStream::new(requests));
    let answers = grpc.streaming(requests, PathAndQuery::from_static(WATCH), codec).await?;
    let mut answers = answers.into_inner();
    while let Some(answer) = answers.next().await {
        hear(&reader.0, answer?);
    }
    Ok(())
}

fn hear(state: &Mutex<State>, answer: WatchResponse) {
    let watch_id = answer.watch_id;
    let mut state = state.lock();
    if answer.created
        && let Some(created) = state.waiting.get_mut(&watch_id).and_then(|waiting| waiting.created.take())
    {
        // The watch may not be wanted any more.
        let _ = created.send(answer.header.map_or(0, |header| header.revision));
    }
    let event = answer.events.last().map(key_event);
    if answer.canceled || event.is_some() {
        let waiting = state.waiting.remove(&watch_id);
        drop(state);
        // Dropped without a word if the server has cancelled the watch.
        if let (Some(waiting), Some(event)) = (waiting, event) {
            let _ = waiting.told.send(event);
        }
    }
}

fn key_event(event: &Event) -> KeyEvent {
    let revision = event.kv.as_ref().map_or(0, |kv| kv.mod_revision);
    KeyEvent { is_deletion: event.kind == DELETED, revision }
}

fn ended() -> Status {
    Status::unavailable("the watches of this connection have ended")
}
