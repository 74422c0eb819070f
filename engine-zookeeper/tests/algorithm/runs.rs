//! The runs of jobs that are not kept any more: which of them a client removes that has done a job, and what that costs.

use std::time::Duration;

use ylock_core::engine::Engine;
use ylock_core::{ClientName, JobRun, Key, Token};
use ylock_engine_zookeeper::ZookeeperEngine;
use ylock_engine_zookeeper::algorithm::store::Fault;

use crate::fates::Fate;
use crate::fixture::Fixture;

/// Where the runs of this bucket are, and that of the job that is run here.
const BUCKET: &str = "/ylock/runs/24";
const OWN: &str = "users:alice";
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);
/// How many nodes a client looks at for each job that it has done.
const LOOKED_AT: usize = 4;

fn run(period: i64) -> JobRun {
    JobRun::begun(period, Some(Token::from_number(7)), 8, ClientName::stored("web-3"))
}

/// Does the job of a period.
async fn do_job(engine: &ZookeeperEngine, period: i64) {
    let key = Key::new("users", "alice").unwrap();
    assert!(engine.store_run(&key, &run(period), HOUR).await.unwrap());
    assert!(engine.store_run(&key, &run(period).done(), HOUR).await.unwrap());
}

/// Returns the content of a node whose run was kept until so long ago.
fn over_for(fixture: &Fixture, time: Duration) -> Vec<u8> {
    let until = fixture.environment().wall_micros() - i64::try_from(time.as_micros()).unwrap();
    format!("{until} {}", run(1).to_text()).into_bytes()
}

/// Puts nodes of other jobs beside the one that is run here.
fn put(fixture: &Fixture, names: impl IntoIterator<Item = (String, Vec<u8>)>) {
    let mut nodes = fixture.fake.nodes();
    for (name, content) in names {
        nodes.make(&format!("{BUCKET}/{name}"), &content, None).unwrap();
    }
}

fn names(fixture: &Fixture) -> Vec<String> {
    fixture.fake.nodes().names(BUCKET).unwrap()
}

/// A client with a job that was done once, so that there is the bucket.
async fn client(fixture: &Fixture) -> std::sync::Arc<ZookeeperEngine> {
    let engine = fixture.client().await;
    do_job(&engine, 1).await;
    engine
}

/// The lock may have been acquired over another session, whose server knew already that the last holder had left.
#[tokio::test(start_paused = true)]
async fn the_last_run_is_asked_for_at_a_server_that_has_caught_up() {
    let fixture = Fixture::new();
    let here = client(&fixture).await;
    fixture.fake.fates.fall_behind();
    let last = here.last_run(&Key::new("users", "alice").unwrap()).await.unwrap();
    assert!(last.is_some_and(|last| last.is_done && last.period_micros() == 1));
}

/// The clock of the client may be ahead by a day. What cannot be read stays for the error that says so, and what is empty is being made.
#[tokio::test(start_paused = true)]
async fn runs_that_have_been_over_for_a_day_go_and_all_others_stay() {
    let fixture = Fixture::new();
    let engine = client(&fixture).await;
    let stay = [
        ("kept", over_for(&fixture, Duration::ZERO)),
        ("over", over_for(&fixture, DAY - HOUR)),
        ("made", Vec::new()),
        ("damaged", b"0 what is this".to_vec()),
    ];
    put(&fixture, stay.iter().map(|(name, content)| ((*name).to_owned(), content.clone())));
    put(&fixture, (0..20).map(|number| (format!("old-{number}"), over_for(&fixture, DAY + HOUR))));
    let mut period = 1;
    while names(&fixture).iter().any(|name| name.starts_with("old")) {
        period += 1;
        assert!(period < 1_000, "some stay: {:?}", names(&fixture));
        do_job(&engine, period).await;
    }
    // Each of those that are left was looked at again and again.
    for _ in 0..50 {
        period += 1;
        do_job(&engine, period).await;
    }
    let mut left = names(&fixture);
    left.sort_unstable();
    assert_eq!(left, ["damaged", "kept", "made", "over", OWN]);
}

/// Before the work nothing is removed: no job waits for that.
#[tokio::test(start_paused = true)]
async fn few_nodes_are_looked_at_and_only_when_a_job_is_done() {
    let fixture = Fixture::new();
    let (engine, key) = (client(&fixture).await, Key::new("users", "alice").unwrap());
    put(&fixture, (0..100).map(|number| (format!("old-{number}"), over_for(&fixture, DAY + HOUR))));
    let sent = |request| fixture.fake.sent().into_iter().filter(|one| *one == request).count();
    sent("");
    assert!(engine.store_run(&key, &run(2), HOUR).await.unwrap());
    assert_eq!((sent("list"), names(&fixture).len()), (0, 101));
    assert!(engine.store_run(&key, &run(2).done(), HOUR).await.unwrap());
    // The own one may be among those that it looked at.
    assert!((101 - LOOKED_AT..=101 - LOOKED_AT + 1).contains(&names(&fixture).len()));
    assert_eq!(sent("remove_version"), 101 - names(&fixture).len());
}

/// Another client runs that job anew between the look and the removal: its run must stay, or the period would be run again.
#[tokio::test(start_paused = true)]
async fn a_run_that_was_stored_after_the_look_stays() {
    let fixture = Fixture::new();
    let (engine, key) = (client(&fixture).await, Key::new("users", "alice").unwrap());
    let (path, fresh) = (format!("{BUCKET}/old"), over_for(&fixture, Duration::ZERO));
    put(&fixture, [("old".to_owned(), fresh.clone())]);
    let write = |content: &[u8]| {
        let mut nodes = fixture.fake.nodes();
        let version = nodes.read(&path).unwrap().version;
        nodes.write(&path, content, version).unwrap();
    };
    let mut was_removed_too_late = false;
    // The client begins with any of the two nodes: with the own one it looks at the other too late for this.
    for period in 2..100 {
        write(&over_for(&fixture, DAY + HOUR));
        assert!(engine.store_run(&key, &run(period), HOUR).await.unwrap());
        // The first read is that of the own node, before it is written.
        fixture.fake.fates.of_next("read", Fate::Done);
        fixture.fake.fates.of_next("read", Fate::Late(Duration::from_secs(1)));
        fixture.fake.sent();
        let done = run(period).done();
        let other_client = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            write(&fresh);
        };
        let (stored, ()) = tokio::join!(engine.store_run(&key, &done, HOUR), other_client);
        assert!(stored.unwrap());
        assert_eq!(fixture.fake.nodes().read(&path).unwrap().content, fresh);
        was_removed_too_late |= fixture.fake.sent().contains(&"remove_version");
    }
    assert!(was_removed_too_late, "it never came to that");
}

/// Nothing waits for the removal.
#[tokio::test(start_paused = true)]
async fn a_job_is_done_although_nothing_can_be_removed() {
    let fixture = Fixture::new();
    let engine = client(&fixture).await;
    put(&fixture, [("old".to_owned(), over_for(&fixture, DAY + HOUR))]);
    for request in ["list", "remove_version"] {
        fixture.fake.fates.of_next(request, Fate::Refused(Fault::ConnectionLoss));
        do_job(&engine, if request == "list" { 2 } else { 3 }).await;
        assert_eq!(names(&fixture), ["old", OWN], "{request}");
        assert!(fixture.fake.fates.has_come(), "{request}");
    }
}
