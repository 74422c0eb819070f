//! What a hint is news to: who renews because of it, and who does not.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::engine::Engine;
use ylock_core::{Mode, Options, Ylock};
use ylock_engine_cassandra::algorithm::store::State;
use ylock_engine_cassandra::hints::{Hint, Key};

use crate::fake::LEASE;
use crate::fixture::{Fixture, bounded, until};
use crate::post::Post;
use crate::told::Told;

const MOMENT: Duration = Duration::from_millis(100);

/// As a user has it: with a keeper, which renews by itself.
fn locks(fixture: &Fixture, post: &Arc<Post>) -> ylock_core::Locks {
    Ylock::new(post.engine(fixture)).with_options(Options::default().with_lease(LEASE)).locks("users")
}

/// The heartbeat of the row that says that its client is inside, if one does.
fn heartbeat(fixture: &Fixture) -> Option<i64> {
    let rows = fixture.fake.seen(&fixture.key).rows;
    let held = rows.iter().find(|seen| seen.row.as_ref().is_some_and(|row| row.state == State::Held));
    held.and_then(|seen| seen.heartbeat)
}

/// A renewal whose look shows no writer makes the next one news as well.
#[tokio::test(start_paused = true)]
async fn a_holder_for_reading_hears_of_a_writer_that_comes_after_a_renewal() {
    bounded(async {
        let fixture = Fixture::new();
        let post = Post::new(&fixture);
        let (here, there) = (locks(&fixture, &post), locks(&fixture, &post));
        let _reader = here.read("alice").await.unwrap();
        // Between two renewals.
        tokio::time::sleep(LEASE / 2).await;
        let before = heartbeat(&fixture).expect("its row says that it is inside");
        let writer = tokio::spawn(async move { there.write("alice").await.map(drop) });
        tokio::time::sleep(MOMENT).await;
        assert!(heartbeat(&fixture) > Some(before), "renewed long before it was due");
        writer.abort();
    })
    .await;
}

/// Only readers let more of their own client in as long as they know of no writer.
#[tokio::test(start_paused = true)]
async fn a_holder_for_writing_does_not_renew_because_another_client_waits() {
    bounded(async {
        let fixture = Fixture::new();
        let post = Post::new(&fixture);
        let (here, there) = (locks(&fixture, &post), locks(&fixture, &post));
        let _holder = here.write("alice").await.unwrap();
        tokio::time::sleep(MOMENT).await;
        let writer = tokio::spawn(async move { there.write("alice").await.map(drop) });
        until("it waits", || fixture.rows().len() == 2).await;
        tokio::time::sleep(MOMENT).await;
        assert!(post.sent().iter().any(|(hint, ..)| matches!(hint, Hint::Wait { .. })));
        assert_eq!(heartbeat(&fixture), None, "a renewal would make its row say that it is inside");
        writer.abort();
    })
    .await;
}

/// What another waiter says to it asks for nothing, and takes nothing of what its client may follow.
#[tokio::test(start_paused = true)]
async fn a_reader_that_waits_and_hears_of_a_writer_is_told_of_its_turn_at_once() {
    bounded(async {
        let told = Told::new().await;
        let engine = Arc::new(told.post.engine(&told.fixture));
        let request = told.fixture.again(&told.held).with_mode(Mode::Read);
        let asked = request.clone();
        let waiter = tokio::spawn(async move { drop(engine.acquire(&asked).await) });
        until("it waits", || told.row(&request).is_some()).await;
        tokio::time::sleep(MOMENT).await;
        told.ring(&request, Hint::Next);
        tokio::time::sleep(MOMENT).await;
        let before = told.reads();
        told.ring(&request, Hint::Wait { from: Key::from_u128(7), reads: false });
        told.ring(&request, Hint::Free { second: false });
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(told.reads() - before, 1);
        waiter.abort();
    })
    .await;
}

/// A row that was left takes no part: it says no more where its client can be told, and what comes there all the same asks for nothing.
#[tokio::test(start_paused = true)]
async fn a_client_that_has_left_is_not_told_any_more() {
    bounded(async {
        let told = Told::new().await;
        let endpoint = told.endpoint(&told.held);
        told.leaves().await;
        let row = told.row(&told.held).unwrap();
        assert_eq!((row.state, row.hints), (State::Idle, None));
        told.post.forge(Hint::Next, endpoint);
        assert_eq!(told.holder.hints().dropped, 1);
    })
    .await;
}
