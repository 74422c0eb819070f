//! One lock, and clients that can be told to look.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinHandle;
use ylock_core::engine::{Engine, Grant, Holding, Request};
use ylock_core::environment::{Environment, Moment};
use ylock_engine_cassandra::CassandraEngine;
use ylock_engine_cassandra::algorithm::store::Row;
use ylock_engine_cassandra::hints::{Endpoint, Hint};

use crate::fixture::{Fixture, until};
use crate::post::Post;

/// One lock, clients that can be told to look, and a holder among them.
pub(crate) struct Told {
    pub(crate) fixture: Fixture,
    pub(crate) post: Arc<Post>,
    pub(crate) holder: Arc<CassandraEngine>,
    pub(crate) held: Request,
}

impl Told {
    /// Its holder says that it is inside, since another client came.
    pub(crate) async fn new() -> Self {
        let told = Self::alone().await;
        told.renew().await;
        told
    }

    /// Its holder has entered alone, and its row does not say so yet.
    pub(crate) async fn alone() -> Self {
        let fixture = Fixture::new();
        let post = Post::new(&fixture);
        let holder = Arc::new(post.engine(&fixture));
        let (_, held) = fixture.contestant();
        holder.acquire(&held).await.unwrap().unwrap();
        Self { fixture, post, holder, held }
    }

    pub(crate) async fn renew(&self) {
        let grant = Grant::of(&self.held, None, self.fixture.world.now(), false);
        let holding = Holding::new(grant, None);
        self.holder.renew(&[holding]).await.remove(0).unwrap();
    }

    pub(crate) async fn leaves(&self) {
        self.holder.release(&self.fixture.key, self.held.id, None).await.unwrap();
    }

    /// A waiter that has joined and claims, and its client.
    pub(crate) async fn waiter(&self) -> (Arc<CassandraEngine>, Request, JoinHandle<Moment>) {
        let (_, request) = self.fixture.contestant();
        let engine = Arc::new(self.post.engine(&self.fixture));
        let (waiting, world) = (Arc::clone(&engine), Arc::clone(&self.fixture.world));
        let asked = request.clone();
        let task = tokio::spawn(async move {
            waiting.acquire(&asked).await.unwrap().unwrap();
            world.now()
        });
        until("it waits", || self.row(&request).is_some()).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        (engine, request, task)
    }

    /// A waiter that knows that hints work here.
    pub(crate) async fn told_waiter(&self) -> (Arc<CassandraEngine>, Request, JoinHandle<Moment>) {
        let waiter = self.waiter().await;
        self.ring(&waiter.1, Hint::Next);
        tokio::time::sleep(Duration::from_millis(20)).await;
        waiter
    }

    pub(crate) fn row(&self, request: &Request) -> Option<Row> {
        self.fixture.rows().into_iter().find(|row| row.acquisition == request.id)
    }

    pub(crate) fn endpoint(&self, request: &Request) -> Endpoint {
        self.row(request).and_then(|row| row.hints).expect("it can be told")
    }

    pub(crate) fn ring(&self, request: &Request, hint: Hint) {
        self.post.forge(hint, self.endpoint(request));
    }

    pub(crate) fn reads(&self) -> u64 {
        self.fixture.fake.reads.load(Ordering::Relaxed)
    }

    pub(crate) fn now(&self) -> Moment {
        self.fixture.world.now()
    }
}
