//! Listings of the locks that are held or waited for. Other suites use the same store: each case looks at groups of its own only.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use ylock_core::engine::Inspection;
use ylock_core::{ErrorKind, Guard, Key, Listed, Listing, MAX_GROUP_BYTES, MAX_NAME_BYTES, Mode, Ylock};

use crate::patient::{answered, is_silence};
use crate::{Client, Fixture, eventually};

/// More than a page has.
const MANY: usize = 260;

/// Returns what a listing shows next. What a busy store has not answered is asked again, as a program would.
pub(super) async fn next(listing: &mut Listing) -> Option<Listed> {
    loop {
        match listing.next().await {
            Err(error) if is_silence(&error) => {}
            answer => return answer.unwrap(),
        }
    }
}

/// Returns what a listing of one group shows.
async fn listed(client: &Client, group: &str) -> Vec<Listed> {
    let (mut listing, mut all) = (client.list().of_group(group), Vec::new());
    while let Some(listed) = next(&mut listing).await {
        all.push(listed);
    }
    all
}

/// Returns the names that a listing of one group shows, in order.
async fn names(client: &Client, group: &str) -> Vec<String> {
    let mut names: Vec<String> =
        listed(client, group).await.iter().map(|listed| listed.key.name().to_owned()).collect();
    names.sort_unstable();
    names
}

/// Returns the keys that a listing of all groups names, of those whose groups begin so.
async fn keys_of_all_groups(client: &Client, begin: &str) -> BTreeSet<Key> {
    let (mut after, mut all) = (None::<String>, BTreeSet::new());
    loop {
        let page = answered(|| client.engine().keys(None, after.as_deref())).await.unwrap();
        all.extend(page.keys.into_iter().filter(|key| key.group().starts_with(begin)));
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

/// Holds all of these names, in the group of the fixture.
async fn hold(client: &Client, names: &[String]) -> Vec<Guard> {
    let locks = client.locks(client.fixture().group());
    let guards = join_all(names.iter().map(|name| locks.write(name))).await;
    guards.into_iter().collect::<Result<_, _>>().unwrap()
}

fn seen(lock: &Listed) -> &Inspection {
    lock.seen.as_ref().expect("what is stored is not damaged")
}

fn numbered(begin: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{begin} {number:03}")).collect()
}

/// A lock that is held is listed with its holder, by its own client and by others; one that is free is not, whether it was held or never.
pub async fn what_is_held_is_listed_and_what_is_free_is_not(fixture: Fixture) {
    let (holder, looks) = (fixture.client().await, fixture.client().await);
    drop(Ylock::clone(&holder).with_name("the holder").unwrap());
    assert_eq!(listed(&looks, &fixture.group()).await.len(), 0);
    let (guard, passing) = (holder.write().await, hold(&holder, &["passing".to_owned()]).await);
    assert_eq!(names(&looks, &fixture.group()).await, ["passing", "the lock"]);
    for guard in passing {
        assert!(guard.unlock().await.unwrap().is_released());
    }
    for client in [&looks, &holder] {
        let all = listed(client, &fixture.group()).await;
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(all[0].key, holder.key());
        let held = &seen(&all[0]).holders[0];
        assert_eq!((held.owner, held.mode, held.client.as_str()), (guard.owner(), Mode::Write, "the holder"));
    }
    assert!(guard.unlock().await.unwrap().is_released());
    for client in [&looks, &holder] {
        assert_eq!(listed(client, &fixture.group()).await.len(), 0);
    }
}

/// A lock that is waited for is listed with its waiters, in order.
pub async fn what_is_waited_for_is_listed_with_its_waiters(fixture: Fixture) {
    let clients = fixture.clients(4).await;
    let [holder, writer, reader, looks] = &clients[..] else { unreachable!("four clients") };
    drop(Ylock::clone(writer).with_name("the writer").unwrap());
    let guard = holder.write().await;
    let writes = writer.queue_up_seen_by(Mode::Write, looks).await;
    let reads = reader.queue_up_seen_by(Mode::Read, looks).await;
    for client in &clients {
        let all = listed(client, &fixture.group()).await;
        assert_eq!(all.len(), 1, "{all:?}");
        let seen = seen(&all[0]);
        assert_eq!(seen.holders.iter().map(|held| held.owner).collect::<Vec<_>>(), [guard.owner()]);
        let queue: Vec<_> = seen.queue.iter().map(|waits| (waits.owner, waits.mode)).collect();
        assert_eq!(queue, [(writes.owner(), Mode::Write), (reads.owner(), Mode::Read)]);
        assert_eq!(seen.queue[0].client.as_str(), "the writer");
    }
    drop((writes, reads, guard));
}

/// All holders of a lock that is shared are listed, as one lock.
pub async fn a_lock_that_is_shared_is_listed_once_with_all_holders(fixture: Fixture) {
    let clients = fixture.clients(3).await;
    let mut guards = Vec::new();
    for client in &clients {
        guards.push(client.read().await);
    }
    let all = listed(&clients[0], &fixture.group()).await;
    assert_eq!(all.len(), 1, "{all:?}");
    let shown: BTreeSet<_> = seen(&all[0]).holders.iter().map(|held| held.owner.to_string()).collect();
    assert_eq!(shown, guards.iter().map(|guard| guard.owner().to_string()).collect());
}

/// A listing of a group shows its locks only: not those of a group that begins as it does, or that it is a pattern for. One of all groups
/// shows them all.
pub async fn a_listing_of_a_group_shows_no_other_group(fixture: Fixture) {
    let ends =
        ["", " ", "*", "?", "[ab]", "a", "ab", ":", ":a", "/", "/a", "%", "%2F", "=", "{a}", "\n", "ü", "\\"];
    let groups = ends.map(|end| format!("{}{end}", fixture.group()));
    let (holder, looks) = (fixture.client().await, fixture.client().await);
    let (mut guards, mut keys) = (Vec::new(), BTreeSet::new());
    for (group, end) in groups.iter().zip(ends) {
        for name in ["same".to_owned(), format!("{end}:/*")] {
            guards.push(holder.lock(group.as_str(), name.as_str()).write().await.unwrap());
            keys.insert(Key::new(group.as_str(), name).unwrap());
        }
    }
    for group in &groups {
        let expected: Vec<_> =
            keys.iter().filter(|key| key.group() == group).map(|key| key.name().to_owned()).collect();
        assert_eq!(names(&looks, group).await, expected, "{group:?}");
    }
    assert_eq!(keys_of_all_groups(&looks, &fixture.group()).await, keys);
    drop(guards);
}

/// The longest group and the longest names are listed as they are.
pub async fn the_longest_keys_are_listed(fixture: Fixture) {
    let client = fixture.client().await;
    let begin = format!("{} ", fixture.group());
    let group = format!("{begin}{}", "*".repeat(MAX_GROUP_BYTES - begin.len()));
    let long = ["/", "ü", "a"].map(|text| text.repeat(MAX_NAME_BYTES / text.len()));
    let locks = client.locks(group.as_str());
    let guards = join_all(long.iter().map(|name| locks.write(name))).await;
    let mut expected = long.to_vec();
    expected.sort_unstable();
    assert_eq!(names(&client, &group).await, expected);
    drop(guards);
}

/// However many locks are held, all are listed: in pages, of which each has some.
pub async fn many_locks_are_listed_page_by_page(fixture: Fixture) {
    let (holder, looks, expected) = (fixture.client().await, fixture.client().await, numbered("lock", MANY));
    let guards = hold(&holder, &expected).await;
    // A store whose index grows or shrinks at this moment, because of what others have in it, may show some twice. None is missing ever.
    let each_is_shown_once = || async {
        let shown = names(&looks, &fixture.group()).await;
        assert_eq!(shown.iter().collect::<BTreeSet<_>>(), expected.iter().collect());
        shown.len() == expected.len()
    };
    eventually(fixture.soon() * 4, "each lock is shown once", each_is_shown_once).await;
    assert_eq!(keys_of_all_groups(&looks, &fixture.group()).await.len(), MANY);
    drop(guards);
}

/// A lock that is held all the time is listed, whatever comes and goes beside it.
pub async fn what_is_held_all_the_time_is_listed_while_others_come_and_go(fixture: Fixture) {
    let (holder, looks) = (fixture.client().await, fixture.client().await);
    let stays = numbered("stays", MANY);
    let guards = hold(&holder, &stays).await;
    let passing = holder.locks(fixture.group());
    let come_and_go = async {
        for round in 0.. {
            // Before the others in the order of the alphabet, and after them.
            let names = [format!("a {round}"), format!("b {}", round % 7), format!("z {round}")];
            let held = join_all(names.iter().map(|name| passing.write(name))).await;
            tokio::task::yield_now().await;
            drop(held);
            tokio::task::yield_now().await;
        }
    };
    let look = async {
        for _ in 0..5 {
            let (mut listing, mut shown) = (looks.list().of_group(fixture.group()), BTreeSet::new());
            while let Some(listed) = next(&mut listing).await {
                shown.insert(listed.key.name().to_owned());
                // In memory too the others have their turn between two pages.
                tokio::task::yield_now().await;
            }
            let missing: Vec<_> = stays.iter().filter(|name| !shown.contains(*name)).collect();
            assert!(missing.is_empty(), "{missing:?}");
        }
    };
    tokio::select! {
        () = come_and_go => {}
        () = look => {}
    }
    drop(guards);
}

/// A group outside its limits is refused, and what no page has said is next.
pub async fn what_cannot_be_listed_is_refused(fixture: Fixture) {
    let client = fixture.client().await;
    for group in [String::new(), "x".repeat(MAX_GROUP_BYTES + 1)] {
        let error = client.list().of_group(group).next().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    for group in [None, Some(&*fixture.group())] {
        for after in ["nonsense", "", " ", "-", "1 2"] {
            let answer = answered(|| client.engine().keys(group, Some(after))).await;
            assert_eq!(answer.unwrap_err().kind(), ErrorKind::Invalid, "{after:?}");
        }
    }
}
