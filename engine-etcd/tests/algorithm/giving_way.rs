//! `strict`: a contender that could enter gives way to one behind it that came earlier, and goes on at the end.

use tokio::runtime::{Builder, Runtime};
use ylock_core::engine::Ticket;

use super::*;

fn strict(fixture: &Fixture, ticket: Ticket) -> Request {
    fixture.request(Mode::Write).with_fairness(Fairness::Strict).with_ticket(ticket)
}

/// Two strict contenders in the queue: the first of them could enter when the holder has left, and the one behind it came earlier.
struct Waiting {
    holder: Arc<EtcdEngine>,
    held: Grant,
    middle: Request,
    giving_way: JoinHandle<Option<Grant>>,
    early: JoinHandle<Option<Grant>>,
}

impl Waiting {
    async fn start(fixture: &Fixture, engines: (&Arc<EtcdEngine>, &Arc<EtcdEngine>)) -> Self {
        Self::start_with(fixture, engines, None).await
    }

    /// Starts them. `fate` is that of the first request by which the first one makes its key.
    async fn start_with(
        fixture: &Fixture,
        (first, second): (&Arc<EtcdEngine>, &Arc<EtcdEngine>),
        fate: Option<Fate>,
    ) -> Self {
        let holder = fixture.client();
        let held = holder.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
        let early = strict(fixture, holder.ticket());
        let middle = strict(fixture, holder.ticket());
        fate.into_iter().for_each(|fate| fixture.fake.next_is(fate));
        let mut waiting = Vec::new();
        for (engine, request) in [(first, &middle), (second, &early)] {
            waiting.push(fixture.acquiring(engine, request));
            fixture.until("it waits", || fixture.fake.keys(LOCK).len() == waiting.len() + 1).await;
        }
        // Until they have looked, and have nothing more to ask.
        tokio::time::sleep(LEASE / 100).await;
        fixture.fake.asked();
        let (early, giving_way) = (waiting.remove(1), waiting.remove(0));
        Self { holder, held, middle, giving_way, early }
    }

    async fn holder_leaves(&self) {
        self.holder.release(&self.held.key, self.held.id, None).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_strict_contender_lets_those_go_first_that_came_earlier() {
    let fixture = Fixture::new();
    let [two, three] = [(); 2].map(|()| fixture.client());
    let waiting = Waiting::start(&fixture, (&two, &three)).await;
    waiting.holder_leaves().await;
    let first = granted(waiting.early).await;
    assert!(!waiting.giving_way.is_finished());
    three.release(&first.key, first.id, None).await.unwrap();
    assert!(granted(waiting.giving_way).await.token > first.token);
}

/// A request that makes its former key is on its way for a while yet. What forbids that has the name of the acquisition.
#[tokio::test(start_paused = true)]
async fn a_request_from_before_it_gave_way_makes_nothing() {
    let fixture = Fixture::new();
    let [two, three] = [(); 2].map(|()| fixture.client());
    let waiting = Waiting::start_with(&fixture, (&two, &three), Some(Fate::Late)).await;
    waiting.holder_leaves().await;
    for (engine, next) in [(&three, waiting.early), (&two, waiting.giving_way)] {
        let grant = granted(next).await;
        engine.release(&grant.key, grant.id, None).await.unwrap();
    }
    assert_eq!(fixture.fake.deliver(), [false]);
    assert_eq!(fixture.fake.keys(LOCK), [""; 0]);
}

/// Were its key away for a moment, the one behind it would enter that came later.
#[tokio::test(start_paused = true)]
async fn a_contender_that_gives_way_stays_in_the_queue() {
    let fixture = Fixture::new();
    let [two, three, four] = [(); 3].map(|()| fixture.client());
    let waiting = Waiting::start(&fixture, (&two, &three)).await;
    let late = fixture.acquiring(&four, &strict(&fixture, four.ticket()));
    fixture.until("the late one waits", || fixture.fake.keys(LOCK).len() == 4).await;
    waiting.holder_leaves().await;
    // The one that gives way goes on only when it has asked what has become of that.
    fixture.fake.next_is(Fate::AnswerLost);
    for (engine, next) in [(&three, waiting.early), (&two, waiting.giving_way)] {
        let grant = granted(next).await;
        assert!(!late.is_finished(), "it came later");
        engine.release(&grant.key, grant.id, None).await.unwrap();
    }
    assert!(granted(late).await.token > waiting.held.token);
}

/// The former key stands before its own contender, and the task of the client that removes what is left may be in a runtime that is not driven any
/// more.
#[test]
fn what_is_left_of_a_place_that_was_given_up_goes_when_its_contender_goes_on_or_is_released() {
    for goes_on in [true, false] {
        let runtime =
            || -> Runtime { Builder::new_current_thread().enable_all().start_paused(true).build().unwrap() };
        let (not_driven, driven) = (runtime(), runtime());
        let (fixture, client) = not_driven.block_on(async {
            let fixture = Fixture::new();
            let client = fixture.client();
            let grant = client.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
            client.release(&grant.key, grant.id, None).await.unwrap();
            (fixture, client)
        });
        driven.block_on(async {
            let waiting = Waiting::start(&fixture, (&client, &fixture.client())).await;
            waiting.holder_leaves().await;
            fixture.fake.next_is(Fate::Late);
            if !goes_on {
                fixture.until_asked("put").await;
                waiting.giving_way.abort();
                client.release(&waiting.held.key, waiting.middle.id, None).await.unwrap();
            }
            // Not only when the lease has ended of a client that wants nothing any more.
            let early = tokio::time::timeout(LEASE / 2, granted(waiting.early)).await;
            assert!(early.is_ok(), "goes on: {goes_on}");
        });
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_one_that_is_dropped_before_it_knows_whether_it_has_given_way() {
    for (goes_on, fate) in
        [(false, Fate::Late), (false, Fate::AnswerLost), (true, Fate::Late), (true, Fate::AnswerLost)]
    {
        let fixture = Fixture::new();
        let [two, three] = [(); 2].map(|()| fixture.client());
        let waiting = Waiting::start(&fixture, (&two, &three)).await;
        waiting.holder_leaves().await;
        fixture.fake.next_is(fate);
        fixture.until_asked("put").await;
        waiting.giving_way.abort();
        let (key, middle) = (waiting.held.key, waiting.middle);
        let again = match goes_on {
            true => Some(fixture.acquiring(&two, &middle)),
            false => two.release(&key, middle.id, None).await.map(|_| None).unwrap(),
        };
        let early = granted(waiting.early).await;
        fixture.fake.deliver();
        three.release(&key, early.id, None).await.unwrap();
        if let Some(again) = again {
            let grant = granted(again).await;
            assert!(grant.token > early.token);
            two.release(&key, grant.id, None).await.unwrap();
        }
        assert_eq!(fixture.fake.keys(LOCK), [""; 0], "{goes_on}, {fate:?}");
    }
}

/// The release removes the former place first, and fails: what it was for is not wanted from its beginning on.
#[tokio::test(start_paused = true)]
async fn the_next_place_goes_also_when_the_former_one_cannot_be_removed_yet() {
    let fixture = Fixture::new();
    let [two, three] = [(); 2].map(|()| fixture.client());
    let waiting = Waiting::start(&fixture, (&two, &three)).await;
    waiting.holder_leaves().await;
    // It gives way, and does not hear of it. Two attempts to remove the former place are lost: of the client by itself, and of the release.
    [Fate::AnswerLost, Fate::Late, Fate::Late].into_iter().for_each(|fate| fixture.fake.next_is(fate));
    fixture.until_asked("put").await;
    waiting.giving_way.abort();
    let key = waiting.held.key;
    two.release(&key, waiting.middle.id, None).await.unwrap_err();
    let early = granted(waiting.early).await;
    fixture.until("the next place is gone", || fixture.fake.keys(LOCK).len() == 1).await;
    three.release(&key, early.id, None).await.unwrap();
}
