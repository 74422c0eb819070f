//! Tokens grow, and a resource that checks them is safe.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::join_all;
use parking_lot::Mutex;
use ylock_core::{ErrorKind, Mode, Token, Unlocked};

use crate::patient::answered;
use crate::{Client, FencedRegister, Fixture, Stale, eventually, within};

async fn token(client: &Client, mode: Mode) -> Token {
    let guard = client.acquire(mode).await;
    let token = guard.token().expect("the engine declares fencing");
    assert!(token.get() > 0);
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
    token
}

/// Asks as a worker does that is not the holder.
async fn verified(client: &Client, token: Token) -> ylock_core::Result<bool> {
    let key = client.key();
    let verified = answered(|| client.verify(key.group(), key.name(), token));
    within(client.fixture().soon(), "an answer", verified).await
}

/// There is a token if and only if the engine promises that it is safe.
pub async fn a_token_is_given_only_where_it_is_promised(fixture: Fixture) {
    let client = fixture.client().await;
    let promised = fixture.harness().guarantees().fencing;
    for mode in [Mode::Write, Mode::Read] {
        let guard = client.acquire(mode).await;
        assert_eq!(guard.token().is_some(), promised, "{mode}");
        assert_eq!(client.look().await.holders[0].token, guard.token());
        match verified(&client, Token::from_number(1)).await {
            Err(error) if !promised => assert_eq!(error.kind(), ErrorKind::Unsupported),
            answer => assert_eq!((answer.unwrap(), promised), (false, true)),
        }
    }
}

/// The token of every later holder is larger, whichever client it is of, writers and readers in turn.
pub async fn tokens_grow_from_holder_to_holder(fixture: Fixture) {
    let clients = fixture.clients(3).await;
    let mut last = None;
    for round in 0..(fixture.harness().rounds() / 10).max(12) {
        let mode = if round % 4 == 3 { Mode::Read } else { Mode::Write };
        let next = token(&clients[round % 5 % clients.len()], mode).await;
        assert!(last < Some(next), "round {round}: {next} follows {last:?}");
        last = Some(next);
    }
}

/// The token grows also where the lock goes from task to task of one client.
pub async fn tokens_grow_with_local_hand_overs(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let (guard, tokens) = (there.write().await, Arc::new(Mutex::new(vec![])));
    let wait = |_| {
        let (lock, tokens) = (here.lock.clone(), Arc::clone(&tokens));
        tokio::spawn(async move {
            let guard = lock.write().await.unwrap();
            tokens.lock().push(guard.token().unwrap());
        })
    };
    let waiting: Vec<_> = (0..100).map(wait).collect();
    eventually(fixture.soon(), "all wait", || async { here.look().await.queue.len() == 100 }).await;
    tokens.lock().push(guard.token().unwrap());
    drop(guard);
    let bound = fixture.soon() + fixture.harness().trip() * 200;
    within(bound, "all are served", join_all(waiting)).await.into_iter().for_each(|ended| ended.unwrap());
    let last = token(&there, Mode::Write).await;
    tokens.lock().push(last);
    let tokens = tokens.lock();
    assert!(tokens.is_sorted_by(|earlier, later| earlier < later), "{tokens:?}");
}

/// A hundred contenders of several clients get a hundred different tokens.
pub async fn no_two_writers_share_a_token(fixture: Fixture) {
    let clients = fixture.clients(5).await;
    let enter = |number: usize| {
        let lock = clients[number % 5].lock.clone();
        tokio::spawn(async move { lock.write().await.unwrap().token().unwrap() })
    };
    let tasks: Vec<_> = (0..100).map(enter).collect();
    let bound = fixture.soon() + (fixture.harness().trip() + fixture.harness().notice()) * 200;
    let tokens = within(bound, "all are served", join_all(tasks)).await;
    let different: HashSet<_> = tokens.into_iter().map(|token| token.unwrap()).collect();
    assert_eq!(different.len(), 100);
}

/// A writer's token is larger than those of all readers before it, and a reader's is larger than the last writer's.
pub async fn tokens_of_readers_and_writers_are_ordered(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let mut last_write = token(&here, Mode::Write).await;
    for round in 0..4 {
        let readers = [here.read().await, there.read().await, here.read().await];
        let tokens: Vec<_> = readers.iter().map(|reader| reader.token().unwrap()).collect();
        assert!(
            tokens.iter().all(|&token| token > last_write),
            "readers {tokens:?} after a writer {last_write}"
        );
        drop(readers);
        let writer = if round % 2 == 0 { &here } else { &there };
        last_write = token(writer, Mode::Write).await;
        assert!(
            tokens.iter().all(|&token| token < last_write),
            "a writer {last_write} after readers {tokens:?}"
        );
    }
}

/// Readers beside a writer that became a reader, and the writer after them, have tokens in order.
pub async fn tokens_stay_ordered_through_a_downgrade(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let write = here.write().await;
    let written = write.token().unwrap();
    let read = within(fixture.soon(), "a downgrade", write.downgrade()).await.unwrap();
    let readers = [there.read().await, here.read().await];
    assert_eq!(read.token(), Some(written));
    assert!(
        readers.iter().all(|reader| reader.token().unwrap() >= written),
        "a reader is not older than what it reads"
    );
    let newest = readers.iter().filter_map(|reader| reader.token()).max().unwrap();
    drop((read, readers));
    assert!(token(&there, Mode::Write).await > newest);
}

/// A resource that checks tokens accepts every holder of the lock, in whatever order they come.
pub async fn a_fenced_resource_accepts_every_holder(fixture: Fixture) {
    let clients = fixture.clients(3).await;
    let register = Arc::new(FencedRegister::default());
    let rounds = fixture.harness().rounds() / 50;
    let work = |task: usize| {
        let (lock, register) = (clients[task % 3].lock.clone(), Arc::clone(&register));
        tokio::spawn(async move {
            for _ in 0..rounds {
                let guard = lock.write().await.unwrap();
                let value = register.read(guard.token()).expect("a holder may read");
                tokio::task::yield_now().await;
                register.write(guard.token(), value + 1).expect("a holder may write");
                drop(guard);
                let guard = lock.read().await.unwrap();
                register.read(guard.token()).expect("a reader may read");
            }
        })
    };
    let tasks: Vec<_> = (0..9).map(work).collect();
    join_all(tasks).await.into_iter().for_each(|task| task.unwrap());
    let last = clients[0].write().await;
    assert_eq!(register.read(last.token()), Ok(9 * rounds as u64), "no update is lost");
}

/// A holder that does not know that it has lost the lock is rejected by the resource, reading and writing.
pub async fn a_fenced_resource_rejects_one_who_overslept(fixture: Fixture) {
    let (here, there) = (fixture.short_lived().await, fixture.client().await);
    let register = FencedRegister::default();
    let old = here.write().await;
    register.write(old.token(), 1).unwrap();
    here.process().pause();
    let new = within(fixture.lapse(), "another holder gets in", there.lock.write()).await.unwrap();
    assert_eq!(register.read(new.token()), Ok(1));
    assert_eq!(register.write(old.token(), 100), Err(Stale), "a write that comes too late");
    register.write(new.token(), 2).unwrap();
    assert_eq!(register.read(old.token()), Err(Stale), "a read that comes too late");
    assert_eq!(register.write(old.token(), 100), Err(Stale));
    assert_eq!(register.read(new.token()), Ok(2));
    here.process().resume();
    drop((old, new));
    drop(within(fixture.lapse(), "it is free", here.lock.write()).await.unwrap());
}

/// A token is verified while the lock is held with it, whichever client asks; not before, not afterwards, and not for another lock.
pub async fn a_token_is_verified_while_its_grant_is_held(fixture: Fixture) {
    let (holder, next, worker) = (fixture.client().await, fixture.client().await, fixture.client().await);
    let mut former = Token::from_number(1);
    for mode in [Mode::Write, Mode::Read, Mode::Write] {
        for client in [&holder, &next] {
            let guard = client.acquire(mode).await;
            let token = guard.token().unwrap();
            for asking in [&holder, &worker] {
                assert!(verified(asking, token).await.unwrap(), "{mode}: {token} is that of the holder");
                assert!(
                    !verified(asking, former).await.unwrap(),
                    "{mode}: {former} is that of a former holder"
                );
            }
            for wrong in [i64::MIN, -1, 0, token.get() + (1 << 20), i64::MAX] {
                assert!(
                    !verified(&worker, Token::from_number(wrong)).await.unwrap(),
                    "{wrong} is of no holder"
                );
            }
            let group = fixture.group();
            let other =
                within(fixture.soon(), "an answer", worker.verify(group, "another lock", token)).await;
            assert!(!other.unwrap(), "it is the token of another lock");
            assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
            former = token;
        }
    }
    assert!(!verified(&worker, former).await.unwrap(), "none holds the lock");
}

/// An owner sends work, loses the lock, has it again, and then the work arrives: it belongs to what it was before.
pub async fn the_late_work_of_an_owner_that_lost_the_lock_and_has_it_again_is_refused(fixture: Fixture) {
    let (owner, other, worker) =
        (fixture.short_lived().await, fixture.client().await, fixture.client().await);
    let old = owner.write().await;
    let sent_with = old.token().unwrap();
    assert_eq!(other.take_away().await, 1);
    within(fixture.lapse(), "the owner is told", old.lost()).await;
    drop(old);
    let meanwhile = within(fixture.lapse(), "another owner", other.lock.write()).await.unwrap();
    assert!(!verified(&worker, sent_with).await.unwrap());
    drop(meanwhile);
    let again = within(fixture.lapse(), "the owner once more", owner.lock.write()).await.unwrap();
    assert!(!verified(&worker, sent_with).await.unwrap(), "the work is of the time before");
    assert!(verified(&worker, again.token().unwrap()).await.unwrap());
}
