//! Odd groups, many groups, panics, and recorders that are there already.

#![allow(clippy::disallowed_methods, reason = "a test starts tasks of its own")]

mod common;

use std::time::Duration;

use common::Scraped;
use metrics_exporter_prometheus::PrometheusBuilder;
use metrics_util::MetricKindMask;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use ylock_core::{ErrorKind, Ylock};
use ylock_metrics::catalogue::series_of_a_group;
use ylock_metrics::{MetricsLayer, prometheus};
use ylock_testkit::eventually;

const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn odd_names_of_groups_make_labels_that_prometheus_can_read() {
    let scraped = Scraped::new();
    let ylock = Ylock::in_memory().layer(scraped.layer.clone());
    let longest = "x".repeat(ylock_core::MAX_GROUP_BYTES);
    let odd = ["a\"b", "a\\\"b", "a\nb", "a\\b", "a\\\\b", "a/b", "ключ", "{}", " ", "other", &longest];
    for group in odd {
        drop(ylock.lock(group, "n").write().await.unwrap());
    }
    let text = scraped.text();
    let mut lines: Vec<&str> = text.lines().filter(|line| line.starts_with("ylock_held{")).collect();
    let count = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), count, "two series with the same labels: the whole scrape would be refused");
    let total = scraped.get("ylock_acquisitions_total", &[("outcome", "at_once")]);
    assert_eq!(total, odd.len() as f64);
    assert!(text.lines().all(|line| line.len() < 1000), "a label is cut");
}

#[tokio::test]
async fn a_hundred_thousand_groups_are_two_hundred_and_others() {
    let scraped = Scraped::new();
    let ylock = Ylock::in_memory().layer(scraped.layer.clone());
    for number in 0..100_000 {
        let guard = ylock.lock(format!("group {number}"), "n").write().now().await.unwrap();
        assert!(guard.is_some());
    }
    let total = scraped.get("ylock_acquisitions_total", &[("outcome", "at_once")]);
    assert_eq!(total, 100_000.0);
    assert_eq!(scraped.get("ylock_acquisitions_in_other_total", &[]), 99_800.0);
    assert_eq!(scraped.get("ylock_hold_seconds_count", &[("group", "other")]), 99_800.0);
    let text = scraped.text();
    assert_eq!(text.lines().filter(|line| line.starts_with("ylock_hand_overs_total{")).count(), 201);
    let of_groups = |line: &&str| line.contains("group=\"") && !line.starts_with('#');
    assert_eq!(text.lines().filter(of_groups).count(), 201 * series_of_a_group());
}

#[tokio::test]
async fn a_layer_with_fewer_groups_keeps_to_its_limit() {
    let scraped = Scraped::new();
    let ylock = Ylock::in_memory().layer(scraped.layer.with_groups(1));
    for group in ["first", "second", "third"] {
        drop(ylock.lock(group, "n").write().await.unwrap());
    }
    assert_eq!(scraped.get("ylock_acquisitions_total", &[("group", "first"), ("outcome", "at_once")]), 1.0);
    assert_eq!(scraped.get("ylock_acquisitions_total", &[("group", "other"), ("outcome", "at_once")]), 2.0);
}

#[tokio::test]
async fn a_task_that_panics_while_it_holds_is_a_release() {
    let scraped = Scraped::new();
    let ylock = Ylock::in_memory().layer(scraped.layer.clone());
    let lock = ylock.lock("g", "a");
    let task = tokio::spawn(async move {
        let _guard = lock.write().await.unwrap();
        panic!("work that is wrong");
    });
    assert!(task.await.is_err());
    assert_eq!(scraped.get("ylock_hold_seconds_count", &[("group", "g")]), 1.0);
    assert_eq!(scraped.get("ylock_held", &[("group", "g")]), 0.0);
}

/// The reason why `install` sets no idle timeout, and the documentation warns of it.
#[tokio::test]
async fn a_recorder_that_forgets_what_is_idle_loses_counts_for_ever() {
    let forgets = PrometheusBuilder::new().idle_timeout(MetricKindMask::ALL, Some(Duration::from_millis(1)));
    let (ours, forgetful) = (Scraped::new(), Scraped::over(forgets));
    let ylock = Ylock::in_memory().layer(ours.layer.clone()).layer(forgetful.layer.clone());
    let lock = ylock.lock("g", "a");
    drop(lock.write().await.unwrap());
    let counted = |scraped: &Scraped| scraped.find("ylock_acquisitions_total", &[("outcome", "at_once")]);
    eventually(SOON, "it has forgotten", || async { counted(&forgetful).is_none() }).await;
    drop(lock.write().await.unwrap());
    assert_eq!((counted(&ours), counted(&forgetful)), (Some(2.0), None));
}

/// The recorder of a process can be installed once, so this is one test.
#[test]
fn the_recorder_of_the_process() {
    let outside = prometheus::install("127.0.0.1:0").unwrap_err();
    assert!(outside.to_string().contains("runtime"), "{outside}");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let address = runtime.block_on(async {
        for (address, word) in [("nowhere", "nowhere"), ("127.0.0.1:99999", "99999")] {
            let error = prometheus::install(address).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.to_string().contains(word), "{error}");
        }
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let error = prometheus::install(&address).unwrap_err();
        assert!(error.to_string().contains(&address) && error.kind() == ErrorKind::Config, "{error}");

        // A client that was there before the recorder is seen from then on.
        let early = Ylock::in_memory().layer(MetricsLayer::new());
        drop(early.lock("early", "a").write().await.unwrap());
        let installed = prometheus::install("127.0.0.1:0").unwrap();
        drop(early.lock("early", "a").write().await.unwrap());
        let again = prometheus::install("127.0.0.1:0").unwrap_err();
        assert!(again.to_string().contains("recorder") && again.kind() == ErrorKind::Config, "{again}");

        let text = scrape(installed.address()).await.unwrap();
        assert!(text.contains("ylock_acquisitions_total{engine=\"memory\",group=\"early\""), "{text}");
        eventually(SOON, "the sampler has looked", || async {
            installed.render().contains("ylock_clients{engine=\"memory\",version=\"0.1.0\"} 1")
        })
        .await;
        // While the client closes, and after it.
        let (text, ()) = tokio::join!(scrape(installed.address()), early.close());
        assert!(text.is_some());
        assert!(scrape(installed.address()).await.is_some());
        installed.address()
    });
    // The runtime ends with a scrape on its way: it breaks off, and nothing else happens.
    let stream = std::net::TcpStream::connect(address).unwrap();
    drop(runtime);
    drop(stream);
}

async fn scrape(address: std::net::SocketAddr) -> Option<String> {
    let asking = async {
        let mut stream = tokio::net::TcpStream::connect(address).await.ok()?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: ylock\r\n\r\n").await.ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await.ok()?;
        Some(text)
    };
    tokio::time::timeout(SOON, asking).await.ok().flatten()
}
