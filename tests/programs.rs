//! Programs that use locks, written from the documentation alone: none may need a workaround.

#![allow(clippy::disallowed_methods, reason = "time is paused")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ylock::{ErrorKind, Guard, Locks, Name, Options, Token, Ylock};

type Answer<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A web handler that tells a busy document (409) from a store that is away (503).
async fn save(documents: &Locks, id: u64, work: impl Future<Output = ()>) -> Answer<u16> {
    match documents.write(id).within(Duration::from_millis(50)).run(|_| work).await {
        Ok(Some(())) => Ok(200),
        Ok(None) => Ok(409),
        Err(error) if error.kind() == ErrorKind::Unavailable => Ok(503),
        Err(error) => Err(error.into()),
    }
}

#[tokio::test(start_paused = true)]
async fn a_web_handler() {
    let documents = Ylock::in_memory().locks("documents");
    assert_eq!(save(&documents, 7, async {}).await.unwrap(), 200);
    let edited_elsewhere = documents.write(7u64).await.unwrap();
    assert_eq!(save(&documents, 7, async {}).await.unwrap(), 409);
    assert_eq!(save(&documents, 8, async {}).await.unwrap(), 200);
    assert!(edited_elsewhere.unlock().await.unwrap().is_released());
    // The time bounds the wait and not the work.
    let long = tokio::time::sleep(Duration::from_secs(5));
    assert_eq!(save(&documents, 7, long).await.unwrap(), 200);
}

/// A job that starts on every replica at the same time and must be done by one: a replica that comes while the job runs leaves it alone.
async fn nightly(jobs: &Locks, runs: &AtomicUsize) -> Answer {
    let work = async |_| {
        runs.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(30)).await;
    };
    let _done_here = jobs.write("nightly").now().run(work).await?.is_some();
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_nightly_job() {
    let (jobs, runs) = (Ylock::in_memory().locks("jobs"), AtomicUsize::new(0));
    let (a, b, c) = tokio::join!(nightly(&jobs, &runs), nightly(&jobs, &runs), nightly(&jobs, &runs));
    a.and(b).and(c).unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

/// A row of a table that remembers the last token: `update … set …, token = $1 where id = $2 and token <= $1`.
#[derive(Default)]
struct Row(Mutex<(i64, u32)>);

impl Row {
    fn add(&self, token: Token, amount: u32) -> bool {
        let mut row = self.0.lock().unwrap();
        let accepted = row.0 <= token.get();
        if accepted {
            *row = (token.get(), row.1 + amount);
        }
        accepted
    }
}

/// One worker of a pool; the database refuses what it writes once another worker has taken over.
async fn work_on(orders: &Locks, order: &str, row: &Row) -> Answer<bool> {
    let lease = orders.write(order).await?;
    let token = lease.token().ok_or("this store gives no tokens")?;
    let accepted = row.add(token, 1);
    lease.check()?;
    Ok(lease.unlock().await?.is_released() && accepted)
}

#[tokio::test]
async fn a_pool_of_workers_with_tokens() {
    let (orders, row) = (Ylock::in_memory().locks("orders"), Row::default());
    let late = orders.write("4711").await.unwrap().token().unwrap();
    for _ in 0..10 {
        assert!(work_on(&orders, "4711", &row).await.unwrap());
    }
    assert!(!row.add(late, 100), "the former holder comes too late");
    assert_eq!(row.0.lock().unwrap().1, 10);
}

/// A batch over many names, which stops when the lock of one name cannot be acquired.
async fn batch(users: &Locks, names: &[String]) -> Answer<usize> {
    let mut tasks = tokio::task::JoinSet::new();
    for name in names {
        let (users, name) = (users.clone(), name.clone());
        tasks.spawn(async move { users.write(&name).run(async |_| name.len()).await });
    }
    let mut letters = 0;
    while let Some(done) = tasks.join_next().await {
        letters += done??;
    }
    Ok(letters)
}

#[tokio::test]
async fn a_batch() {
    let names: Vec<_> = (0..100).map(|number| format!("user {number:02}")).collect();
    assert_eq!(batch(&Ylock::in_memory().locks("users"), &names).await.unwrap(), 700);
}

/// A service that is configured by a file and by the environment in which it runs.
#[cfg(feature = "serde")]
#[tokio::test]
async fn configuration_by_file() {
    #[derive(serde::Deserialize)]
    struct Service {
        locks: ylock::Config,
    }
    let service: Service = toml::from_str("locks = { url = \"memory://\", lease = \"7s\" }").unwrap();
    let ylock = ylock::connect_with(&service.locks.with_env("SERVICE_LOCKS").unwrap()).await.unwrap();
    assert_eq!(ylock.options().lease(), Duration::from_secs(7));
    let wrong = toml::from_str::<Service>("locks = { url = \"memory://\", leese = \"7s\" }");
    assert!(wrong.is_err_and(|error| error.to_string().contains("lease")));
}

/// A library that locks what its caller names, with a shorter wait and all other options as the caller has chosen.
struct Cache {
    locks: Locks,
}

impl Cache {
    fn new(ylock: &Ylock) -> Answer<Self> {
        let short = Options::default().with_max_wait(Duration::from_secs(1));
        Ok(Self { locks: ylock.locks("cache").try_with_options(short)? })
    }

    async fn fill(&self, entry: impl Name) -> Answer<Guard> {
        Ok(self.locks.write(entry).await?)
    }
}

#[tokio::test(start_paused = true)]
async fn a_library() {
    let ylock = Ylock::in_memory().with_options(Options::default().with_lease(Duration::from_secs(42)));
    let cache = Cache::new(&ylock).unwrap();
    assert_eq!(cache.locks.options().lease(), Duration::from_secs(42));
    let filling = cache.fill("front page").await.unwrap();
    let failed = cache.fill("front page").await.unwrap_err().to_string();
    assert!(failed.contains("TimedOut") || failed.contains("held it"), "{failed}");
    drop(filling);
    drop(cache.fill(String::from("front page")).await.unwrap());
}

/// Code that is not asynchronous.
#[test]
fn synchronous_code() {
    let reports = ylock::blocking::Ylock::in_memory().locks("reports");
    let write = || {
        let guard = reports.write("monthly").wait().unwrap();
        let is_alone = reports.read("monthly").now().wait().unwrap().is_none();
        drop(guard);
        is_alone
    };
    let written = std::thread::scope(|scope| {
        let writers = [(); 4].map(|()| scope.spawn(write));
        writers.map(|writer| writer.join().unwrap())
    });
    assert_eq!(written, [true; 4]);
}
