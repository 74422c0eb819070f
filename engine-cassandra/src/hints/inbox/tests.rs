use super::*;

const LEASE: Duration = Duration::from_secs(10);

fn at(millis: u64) -> Moment {
    Moment::from_nanos((1_000 + millis) * 1_000_000)
}

fn address(port: u16) -> SocketAddr {
    ([10, 0, 0, 1], port).into()
}

fn inbox() -> Inbox {
    let inbox = Inbox::new(ylock_core::Key::new("group", "name").unwrap());
    inbox.change_key(Some(Key::from_u128(1)), LEASE);
    inbox
}

fn wait(number: u128) -> Hint {
    Hint::Wait { from: Key::from_u128(number), reads: false }
}

fn take(inbox: &Inbox, hint: Hint, from: SocketAddr, now: Moment) -> Outcome {
    let key = inbox.keys().next().unwrap();
    inbox.take(key, hint, from, now)
}

/// It has seen what is left a moment later, and pauses until it is told.
#[test]
fn a_waiter_that_comes_too_late_is_told_all_the_same() {
    let inbox = inbox();
    let (left, waiter) = (Key::from_u128(1), |number| Waiter {
        key: Key::from_u128(number),
        address: address(2000),
        reads: false,
    });
    inbox.change_key(None, LEASE);
    assert_eq!(inbox.take(left, wait(7), address(2000), at(0)), Outcome::Taken);
    assert_eq!(inbox.has_gone(), [waiter(7)]);
    assert_eq!(inbox.take(left, wait(8), address(2000), at(1)), Outcome::Answer(waiter(8)));
    assert_eq!(inbox.take(left, Hint::Next, address(2000), at(9)), Outcome::Dropped);
    inbox.change_key(Some(Key::from_u128(2)), LEASE);
    assert_eq!(inbox.change_key(Some(Key::from_u128(3)), LEASE), Some(left));
    assert_eq!(inbox.change_key(Some(Key::from_u128(4)), LEASE), Some(Key::from_u128(2)));
}

/// Two are told when a row is left: twice the same waiter would leave the other one without word.
#[test]
fn a_waiter_that_comes_too_late_twice_is_told_once() {
    let inbox = inbox();
    let left = Key::from_u128(1);
    inbox.change_key(None, LEASE);
    for (number, port) in [(7, 2000), (8, 2001), (9, 2001), (7, 2000)] {
        assert_eq!(inbox.take(left, wait(number), address(port), at(0)), Outcome::Taken);
    }
    let told: Vec<_> = inbox.has_gone().iter().map(|waiter| waiter.key.as_u128()).collect();
    assert_eq!(told, [7, 9], "the first one first, and what a client has given up is forgotten");
}

const FREE: Hint = Hint::Free { second: false };

#[test]
fn a_hint_asks_for_one_look_however_often_it_comes() {
    let inbox = inbox();
    assert_eq!(inbox.look_at(), None);
    for _ in 0..3 {
        take(&inbox, FREE, address(2000), at(0));
        assert!(inbox.look_at().unwrap() <= at(0));
    }
    inbox.look_begins(true, Duration::ZERO, at(0));
    assert_eq!(inbox.look_at(), None);
}

#[test]
fn the_sender_is_known_of_a_hint_that_was_not_only_for_the_second() {
    let inbox = inbox();
    take(&inbox, Hint::Free { second: true }, address(2000), at(0));
    assert_eq!(inbox.told_by(), None);
    take(&inbox, FREE, address(2001), at(0));
    take(&inbox, Hint::Free { second: true }, address(2002), at(0));
    assert_eq!(inbox.told_by(), Some(address(2001)));
    inbox.look_begins(true, Duration::ZERO, at(0));
    assert_eq!(inbox.told_by(), None);
}

/// What the look shows may be older than what the hint tells of.
#[test]
fn a_hint_that_comes_during_a_look_asks_for_another_one() {
    let inbox = inbox();
    take(&inbox, FREE, address(2000), at(0));
    inbox.look_begins(true, Duration::ZERO, at(0));
    take(&inbox, Hint::Next, address(2000), at(1));
    assert_eq!(inbox.look_at(), Some(at(2)), "two milliseconds after the look before");
}

#[test]
fn the_second_in_line_looks_when_the_first_had_time_to_enter() {
    let inbox = inbox();
    let second = Hint::Free { second: true };
    take(&inbox, second, address(2000), at(0));
    assert_eq!(inbox.look_at(), Some(at(5)));
    // The first has entered.
    take(&inbox, Hint::Next, address(2000), at(3));
    assert_eq!(inbox.look_at(), Some(at(3)));
    inbox.look_begins(true, Duration::from_millis(40), at(3));
    take(&inbox, second, address(2000), at(10));
    assert_eq!(inbox.look_at(), Some(at(50)), "as long as such looks take");
}

#[test]
fn what_came_for_another_acquisition_is_forgotten() {
    let inbox = inbox();
    take(&inbox, FREE, address(2000), at(0));
    take(&inbox, wait(7), address(2000), at(0));
    inbox.change_key(Some(Key::from_u128(2)), LEASE);
    assert_eq!((inbox.look_at(), inbox.waiters(at(0))), (None, Vec::new()));
}

#[test]
fn what_the_budget_does_not_allow_is_counted_and_followed_later() {
    let inbox = inbox();
    let mut dropped = 0;
    let mut looks = 0;
    for millis in 0..10_000 {
        dropped += u32::from(take(&inbox, FREE, address(2000), at(millis)) == Outcome::Dropped);
        if inbox.look_at().unwrap() <= at(millis) {
            inbox.look_begins(true, Duration::ZERO, at(millis));
            looks += 1;
        }
    }
    assert!((250..=300).contains(&looks), "{looks} looks in ten seconds");
    assert!(dropped > 9_000, "{dropped}");
}

#[test]
fn a_storm_asks_for_few_renewals() {
    let inbox = inbox();
    let asks = |millis| take(&inbox, Hint::End, address(2000), at(millis)) == Outcome::Renew;
    let asked = (0..10_000).filter(|millis| asks(*millis)).count();
    assert!((250..=300).contains(&asked), "{asked} renewals in ten seconds");
}

#[test]
fn waiters_are_remembered_for_two_leases_and_up_to_thirty_two_of_them() {
    let inbox = inbox();
    for number in 0..40 {
        let outcome = take(&inbox, wait(number), address(2000 + number as u16), at(0));
        assert_eq!(outcome, if number < 32 { Outcome::Taken } else { Outcome::Dropped });
    }
    take(&inbox, wait(5), address(3000), at(10_000));
    assert_eq!(inbox.waiters(at(19_999)).len(), 32);
    let left = inbox.waiters(at(20_000));
    assert_eq!(left, [Waiter { key: Key::from_u128(5), address: address(3000), reads: false }]);
    assert_eq!(take(&inbox, wait(90), address(2000), at(20_000)), Outcome::Taken);
}

#[test]
fn only_the_first_waiter_is_news_to_a_client_inside() {
    let inbox = inbox();
    assert_eq!(take(&inbox, wait(1), address(2000), at(0)), Outcome::Taken);
    inbox.seems_alone(true);
    assert_eq!(take(&inbox, wait(2), address(2000), at(1_000)), Outcome::Renew);
    assert_eq!(take(&inbox, wait(3), address(2000), at(2_000)), Outcome::Taken);
}

/// It came after the look by which the reader has entered.
#[test]
fn a_reader_that_enters_knows_of_a_writer_that_has_said_that_it_waits() {
    let inbox = inbox();
    let reads = Hint::Wait { from: Key::from_u128(1), reads: true };
    take(&inbox, reads, address(2000), at(0));
    assert!(!inbox.expect_writers(at(0)), "readers are in no reader's way");
    assert_eq!(take(&inbox, reads, address(2000), at(1_000)), Outcome::Taken);
    assert_eq!(take(&inbox, wait(2), address(2001), at(2_000)), Outcome::Renew);
    assert!(inbox.expect_writers(at(3_000)));
    assert_eq!(take(&inbox, wait(3), address(2002), at(4_000)), Outcome::Taken, "that is known");
}

/// Its look may have shown the row as it was before.
#[test]
fn a_waiter_that_comes_when_the_client_has_just_entered_is_told_so_once() {
    let inbox = inbox();
    let waiter = |number| Waiter { key: Key::from_u128(number), address: address(2000), reads: false };
    assert_eq!(take(&inbox, wait(1), address(2000), at(0)), Outcome::Taken);
    inbox.is_shown_inside(vec![Key::from_u128(4)], at(0));
    assert_eq!(take(&inbox, wait(4), address(2004), at(3)), Outcome::Taken, "it was told, and has looked");
    assert_eq!(take(&inbox, wait(1), address(2000), at(5)), Outcome::Taken, "it was known");
    assert_eq!(take(&inbox, wait(2), address(2000), at(5)), Outcome::HasEntered(waiter(2)));
    assert_eq!(take(&inbox, wait(2), address(2000), at(8)), Outcome::Taken);
    assert_eq!(take(&inbox, wait(3), address(2000), at(11)), Outcome::Taken, "it has seen it");
}

#[test]
fn a_waiter_that_has_come_again_is_remembered_once() {
    let inbox = inbox();
    for (number, port) in [(1, 2000), (2, 2001), (3, 2000)] {
        take(&inbox, wait(number), address(port), at(0));
    }
    let keys: Vec<_> = inbox.waiters(at(0)).iter().map(|waiter| waiter.key.as_u128()).collect();
    assert_eq!(keys, [2, 3], "what it had given up is forgotten");
}

/// A client that gave up and waits again is told by the key of before, where the new one is not known yet.
#[test]
fn a_hint_for_the_acquisition_before_asks_for_a_look_of_the_present_one() {
    for hint in [FREE, Hint::Next] {
        let inbox = inbox();
        let before = Key::from_u128(1);
        inbox.change_key(None, LEASE);
        assert_eq!(inbox.take(before, hint, address(2000), at(0)), Outcome::Dropped);
        inbox.change_key(Some(Key::from_u128(2)), LEASE);
        assert_eq!(inbox.take(before, hint, address(2000), at(0)), Outcome::Taken);
        assert!(inbox.look_at().unwrap() <= at(0));
        assert_eq!(inbox.take(before, Hint::End, address(2000), at(0)), Outcome::Dropped);
    }
}
