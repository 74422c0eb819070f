//! Keys go from lease to lease of their client: what is kept in mind of that when answers are lost, leases end, and very many want one.

use super::*;

/// A holder, and the waiter of its client that stands behind it.
async fn held_with_next(fixture: &Fixture, engine: &Arc<EtcdEngine>) -> (Grant, Request) {
    let held = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    (held, fixture.request(Mode::Write))
}

/// Two requests that announce a waiter are under way, the later one under a younger lease. What forbids them must last as long as the later one can do anything.
#[tokio::test(start_paused = true)]
async fn an_announcement_that_arrives_after_the_lease_of_the_one_before_has_ended_makes_nothing() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let (mut held, next) = held_with_next(&fixture, &engine).await;
    for _ in 0..2 {
        tokio::time::sleep(LEASE / 3).await;
        [Fate::Answered, Fate::Late].into_iter().for_each(|fate| fixture.fake.next_is(fate));
        let holding = Holding::new(held.clone(), Some(next.clone()));
        match engine.renew(&[holding]).await.remove(0).unwrap() {
            Renewal::Renewed { sent, .. } => held.sent = sent,
            other => panic!("{other:?}"),
        }
    }
    engine.release(&held.key, next.id, None).await.unwrap();
    engine.release(&held.key, held.id, None).await.unwrap();
    assert_eq!(fixture.fake.keys(LOCK), [""; 0]);
    // The lease of the first announcement ends, that of the second one is there for another third of the lock's.
    tokio::time::sleep(LEASE * 6 / 5 - LEASE / 6).await;
    fixture.fake.pass();
    let carried_out = fixture.fake.deliver();
    let waiting = fixture.client();
    let entered =
        tokio::time::timeout(LEASE / 10, waiting.acquire(&fixture.request(Mode::Write))).await.is_ok();
    assert!(
        fixture.fake.keys("/w/").len() == 1 && entered,
        "carried out: {carried_out:?}, there: {:?}, entered: {entered}",
        fixture.fake.keys(LOCK)
    );
}

/// A client with very many locks fills its leases when it renews them.
#[tokio::test(start_paused = true)]
async fn a_waiter_behind_a_holder_keeps_its_place_also_where_the_lease_is_full() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let (held, next) = held_with_next(&fixture, &engine).await;
    tokio::time::sleep(LEASE / 3).await;
    let mut held = held;
    let renewed = engine.renew(&[Holding::new(held.clone(), Some(next.clone()))]).await.remove(0).unwrap();
    let Renewal::Renewed { sent, .. } = renewed else { panic!("{renewed:?}") };
    held.sent = sent;
    assert_eq!(fixture.fake.keys(LOCK).len(), 2);
    let mut others = many(&fixture, &engine, 10_000).await;
    let announced = fixture.fake.keys(LOCK);
    for _ in 0..6 {
        tokio::time::sleep(LEASE / 3).await;
        let mut holdings: Vec<_> = others.iter().map(|grant| Holding::new(grant.clone(), None)).collect();
        holdings.push(Holding::new(held.clone(), Some(next.clone())));
        for (grant, renewed) in others.iter_mut().chain([&mut held]).zip(engine.renew(&holdings).await) {
            let Ok(Renewal::Renewed { sent, .. }) = renewed else { panic!("{renewed:?}") };
            grant.sent = sent;
        }
        fixture.fake.pass();
        assert_eq!(fixture.fake.keys(LOCK), announced, "the waiter has lost its place");
    }
}

/// No key is under it, so it says nothing of those that are to go to it.
#[tokio::test(start_paused = true)]
async fn a_younger_lease_that_was_ended_by_hand_costs_no_lock_and_no_place() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let held = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let waiting = fixture.queue_up(&engine, Mode::Write).await;
    let (keys, first) = (fixture.fake.keys(LOCK), fixture.fake.youngest_lease());
    let made_by_itself = || fixture.fake.youngest_lease() != first;
    tokio::time::sleep(LEASE / 6).await;
    fixture.until("the next lease is made", made_by_itself).await;
    fixture.fake.end_lease(fixture.fake.youngest_lease());
    assert!(matches!(renews(&engine, &held).await, Renewal::Renewed { sent, .. } if sent > held.sent));
    tokio::time::sleep(LEASE / 4).await;
    assert_eq!(fixture.fake.keys(LOCK), keys);
    assert!(matches!(renews(&engine, &held).await, Renewal::Renewed { .. }));
    engine.release(&held.key, held.id, None).await.unwrap();
    granted(waiting).await;
}

/// Whoever does not run for so long that its grant is over is told, although its key is there: the servers keep it for longer.
#[tokio::test(start_paused = true)]
async fn a_grant_that_was_over_before_its_renewal_is_lost_although_its_key_is_there() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let held = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    tokio::time::sleep(LEASE * 19 / 20).await;
    assert_eq!(fixture.fake.keys(LOCK).len(), 1);
    assert_eq!(renews(&engine, &held).await, Renewal::Lost(LossReason::Lapsed));
}

/// A contender's look may be old when it goes on: its lease may have ended since, and its key with it.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_sees_its_turn_come_when_its_lease_is_old_asks_before_it_enters() {
    let fixture = Fixture::new();
    let [one, two] = [fixture.client(), fixture.client()];
    let held = one.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let waiting = fixture.queue_up(&two, Mode::Write).await;
    // It cannot put its key under a younger lease.
    let first = fixture.environment.now();
    for _ in 0..100 {
        fixture.fake.next_is(Fate::Late);
    }
    tokio::time::sleep(LEASE * 11 / 20).await;
    fixture.fake.forget_fates();
    one.release(&held.key, held.id, None).await.unwrap();
    let grant = granted(waiting).await;
    assert!(fixture.environment.now().since(grant.sent) <= LEASE / 2, "{:?}", grant.sent.since(first));
    assert_eq!(two.release(&grant.key, grant.id, None).await.unwrap(), Release::Released);
}

/// One key of a batch was changed, another one is not there any more: that says nothing of the others.
#[tokio::test(start_paused = true)]
async fn each_grant_of_a_batch_is_told_what_became_of_it() {
    let fixture = Fixture::new();
    let [engine, other] = [fixture.client(), fixture.client()];
    let mut grants = Vec::new();
    for number in 0..8 {
        let mut request = fixture.request(Mode::Write);
        request.key = Key::new("users", format!("user {number}")).unwrap();
        grants.push(engine.acquire(&request).await.unwrap().unwrap());
    }
    tokio::time::sleep(LEASE / 3).await;
    assert!(other.revoke(&grants[2].key, grants[2].id).await.unwrap());
    fixture.fake.delete(&fixture.fake.keys("/k/users/user%205/")[0]);
    let holdings: Vec<_> = grants.iter().map(|grant| Holding::new(grant.clone(), None)).collect();
    for (at, renewed) in engine.renew(&holdings).await.into_iter().enumerate() {
        match (at, renewed.unwrap()) {
            (2, Renewal::Lost(LossReason::Revoked)) | (5, Renewal::Lost(LossReason::Gone)) => {}
            (_, Renewal::Renewed { sent, .. }) if sent > grants[at].sent && at != 2 && at != 5 => {}
            (_, other) => panic!("{at}: {other:?}"),
        }
    }
    // What is counted from is the lease that each key has.
    tokio::time::sleep(LEASE).await;
    fixture.fake.pass();
    assert_eq!(fixture.fake.keys("/k/users/").len(), 6);
}

/// The mark that forbids a late request belongs to the lease of that request, not to the one to which the key has gone since; and where that lease
/// has ended, the key goes all the same: also that of a claim which was begun in a lease of which it is known that it has ended.
#[tokio::test(start_paused = true)]
async fn what_is_in_doubt_and_has_gone_to_a_younger_lease_is_removed_when_the_first_lease_has_ended() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let mut held = Vec::new();
    for name in ["alice", "bob", "carol"] {
        let mut request = fixture.request(Mode::Write);
        request.key = Key::new("users", name).unwrap();
        fixture.fake.next_is(if name == "carol" { Fate::Answered } else { Fate::AnswerLost });
        held.push(engine.acquire(&request).await.unwrap().unwrap());
    }
    let first = fixture.fake.lease_of(&fixture.fake.keys(LOCK)[0]);
    for _ in 0..5 {
        tokio::time::sleep(LEASE / 3).await;
        for grant in &mut held {
            let Renewal::Renewed { sent, .. } = renews(&engine, grant).await else { panic!("lost") };
            grant.sent = sent;
        }
    }
    fixture.fake.pass();
    assert_ne!(fixture.fake.lease_of(&fixture.fake.keys(LOCK)[0]), first);
    for grant in &held {
        assert_eq!(engine.release(&grant.key, grant.id, None).await.unwrap(), Release::Released);
    }
    assert_eq!(fixture.fake.keys("/k/users/"), [""; 0]);
    assert_eq!(fixture.fake.keys("/x/"), [""; 0], "nothing can come any more, so nothing forbids it");
}

/// A waiter whose key was deleted, and made again by another contender of its client, has no right to that one.
#[tokio::test(start_paused = true)]
async fn a_waiter_takes_no_key_to_a_younger_lease_that_another_contender_has_made() {
    let fixture = Fixture::new();
    let [one, two] = [fixture.client(), fixture.client()];
    one.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let waiting = fixture.queue_up(&two, Mode::Write).await;
    let key = fixture.fake.keys(LOCK).pop().unwrap();
    // The watch of the waiter is on the key before it, and it looks again only after a while.
    tokio::time::sleep(LEASE / 100).await;
    fixture.fake.make_again(&key);
    let lease = fixture.fake.lease_of(&key);
    tokio::time::sleep(LEASE / 2).await;
    assert_eq!(fixture.fake.lease_of(&key), lease);
    waiting.abort();
}

/// A writer that has become a reader is a reader also under the next lease.
#[tokio::test(start_paused = true)]
async fn a_downgrade_is_carried_along_and_not_made_again() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let held = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap().with_mode(Mode::Read);
    for renewals in 0..3 {
        tokio::time::sleep(LEASE / 4).await;
        fixture.fake.asked();
        assert!(matches!(renews(&engine, &held).await, Renewal::Renewed { .. }));
        let asked = fixture.fake.asked();
        let count = |word: &str| asked.iter().filter(|asked| **asked == word).count();
        // With each lease comes a look at the floor.
        let changes = count("transaction") - count("grant");
        assert_eq!(changes, usize::from(renewals == 0), "after {renewals} renewals: {asked:?}");
    }
}

/// A client that has given its locks back gives its leases up also where its keys went from lease to lease.
#[tokio::test(start_paused = true)]
async fn a_client_whose_keys_went_from_lease_to_lease_asks_nothing_when_they_are_given_back() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let mut held = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    for _ in 0..12 {
        tokio::time::sleep(LEASE / 3).await;
        let Renewal::Renewed { sent, .. } = renews(&engine, &held).await else { panic!("lost") };
        held.sent = sent;
        assert!(!fixture.fake.asked().contains(&"revoke"), "it is in use");
    }
    let key = fixture.fake.keys(LOCK);
    engine.release(&held.key, held.id, None).await.unwrap();
    let next = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    assert_eq!(fixture.fake.keys(LOCK), key, "it uses its key again");
    engine.release(&next.key, next.id, None).await.unwrap();
    tokio::time::sleep(LEASE * 5).await;
    fixture.fake.asked();
    tokio::time::sleep(LEASE * 5).await;
    assert!(fixture.fake.asked().is_empty(), "a client that does nothing asks nothing");
}

/// A younger lease was ended by hand, so the key of the next one cannot be put under it. The key of the one that leaves is under an older lease, and must go.
#[tokio::test(start_paused = true)]
async fn a_hand_on_under_a_lease_that_is_gone_removes_the_key_of_the_one_that_leaves() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let (held, next) = held_with_next(&fixture, &engine).await;
    tokio::time::sleep(LEASE / 4).await;
    fixture.fake.end_lease(fixture.fake.youngest_lease());
    assert_eq!(fixture.fake.keys(LOCK).len(), 1, "it is under an older lease");
    assert_eq!(engine.release(&held.key, held.id, Some(&next)).await.unwrap(), Release::Released);
    assert_eq!(fixture.fake.keys(LOCK), [""; 0]);
    assert!(engine.acquire(&next).await.unwrap().is_some());
}

/// All of them wait for the one that is being made, and give up at the same time to wait for it.
#[tokio::test(start_paused = true)]
async fn a_lease_that_does_not_come_back_is_not_replaced_by_one_for_each_that_waits() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let grants = many(&fixture, &engine, 200).await;
    tokio::time::sleep(Duration::from_millis(1_900)).await;
    fixture.fake.asked();
    fixture.fake.next_lease_is_answered_after(LEASE * 10);
    for renewed in join_all(grants.iter().map(|grant| renews(&engine, grant))).await {
        assert!(matches!(renewed, Renewal::Renewed { .. }), "{renewed:?}");
    }
    let granted = fixture.fake.asked().into_iter().filter(|asked| *asked == "grant").count();
    assert!(granted <= 3, "{granted} leases were made");
}

/// Ten of them are full before the last has its room.
#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_locks_are_renewed_at_once() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let grants = many(&fixture, &engine, 100_000).await;
    tokio::time::sleep(LEASE / 3).await;
    let holdings: Vec<_> = grants.into_iter().map(|grant| Holding::new(grant, None)).collect();
    for renewed in engine.renew(&holdings).await {
        assert!(matches!(renewed, Ok(Renewal::Renewed { .. })), "{renewed:?}");
    }
}

/// Otherwise the lease would stay, and its upkeep make others after it.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_made_while_the_client_is_closed_is_ended() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    fixture.fake.next_lease_is_answered_after(Duration::from_millis(20));
    let acquiring = tokio::spawn({
        let (engine, request) = (Arc::clone(&engine), fixture.request(Mode::Write));
        async move { engine.acquire(&request).await }
    });
    fixture.until_asked("grant").await;
    engine.close().await.unwrap();
    assert_eq!(acquiring.await.unwrap().unwrap_err().kind(), ylock_core::ErrorKind::Closed);
    tokio::time::sleep(LEASE).await;
    let asked = fixture.fake.asked();
    assert!(asked.contains(&"revoke") && !asked.contains(&"grant"), "{asked:?}");
}

/// A program that tries again and again would have the servers keep a lease for each time.
#[tokio::test(start_paused = true)]
async fn a_client_that_is_refused_leaves_no_lease_behind() {
    let fixture = Fixture::new();
    fixture.fake.say("ylock/floor", "ff 77 version=2");
    let engine = fixture.client();
    for _ in 0..50 {
        let request = fixture.request(Mode::Write).with_patience(Patience::Try);
        let error = engine.acquire(&request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        drop(engine.release(&request.key, request.id, None).await);
    }
    assert_eq!(fixture.fake.leases(), 0);
}
