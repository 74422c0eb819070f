//! Listings, over an engine whose every answer takes a while.

use std::collections::BTreeSet;
use std::future::Future;

use tokio::task::yield_now;
use ylock_core::engine::{Engine, Holder, Inspection};
use ylock_core::{Error, ErrorKind, Guard, Key, Listed, Listing, MemoryEngine, MemoryStore, Result, Ylock};
use ylock_testkit::{Call, Wrapped, Wrapper, poll_times};

/// More than two pages, and more than a multiple of the looks that are made at once.
const LOCKS: usize = 213;
/// More polls than any call needs.
const ENOUGH: usize = 1000;

/// Answers late, and each call of some kinds only when it is made again.
#[derive(Debug)]
struct Late {
    inner: MemoryEngine,
    fails_every: Option<usize>,
    calls: std::sync::atomic::AtomicUsize,
}

impl Wrapper for Late {
    fn inner(&self) -> &dyn Engine {
        &self.inner
    }

    async fn around<T: Send>(&self, call: Call, answer: impl Future<Output = Result<T>> + Send) -> Result<T> {
        yield_now().await;
        let answer = answer.await;
        yield_now().await;
        let number = self.calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        match self.fails_every {
            Some(every) if matches!(call, Call::Keys | Call::Inspect) && number.is_multiple_of(every) => {
                Err(Error::new(ErrorKind::Unavailable, "the answer is lost"))
            }
            _ => answer,
        }
    }
}

fn late(store: &MemoryStore, fails_every: Option<usize>) -> Ylock {
    Ylock::new(Wrapped(Late { inner: store.engine(), fails_every, calls: Default::default() }))
}

/// Locks with numbers as their names, all held.
async fn held(store: &MemoryStore) -> (Vec<Guard>, BTreeSet<String>) {
    let (ylock, mut guards, mut names) = (Ylock::new(store.engine()), Vec::new(), BTreeSet::new());
    for number in 0..LOCKS {
        guards.push(ylock.lock("group", number.to_string()).write().await.unwrap());
        names.insert(number.to_string());
    }
    (guards, names)
}

/// Takes the names of a listing, each of which must come once.
async fn names(mut next: impl AsyncFnMut() -> Option<Listed>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    while let Some(listed) = next().await {
        assert!(names.insert(listed.key.name().to_owned()), "{listed:?} is shown twice");
    }
    names
}

#[tokio::test]
async fn each_lock_is_listed_once_while_nothing_changes() {
    let store = MemoryStore::new();
    let (_guards, expected) = held(&store).await;
    let mut listing = late(&store, None).list();
    assert_eq!(names(async || listing.next().await.unwrap()).await, expected);
    assert!(listing.next().await.unwrap().is_none(), "it stays at its end");
}

/// Makes a call that is dropped after so many polls, and then the same call to its end. Notes whether it was dropped.
async fn dropped_once(listing: &mut Listing, polls: usize, was_dropped: &mut bool) -> Option<Listed> {
    match poll_times(polls, listing.next()).await {
        Some(answer) => answer.unwrap(),
        None => {
            *was_dropped = true;
            listing.next().await.unwrap()
        }
    }
}

#[tokio::test]
async fn no_lock_is_left_out_of_a_listing_whose_calls_are_dropped_after_any_poll() {
    let store = MemoryStore::new();
    let (_guards, expected) = held(&store).await;
    for polls in 1..=ENOUGH {
        let (mut listing, mut was_dropped) = (late(&store, None).list(), false);
        let names = names(async || dropped_once(&mut listing, polls, &mut was_dropped).await).await;
        assert_eq!(names, expected, "dropped after {polls} polls");
        if !was_dropped {
            return assert!(polls > 2, "it waits for pages and for looks");
        }
    }
    panic!("it never ends");
}

#[tokio::test]
async fn a_listing_goes_on_where_the_store_did_not_answer() {
    let store = MemoryStore::new();
    let (_guards, expected) = held(&store).await;
    let (mut listing, mut failures) = (late(&store, Some(23)).list().of_group("group"), 0);
    let answered = async || {
        loop {
            match listing.next().await {
                Ok(answer) => return answer,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
            }
            failures += 1;
        }
    };
    assert_eq!(names(answered).await, expected);
    assert!(failures > 5, "{failures}");
}

#[tokio::test]
async fn a_lock_that_is_named_twice_on_a_page_or_is_free_is_shown_once_or_not_at_all() {
    #[derive(Debug)]
    struct Generous(MemoryEngine);

    impl Wrapper for Generous {
        fn inner(&self) -> &dyn Engine {
            &self.0
        }

        async fn keys(
            &self,
            group: Option<&str>,
            after: Option<&str>,
        ) -> Result<ylock_core::engine::KeyPage> {
            let mut page = self.0.keys(group, after).await?;
            page.keys.extend(page.keys.clone());
            page.keys.push(ylock_core::Key::new("group", "free")?);
            Ok(page)
        }
    }

    let store = MemoryStore::new();
    let (_guards, expected) = held(&store).await;
    let mut listing = Ylock::new(Wrapped(Generous(store.engine()))).list();
    assert_eq!(names(async || listing.next().await.unwrap()).await, expected);
}

/// Cannot read what is stored for one of the locks.
#[derive(Debug)]
struct Damaged(MemoryEngine, &'static str);

impl Wrapper for Damaged {
    fn inner(&self) -> &dyn Engine {
        &self.0
    }

    async fn inspect(&self, key: &Key) -> Result<Inspection> {
        match key.name() == self.1 {
            true => Err(Error::new(ErrorKind::Unexpected, "what is stored for the lock is damaged")),
            false => self.0.inspect(key).await,
        }
    }

    async fn exact_holders(&self, key: &Key) -> Result<Vec<Holder>> {
        Ok(Wrapper::inspect(self, key).await?.holders)
    }
}

#[tokio::test]
async fn a_lock_that_is_damaged_is_listed_as_such_and_does_not_end_the_listing() {
    let store = MemoryStore::new();
    let (_guards, expected) = held(&store).await;
    let mut listing = Ylock::new(Wrapped(Damaged(store.engine(), "17"))).list();
    let mut damaged = Vec::new();
    let names = names(async || {
        let listed = listing.next().await.unwrap()?;
        if let Err(error) = &listed.seen {
            assert_eq!((error.kind(), error.key()), (ErrorKind::Unexpected, Some(&listed.key)));
            damaged.push(listed.key.name().to_owned());
        }
        Some(listed)
    })
    .await;
    assert_eq!((names, damaged), (expected, vec!["17".to_owned()]));
}

/// Whichever of its locks is damaged: the others are listed all the same, and it is one entry.
#[tokio::test]
async fn a_semaphore_that_is_damaged_is_listed_as_such_among_the_others() {
    for damaged in ["few \u{203a} semaphore", "few \u{203a} turnstile", "few \u{203a} permit 1"] {
        let store = MemoryStore::new();
        let holder = Ylock::new(store.engine());
        let locks = holder.locks("group");
        let _held = (locks.semaphore("few", 1).acquire().await.unwrap(), locks.write("other").await.unwrap());
        let looks = Ylock::new(Wrapped(Damaged(store.engine(), damaged)));
        let (mut listing, mut listed) = (looks.list(), Vec::new());
        while let Some(one) = listing.next().await.unwrap() {
            listed.push((
                one.key.name().to_owned(),
                one.is_semaphore,
                one.seen.err().map(|error| error.kind()),
            ));
        }
        listed.sort_by(|one, other| one.0.cmp(&other.0));
        let few = ("few".to_owned(), true, Some(ErrorKind::Unexpected));
        assert_eq!(listed, [few, ("other".to_owned(), false, None)], "{damaged}");
    }
}

/// Inspections show for ever what there was once; holders that are asked for exactly are those of now.
#[derive(Debug)]
struct Behind {
    inner: MemoryEngine,
    shown: std::sync::OnceLock<Inspection>,
}

impl Wrapper for Behind {
    fn inner(&self) -> &dyn Engine {
        &self.inner
    }

    async fn inspect(&self, key: &Key) -> Result<Inspection> {
        let now = self.inner.inspect(key).await?;
        Ok(self.shown.get_or_init(|| now).clone())
    }

    async fn exact_holders(&self, key: &Key) -> Result<Vec<Holder>> {
        self.inner.exact_holders(key).await
    }
}

/// A resource decides by it, so a holder that has just given back must not be shown.
#[tokio::test]
async fn a_token_is_verified_by_holders_that_are_exact() {
    let store = MemoryStore::new();
    let ylock = Ylock::new(Wrapped(Behind { inner: store.engine(), shown: Default::default() }));
    let guard = ylock.lock("group", "name").write().await.unwrap();
    let token = guard.token().unwrap();
    assert_eq!(ylock.inspect("group", "name").await.unwrap().holders.len(), 1);
    assert!(ylock.verify("group", "name", token).await.unwrap());
    assert!(guard.unlock().await.unwrap().is_released());
    assert!(!ylock.verify("group", "name", token).await.unwrap());
}

/// The operator would read that it is not held, and go to bed.
#[tokio::test]
async fn a_holder_that_has_just_come_is_revoked() {
    let store = MemoryStore::new();
    let ylock = Ylock::new(Wrapped(Behind { inner: store.engine(), shown: Default::default() }));
    assert!(ylock.inspect("group", "name").await.unwrap().holders.is_empty());
    let _guard = ylock.lock("group", "name").write().await.unwrap();
    assert_eq!(ylock.revoke("group", "name").await.unwrap(), 1);
}

#[tokio::test]
async fn the_permits_of_a_client_that_has_just_come_are_revoked() {
    let store = MemoryStore::new();
    let ylock = Ylock::new(Wrapped(Behind { inner: store.engine(), shown: Default::default() }));
    assert!(ylock.inspect("group", "name").await.unwrap().holders.is_empty());
    let _permit = ylock.locks("group").semaphore("name", 2).acquire().await.unwrap();
    assert_eq!(ylock.revoke_semaphore("group", "name").await.unwrap(), 1);
}
