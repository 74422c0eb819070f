//! All sessions of a client: one, until it has so much in the store that the server could not end it; then another one beside it.
//!
//! An acquisition belongs to one of them from before its first request is sent until nothing is left of it, so what is said about a
//! session holds for each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use ylock_core::engine::{AcquisitionId, Request};
use ylock_core::{ErrorKind, Result};

use super::claims::ENOUGH_BYTES;
use super::client::Client;
use super::connection::Connection;
use super::node::LONGEST_NAME;
use super::place::Place;
use super::session::Session;
use super::token_floor;

/// All sessions of a client; see the [module](self).
#[derive(Debug)]
pub(crate) struct Sessions {
    client: Arc<Client>,
    first: Arc<Member>,
    more: Mutex<More>,
}

/// The members after the first. They stay, because a client that needed them will need them again.
#[derive(Debug, Default)]
struct More {
    members: Vec<Arc<Member>>,
    closed: bool,
}

#[derive(Debug)]
struct Member {
    connection: Connection,
    /// Bytes for acquisitions that are on their way in, whether they have a claim yet or not.
    reserved: AtomicUsize,
}

/// A part of a session's room, for as long as an acquisition is on its way in.
#[derive(Debug)]
pub(crate) struct Reservation {
    member: Arc<Member>,
    bytes: usize,
}

impl Sessions {
    pub(crate) async fn open(client: Arc<Client>) -> Result<Self> {
        let connection = Connection::new(&client);
        let session = connection.session().await?;
        let (environment, options) = (&client.environment, &client.options);
        let began = environment.now();
        // This makes the base too. A server that has just started may be slow: it has the whole time for connecting, as for the session.
        while let Err(error) = token_floor::agree(&session, options.token_floor()).await {
            let is_late = environment.now().since(began) >= options.connect_timeout();
            if is_late || session.is_over() || error.kind() != ErrorKind::Unavailable {
                return Err(error);
            }
            environment.sleep(environment.jitter(options.request_timeout() / 50)).await;
        }
        Ok(Self { first: Member::of(connection), more: Mutex::default(), client })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Reserves a part of the session in which an acquisition has a claim, or else of the first session that is not full.
    pub(crate) fn room_for(&self, request: &Request) -> Reservation {
        let bytes = Place::of(self.client.options.base(), &request.key).lock.len() + LONGEST_NAME;
        // Held until the room is reserved, so that no two acquisitions are given the same room.
        let mut more = self.more.lock();
        let all = || self.all(&more);
        let found = all().find(|member| member.has(request.id));
        let found = found.or_else(|| all().find(|member| member.has_room(bytes))).map(Arc::clone);
        let member = found.unwrap_or_else(|| {
            let member = Member::of(Connection::new(&self.client));
            if more.closed {
                member.connection.close();
            }
            more.members.push(Arc::clone(&member));
            member
        });
        member.reserved.fetch_add(bytes, Ordering::Relaxed);
        Reservation { member, bytes }
    }

    /// Returns the session in which an acquisition has a claim.
    pub(crate) fn session_of(&self, id: AcquisitionId) -> Option<Arc<Session>> {
        let more = self.more.lock();
        let mut sessions = self.all(&more).filter_map(|member| member.connection.current());
        sessions.find(|session| session.claims.has(id))
    }

    /// Returns any session, or a new one if there is none.
    pub(crate) async fn any(&self) -> Result<Arc<Session>> {
        self.first.connection.session().await
    }

    /// Returns how many sessions have ended of which something is left in this process.
    pub(crate) fn remnants(&self) -> usize {
        self.all(&self.more.lock()).map(|member| member.connection.remnants()).sum()
    }

    /// Returns how many bytes are reserved for acquisitions that are on their way in.
    pub(crate) fn reserved(&self) -> usize {
        self.all(&self.more.lock()).map(|member| member.reserved.load(Ordering::Relaxed)).sum()
    }

    /// Returns the sessions that have not ended.
    pub(crate) fn current(&self) -> Vec<Arc<Session>> {
        self.all(&self.more.lock()).filter_map(|member| member.connection.current()).collect()
    }

    /// Ends all sessions.
    pub(crate) fn close(&self) {
        let mut more = self.more.lock();
        more.closed = true;
        self.all(&more).for_each(|member| member.connection.close());
    }

    fn all<'a>(&'a self, more: &'a More) -> impl Iterator<Item = &'a Arc<Member>> {
        std::iter::once(&self.first).chain(&more.members)
    }
}

impl Member {
    fn of(connection: Connection) -> Arc<Self> {
        Arc::new(Self { connection, reserved: AtomicUsize::new(0) })
    }

    fn has(&self, id: AcquisitionId) -> bool {
        self.connection.current().is_some_and(|session| session.claims.has(id))
    }

    fn has_room(&self, bytes: usize) -> bool {
        let used = self.connection.current().map_or(0, |session| session.claims.bytes());
        used + self.reserved.load(Ordering::Relaxed) + bytes <= ENOUGH_BYTES
    }
}

impl Reservation {
    pub(crate) fn connection(&self) -> &Connection {
        &self.member.connection
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.member.reserved.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
