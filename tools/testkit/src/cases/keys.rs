//! Groups and names, and options that are out of range.

use std::time::Duration;

use futures_util::future::join_all;
use ylock_core::{Error, ErrorKind, Guard, HandOver, MAX_GROUP_BYTES, MAX_NAME_BYTES, Options};

use crate::patient::answered;
use crate::{Fixture, eventually, within};

/// The same name in another group is another lock.
pub async fn the_same_name_in_another_group_is_another_lock(fixture: Fixture) {
    let client = fixture.client().await;
    let groups = ["a", "b"].map(|suffix| client.locks(format!("{} {suffix}", fixture.group())));
    let first = groups[0].write("name").await.unwrap();
    let second = within(fixture.soon(), "another group", groups[1].write("name")).await.unwrap();
    assert!(groups[0].write("name").now().await.unwrap().is_none());
    drop((first, second));
}

/// Group and name are never joined to one text: whatever separates them elsewhere, these are different locks.
pub async fn separators_do_not_make_two_locks_one(fixture: Fixture) {
    let (client, group) = (fixture.client().await, fixture.group());
    for separator in [":", "/", "\\", "|", "\0", " ", "\n", "%", "__", "{}", "\"", "'", ","] {
        let (left, right) = (format!("{group}{separator}b"), format!("b{separator}c"));
        let first = client.lock(left, "c").write().await.unwrap();
        let second = client.lock(group.clone(), right);
        drop((first, within(fixture.soon(), separator, second.write()).await.unwrap()));
    }
}

/// Any text is a name, is kept as it is, and is shown as it is.
pub async fn any_text_is_a_name(fixture: Fixture) {
    const NAMES: &[&str] = &[
        " ",
        "\0",
        "a\0b",
        "a\nb",
        "/",
        "//",
        ".",
        "..",
        "../x",
        "a/b",
        ":",
        "*",
        "?",
        "[a]",
        "{tag}",
        "%",
        "%2F",
        "%s",
        "\"",
        "'",
        "''; DROP TABLE locks; --",
        "\\",
        "$1",
        "${x}",
        "null",
        "0",
        "-1",
        "🔒",
        "👨‍👩‍👧‍👦",
        "é",
        "e\u{301}",
        "Å",
        "\u{212b}",
        "İ",
        "ß",
        "SS",
        "ss",
        "名前",
        "\u{202e}abc",
        "\u{feff}",
        "a",
        "A",
        "a ",
        " a",
    ];
    let (here, there) = (fixture.client().await, fixture.client().await);
    let (here, there) = (here.locks(fixture.group()), there.locks(fixture.group()));
    let mut guards: Vec<Guard> = Vec::new();
    for &name in NAMES {
        // Every other name is still held: a name that is taken for another one is not granted.
        let guard = within(fixture.soon(), name, here.write(name)).await.unwrap();
        assert_eq!(guard.key().name(), name);
        assert!(there.write(name).now().await.unwrap().is_none(), "{name:?} is held");
        guards.push(guard);
    }
}

/// Names and groups may be as long as promised and no longer, and not empty.
pub async fn the_longest_names_work_and_longer_ones_are_refused(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let unique = format!("{:016x}", rand::random::<u64>());
    let fill = |bytes: usize| format!("{unique}{}", "é".repeat((bytes - unique.len()) / 2));
    let (group, name) = (fill(MAX_GROUP_BYTES), fill(MAX_NAME_BYTES));
    let guard =
        within(fixture.soon(), "long", here.lock(group.as_str(), name.as_str()).write()).await.unwrap();
    assert!(there.lock(group.as_str(), name.as_str()).write().now().await.unwrap().is_none());
    drop(guard);

    let (group, name) = (group + "x", name + "x");
    for (group, name) in [("", "name"), ("group", ""), (&group, "name"), ("group", &name)] {
        let lock = here.lock(group, name);
        let kinds = [
            lock.key().unwrap_err().kind(),
            lock.write().await.unwrap_err().kind(),
            lock.read().now().await.unwrap_err().kind(),
            lock.read().within(Duration::ZERO).await.unwrap_err().kind(),
            lock.write().run(|_| async {}).await.unwrap_err().kind(),
            here.inspect(group, name).await.unwrap_err().kind(),
            here.revoke(group, name).await.unwrap_err().kind(),
        ];
        assert_eq!(kinds, [ErrorKind::Invalid; 7]);
    }
}

/// Options out of their limits are errors of kind `Config`, and nothing is acquired.
pub async fn options_out_of_their_limits_are_refused(fixture: Fixture) {
    let client = fixture.client().await;
    let good = Options::default();
    let bad = [
        good.clone().with_lease(Duration::ZERO),
        good.clone().with_lease(Duration::from_nanos(1)),
        good.clone().with_lease(Options::MAX_LEASE + Duration::from_nanos(1)),
        good.clone().with_lease(Duration::MAX),
        good.clone().with_hand_over(HandOver::up_to(HandOver::MAX_COUNT + 1, Duration::ZERO)),
        good.with_hand_over(HandOver::up_to(u32::MAX, Duration::MAX)),
    ];
    for options in bad {
        assert_eq!(client.lock.try_with_options(options.clone()).unwrap_err().kind(), ErrorKind::Config);
        let lock = client.lock.with_options(options);
        let kinds = [
            lock.write().await.unwrap_err().kind(),
            lock.write().now().await.unwrap_err().kind(),
            lock.write().within(Duration::MAX).await.unwrap_err().kind(),
            lock.read().await.unwrap_err().kind(),
            lock.read().run(|_| async {}).await.unwrap_err().kind(),
        ];
        assert_eq!(kinds, [ErrorKind::Config; 5]);
    }
    assert_eq!(client.keys_in_use(), 0);
    drop(client.write().await);
}

/// A lease that the engine does not support is refused when it is attached, and also by an acquisition; a lease that was attached is
/// served.
pub async fn a_lease_that_may_be_attached_may_be_acquired(fixture: Fixture) {
    let client = fixture.client().await;
    for lease in [Options::MIN_LEASE, fixture.lease()] {
        let options = Options::default().with_lease(lease);
        let attached = client.lock.try_with_options(options.clone()).map(drop);
        let lock = client.lock.with_options(options);
        let acquired = answered(|| lock.write().now()).await.map(drop);
        let kinds = [&attached, &acquired].map(|outcome| outcome.as_ref().err().map(Error::kind));
        assert_eq!(kinds[0], kinds[1], "{lease:?}: {attached:?}, {acquired:?}");
        assert!(matches!(kinds[0], None | Some(ErrorKind::Config)), "{lease:?}: {attached:?}");
    }
    let usual = Options::default().with_lease(fixture.lease());
    client.try_with_options(usual).expect("the lease that the engine was made for");
}

/// Many names are held at once without disturbing each other, and are forgotten afterwards.
pub async fn many_names_are_independent(fixture: Fixture) {
    const TASKS: usize = 16;
    let (here, there) = (fixture.client().await, fixture.client().await);
    let many = fixture.harness().many();
    let hold = |task: usize| {
        let locks = here.locks(fixture.group());
        tokio::spawn(async move {
            let mut guards = Vec::new();
            for number in (task..many).step_by(TASKS) {
                guards.push(locks.write(format!("name {number}")).await.unwrap());
            }
            guards
        })
    };
    let held = join_all((0..TASKS).map(hold).collect::<Vec<_>>()).await;
    assert_eq!(here.keys_in_use(), many);
    for number in [0, many / 2, many - 1] {
        assert!(there.locks(fixture.group()).write(format!("name {number}")).now().await.unwrap().is_none());
    }
    drop(held);
    let bound = fixture.soon() + fixture.harness().trip() * many as u32 / TASKS as u32;
    eventually(bound, "every name is forgotten", || async { here.keys_in_use() == 0 }).await;
}

/// `Lock` and `Locks` with the same group and name are the same lock.
pub async fn a_lock_is_the_same_by_either_way(fixture: Fixture) {
    let client = fixture.client().await;
    let locks = client.locks(fixture.group());
    let key = client.key();
    let guard = client.write().await;
    assert!(locks.write(key.name()).now().await.unwrap().is_none());
    assert!(locks.lock(key.name()).read().now().await.unwrap().is_none());
    assert_eq!(locks.lock(key.name()).key().unwrap(), &key);
    assert!(locks.owned_by(&guard.owner()).write(key.name()).now().await.unwrap().is_some());
    drop(guard);
}
