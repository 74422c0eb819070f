//! One client of the engine: what it has, and what it asks of the scripts.

use std::borrow::Cow;
use std::sync::{Arc, Weak};
use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Grant, Holding, LossReason, Release, Renewal, Request};
use ylock_core::environment::{Environment, Moment, SystemEnvironment};
use ylock_core::{Key, Result};

use crate::clock::ServerClock;
use crate::driver::{Answer, Call, Heard, Inbox, Store, scripts};
use crate::options::{RedisOptions, Topology, Waiting};
use crate::place;
use crate::records::Records;
use crate::words::{alive, mode_word, ticket_word};

/// The time for which a request without an answer may still be on its way: longer than any connection holds it back.
const LATE: Duration = Duration::from_secs(60);

/// The state of one client of the engine.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) store: Arc<Store>,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) waiting: Waiting,
    pub(crate) min_replicas: u32,
    /// True if tokens grow from holder to holder, also when another server takes over; otherwise there are no tokens.
    pub(crate) fencing: bool,
    pub(crate) records: Arc<Records>,
    /// The beginning of the names of all locks.
    prefix: String,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) clock: Arc<ServerClock>,
}

impl Client {
    /// Connects to the servers. The options have been checked.
    pub(crate) async fn connect(options: &RedisOptions, fencing: bool) -> Result<Arc<Self>> {
        let environment = SystemEnvironment::shared();
        let store = Arc::new(Store::open(options, &environment).await?);
        let in_a_cluster = *options.topology() == Topology::Cluster;
        // Short: with the owner beside it, it must fit into 64 bytes, the longest value that Redis keeps in the compact form of a hash.
        let name = format!("{:016x}", environment.random());
        let client = Arc::new_cyclic(|client: &Weak<Self>| {
            let client = Weak::clone(client);
            let hear = move |heard| {
                if let Some(client) = client.upgrade() {
                    client.hear(heard);
                }
            };
            Self {
                inbox: Inbox::new(name, in_a_cluster, &store, &environment, Box::new(hear)),
                clock: ServerClock::new(&store, &environment),
                store,
                environment,
                waiting: options.waiting(),
                min_replicas: options.min_replicas(),
                fencing,
                records: Arc::default(),
                prefix: options.prefix().to_owned(),
            }
        });
        // In a cluster there is a channel for each part of the locks, and which of these are needed is known only later.
        if options.waiting() == Waiting::Told && !in_a_cluster {
            client.inbox.subscribe("").await?;
        }
        client.clock.ask().await?;
        Ok(client)
    }

    pub(crate) fn now(&self) -> Moment {
        self.environment.now()
    }

    /// Creates a call of a script for a lock.
    pub(crate) fn call(&self, script: &'static scripts::Script, key: &Key) -> Call {
        Call::at(script, place::of(&self.prefix, key))
    }

    /// Returns the channel on which the server shall tell this client: `-`, none, if the client asks by itself, or as long as it would not
    /// hear a message. A waiter with a channel that cannot be told is passed over, and that may be again and again; for a waiter without a
    /// channel the server waits until its next question.
    pub(crate) fn channel(&self, place: &str) -> Cow<'_, str> {
        let hears = self.waiting == Waiting::Told && self.inbox.hears(place);
        if hears { self.inbox.channel(place) } else { "-".into() }
    }

    /// Makes sure that messages about a lock are heard. Waiters are woken when they are, and ask: their turn may have come before.
    pub(crate) fn listen(&self, key: &Key) {
        self.inbox.listen(&place::of(&self.prefix, key));
    }

    /// Handles what the inbox has heard.
    fn hear(self: &Arc<Self>, heard: Heard) {
        let Heard::LetIn { id, told, place } = heard else { return self.records.wake_all() };
        if self.records.deliver(id, told) {
            return;
        }
        // No acquisition of this client waits for this grant or has it: the grant was caused by a request that came late, or is being given
        // back at this moment. Left alone, it would keep other contenders out for a lease.
        let client = Arc::clone(self);
        self.environment.spawn(Box::pin(async move {
            if let Err(error) = client.undo(Call::at(&scripts::RELEASE, place), id, None).await {
                tracing::debug!(
                    error = format!("{error:#}"),
                    "a grant that no caller waits for could not be given back; it ends with its lease"
                );
            }
        }));
    }

    /// Undoes all that there is of an acquisition, for good.
    pub(crate) async fn leave(&self, key: &Key, id: AcquisitionId) -> Result<()> {
        self.release(key, id, None).await.map(drop)
    }

    pub(crate) async fn release(
        &self,
        key: &Key,
        id: AcquisitionId,
        next: Option<&Request>,
    ) -> Result<Release> {
        let was_there = self.undo(self.call(&scripts::RELEASE, key), id, next).await?;
        Ok(if was_there { Release::Released } else { Release::WasGone })
    }

    /// Undoes an acquisition, and lets `next` join the queue. Returns whether there was a grant or a place. All releases go through here.
    async fn undo(&self, release: Call, id: AcquisitionId, next: Option<&Request>) -> Result<bool> {
        let late = if self.records.end(id) { Duration::ZERO } else { LATE };
        let call = release.id(id).arg(late.as_millis());
        let Some(next) = next else { return self.store.call(call).await?.flag() };
        // This request may let `next` in: a copy of it may arrive after `next` was undone.
        let mark = self.records.begin(next.id);
        let was_there = self.store.call(self.with_next(call, next)).await?.flag();
        mark.answered();
        was_there
    }

    fn with_next(&self, call: Call, next: &Request) -> Call {
        let channel = self.channel(call.place());
        call.id(next.id)
            .arg(mode_word(next.mode))
            .arg(next.lease.as_millis())
            .arg(ticket_word(next.ticket))
            .arg(alive(next).as_millis())
            .owner(next.owner)
            .arg(&*channel)
            .arg(next.client.as_str())
    }

    pub(crate) async fn renew(&self, holding: &Holding) -> Result<Renewal> {
        let Grant { key, id, mode, lease, .. } = &holding.grant;
        let mut call = self.call(&scripts::RENEW, key).id(*id).arg(mode_word(*mode)).arg(lease.as_millis());
        if let Some(next) = &holding.next {
            let channel = self.channel(call.place());
            call = call
                .id(next.id)
                .arg(mode_word(next.mode))
                .arg(next.lease.as_millis())
                .arg(ticket_word(next.ticket))
                .owner(next.owner)
                .arg(&*channel)
                .arg(next.client.as_str());
        }
        let sent = self.now();
        let mut answer = self.store.call(call).await?;
        read_renewal(&mut answer, sent)
    }
}

fn read_renewal(answer: &mut Answer, sent: Moment) -> Result<Renewal> {
    if answer.flag()? {
        return Ok(Renewal::Renewed { sent, contended: answer.flag()? });
    }
    Ok(Renewal::Lost(match answer.word()?.as_str() {
        "revoked" => LossReason::Revoked,
        _ => LossReason::Gone,
    }))
}
