//! Waiters far behind in the queue, which sleep without looks.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinHandle;
use ylock_core::engine::{Engine, Holding, Request};
use ylock_core::environment::{Environment, Moment};
use ylock_engine_cassandra::CassandraEngine;
use ylock_engine_cassandra::algorithm::store::State;
use ylock_engine_cassandra::options::Notify;

use crate::fake::LEASE;
use crate::fixture::{Fixture, bounded, until};
use crate::post::Post;

/// A holder, which has renewed once and so says that it is inside, and those that wait for it.
struct Queue {
    fixture: Fixture,
    waiters: Vec<(Arc<CassandraEngine>, Request, JoinHandle<()>)>,
}

impl Queue {
    async fn of(length: usize) -> Self {
        let fixture = Fixture::new();
        let (holder, held) = fixture.contestant();
        let grant = holder.acquire(&held).await.unwrap().unwrap();
        let mut queue = Self { fixture, waiters: Vec::new() };
        for _ in 0..length {
            queue.joins().await;
        }
        holder.renew(&[Holding::new(grant, None)]).await.remove(0).unwrap();
        queue
    }

    async fn joins(&mut self) {
        let (engine, request) = self.fixture.contestant();
        let (engine, asked) = (Arc::new(engine), request.clone());
        let waiting = Arc::clone(&engine);
        let task = tokio::spawn(async move { drop(waiting.acquire(&asked).await) });
        until("it waits", || self.fixture.rows().iter().any(|row| row.acquisition == request.id)).await;
        self.waiters.push((engine, request, task));
    }

    /// The first of those that wait give up, but for one.
    async fn gives_up(&mut self, count: usize) {
        for (engine, request, task) in self.waiters.drain(1..=count) {
            task.abort();
            engine.release(&self.fixture.key, request.id, None).await.unwrap();
        }
    }

    /// Ends all but the last waiter, whose rows stay.
    fn stops_all_but_the_last(&self) {
        let all = self.waiters.split_last().expect("one waits").1;
        all.iter().for_each(|(_, _, task)| task.abort());
    }

    /// The moment at which the row of the last waiter was written last.
    fn written(&self) -> i64 {
        let last = &self.waiters.last().expect("one waits").1;
        let rows = self.fixture.fake.seen(&self.fixture.key).rows;
        let own = rows.iter().find(|seen| seen.row.as_ref().is_some_and(|row| row.acquisition == last.id));
        own.and_then(|seen| seen.heartbeat).expect("it is there")
    }

    fn reads(&self) -> (u64, u64) {
        let fake = &self.fixture.fake;
        (fake.reads.load(Ordering::Relaxed), fake.token_reads.load(Ordering::Relaxed))
    }

    fn now(&self) -> Moment {
        self.fixture.world.now()
    }
}

/// A look costs as many rows as there are waiters.
#[tokio::test(start_paused = true)]
async fn a_sleeper_shows_itself_without_a_look() {
    bounded(async {
        let mut queue = Queue::of(60).await;
        queue.gives_up(8).await;
        queue.stops_all_but_the_last();
        // By then it has seen the eight leave, and the holder stay.
        tokio::time::sleep(LEASE / 4).await;
        let (looks, tokens) = queue.reads();
        let (mut written, mut last, mut shown) = (queue.written(), queue.now(), 0);
        // No row has been dead by then.
        let end = queue.now().plus(LEASE * 13 / 20);
        while queue.now() < end {
            queue.fixture.fake.pass_a_turn(&queue.fixture.key);
            tokio::time::sleep(Duration::from_millis(100)).await;
            if queue.written() != written {
                (written, last, shown) = (queue.written(), queue.now(), shown + 1);
            }
            assert!(queue.now().since(last) <= LEASE / 3 + Duration::from_millis(200), "its row is old");
        }
        let (looks, tokens) = (queue.reads().0 - looks, queue.reads().1 - tokens);
        assert!((2..=6).contains(&tokens), "{tokens} reads of the last tokens");
        assert!(
            looks <= tokens + 1 && shown >= 2,
            "{looks} looks, {tokens} reads of the last tokens, {shown} times shown"
        );
    })
    .await;
}

/// It would find its turn a long time later otherwise: it has not learnt yet that turns have become shorter.
#[tokio::test(start_paused = true)]
async fn a_sleeper_looks_when_no_turn_passes_any_more() {
    bounded(async {
        let mut queue = Queue::of(200).await;
        queue.gives_up(8).await;
        queue.stops_all_but_the_last();
        for _ in 0..60 {
            queue.fixture.fake.pass_a_turn(&queue.fixture.key);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let (looks, now) = (queue.reads().0, queue.now());
        until("it looks", || queue.reads().0 > looks).await;
        // Two intervals of 2.5 s, each a tenth more or less.
        assert!(queue.now().since(now) <= Duration::from_millis(5_600), "{:?}", queue.now().since(now));
    })
    .await;
}

/// Were the pause counted from the beginning of a look, one would follow the other, and make all of them slower.
#[tokio::test(start_paused = true)]
async fn a_slow_store_makes_no_sleeper_look_without_a_pause() {
    bounded(async {
        let queue = Queue::of(4).await;
        queue.stops_all_but_the_last();
        // Longer than until the tokens are to be read again.
        let slow = Duration::from_millis(900);
        queue.fixture.fake.slow_reads(slow);
        tokio::time::sleep(slow * 2).await;
        let (looks, _) = queue.reads();
        tokio::time::sleep(LEASE / 2).await;
        let looks = queue.reads().0 - looks;
        // Each is followed by nine tenths of half a second at least.
        assert!((1..=4).contains(&looks), "{looks} looks");
    })
    .await;
}

/// With `notify=auto` nothing is sent to another kind of address than the own one, whatever the rows of other clients show.
#[tokio::test(start_paused = true)]
async fn hints_go_only_where_they_are_safe() {
    bounded(async {
        for (own, other, is_told) in [
            ([10, 0, 0, 1], [192, 168, 0, 1], true),
            ([10, 0, 0, 1], [127, 0, 0, 1], false),
            ([10, 0, 0, 1], [8, 8, 8, 8], false),
            ([127, 0, 0, 1], [127, 0, 0, 2], true),
            ([127, 0, 0, 1], [10, 0, 0, 1], false),
            ([8, 8, 8, 8], [8, 8, 8, 9], false),
        ] {
            let fixture = Fixture::new();
            let post = Post::new(&fixture);
            let holder = post.engine_at(other, Notify::Udp, &fixture);
            let (_, held) = fixture.contestant();
            holder.acquire(&held).await.unwrap().unwrap();
            let waiter = Arc::new(post.engine_at(own, Notify::Auto, &fixture));
            let (_, request) = fixture.contestant();
            let task = tokio::spawn(async move { drop(waiter.acquire(&request).await) });
            fixture.until(State::Waiting, 1).await;
            tokio::time::sleep(LEASE / 10).await;
            let was_told = post.sent().iter().any(|(_, to, _)| to.ip() == IpAddr::from(other));
            assert_eq!(was_told, is_told, "from {own:?} to {other:?}");
            task.abort();
        }
    })
    .await;
}
