//! Connects with URLs, right and wrong: the error for a wrong URL says what is wrong, and shows nothing else of the URL.

use std::time::Duration;

use ylock::ErrorKind;

/// Returns the message of the `Config` error that this URL causes.
async fn complaint(url: &str) -> String {
    let error = ylock::connect(url).await.expect_err(url);
    assert_eq!(error.kind(), ErrorKind::Config, "{url}: {error}");
    error.to_string()
}

#[tokio::test]
async fn memory_works() {
    let ylock = ylock::connect("memory://").await.unwrap();
    assert_eq!(ylock.engine_name(), "memory");
    let guard = ylock.locks("users").write("alice").await.unwrap();
    assert!(ylock.locks("users").write("alice").now().await.unwrap().is_none());
    drop(guard);
    ylock.close().await;
}

#[tokio::test]
async fn each_connect_to_memory_is_a_new_store() {
    let (one, two) = (ylock::connect("memory://").await.unwrap(), ylock::connect("memory://").await.unwrap());
    let _here = one.locks("users").write("alice").await.unwrap();
    assert!(two.locks("users").write("alice").now().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn options_of_the_url_are_those_of_the_client() {
    let ylock = ylock::connect("memory://?max_wait=3s&lease=2s").await.unwrap();
    let guard = ylock.locks("users").write("alice").await.unwrap();
    let remaining = guard.remaining();
    assert!(remaining > Duration::from_secs(1) && remaining < Duration::from_secs(2), "{remaining:?}");
    let start = tokio::time::Instant::now();
    assert_eq!(ylock.locks("users").write("alice").await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(start.elapsed().as_secs(), 3);
}

#[tokio::test]
async fn an_unknown_engine_names_the_near_one_and_those_compiled_in() {
    for (url, near) in
        [("memry://", "memory://"), ("Memory://", "memory://"), ("casandra://h/k", "cassandra://")]
    {
        let complaint = complaint(url).await;
        assert!(complaint.contains(&format!("did you mean {near}?")), "{complaint}");
        assert!(complaint.contains("compiled in: memory://"), "{complaint}");
    }
    assert!(!complaint("postgres://h").await.contains("did you mean"));
}

#[cfg(feature = "zookeeper")]
#[tokio::test]
async fn zookeeper_says_what_is_wrong() {
    assert!(complaint("zookeeper://localhost?sesion=1s").await.contains("did you mean \"session\"?"));
    assert!(complaint("zookeeper://localhost?acl=creator").await.contains("needs a login"));
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn urls_of_several_redis_servers_say_what_is_missing_or_too_much() {
    for (url, part) in [
        ("redis://here,there", "Several are named in redis+sentinel:// and redis+cluster://"),
        ("zookeeper+ring://here", "no engine has the scheme \"zookeeper+ring\""),
        ("redis+ring://here", "\"ring\" is no kind of Redis"),
        ("redis+sentinel://here,there", "no service is given"),
        (
            "redis+sentinel://here/users/many",
            "the path ends with the number of a database, not with \"many\"",
        ),
        ("redis+sentinel://here/users?sentinel_user=me", "sentinel_user has no sentinel_password"),
        ("redis+cluster://here,there/1", "a cluster has one database"),
        ("redis+cluster://here?sentinel_password=x", "but no Sentinels"),
        ("rediss://here?tls=off", "rediss:// and tls=off contradict each other"),
        ("redis://here?tls_ca=x", "tls_ca needs TLS: tls=on"),
        ("redis://here?notify=on&poll=1s", "notify=on and poll=… contradict each other"),
        ("redis://here?poll=2s&poll_longest=1s", "poll is 2s and poll_longest 1s"),
        ("redis://here?min_replicas=all", "option min_replicas=all: not a whole number"),
    ] {
        let complaint = complaint(url).await;
        assert!(complaint.contains(part), "{url}: {complaint}");
    }
}

#[tokio::test]
async fn memory_has_no_place() {
    for url in ["memory://localhost", "memory:///path", "memory://user@"] {
        assert!(complaint(url).await.contains("no user, host or path"), "{url}");
    }
}

#[tokio::test]
async fn an_unknown_option_names_the_near_one() {
    assert!(complaint("memory://?leese=10s").await.contains("did you mean \"lease\"?"));
    assert!(complaint("memory://?cleint=web").await.contains("did you mean \"client\"?"));
    assert!(complaint("memory://?metric=on").await.contains("did you mean \"metrics\"?"));
    let all = complaint("memory://?keyspace=k").await;
    assert!(
        all.contains(
            "known are lease, fairness, hand_over, hand_over_time, max_wait, max_hold, client, metrics"
        ),
        "{all}"
    );
    #[cfg(feature = "redis")]
    for url in ["redis://h?cleint=web", "rediss+cluster://h?cleint=web"] {
        assert!(complaint(url).await.contains("did you mean \"client\"? (engine redis)"), "{url}");
    }
    #[cfg(feature = "cassandra")]
    assert!(complaint("cassandra://h/k?replicatoin=3").await.contains("did you mean \"replication\"?"));
}

#[tokio::test]
async fn options_outside_their_limits_are_refused_at_once() {
    for (url, part) in [
        ("memory://?lease=1ms", "a lease is between 100ms and 24h"),
        ("memory://?max_hold=0s", "a max_hold of zero"),
        ("memory://?lease=soon", "option lease=soon: not a duration"),
        ("memory://?fairness=very", "fair, strict or unfair"),
        ("memory://?hand_over=1024", "at most 1022 hand-overs"),
        ("memory://?max_wait=1s&max_wait=2s", "given twice"),
        ("memory:", "a URL begins with the engine"),
    ] {
        let complaint = complaint(url).await;
        assert!(complaint.contains(part), "{url}: {complaint}");
    }
}

#[tokio::test]
async fn no_error_shows_a_secret() {
    for url in [
        "redis://me:hunter2@localhost,here",
        "zookeeper://me:hunter2@localhost/locks?leese=1s",
        "redis://me:hunter2@localhost/hunter3",
        "redis+hunter4://me:hunter2@localhost",
        "redis+cluster://me:hunter2@localhost,here/1",
        "redis+cluster://me:hunter2@localhost?sentinel_password=hunter3",
        "redis+sentinel://me:hunter2@localhost,here",
        "redis+sentinel://me:hunter2@localhost,here/users/many",
        "redis+sentinel://me:hunter2@localhost,here/users?sentinel_user=me",
        "redis://me:hunter2@localhost?leese=1s",
        "casandra://me:hunter2@localhost/keyspace",
        "memory://me:hunter2@",
        "cassandra://me:hunter2@localhost/keyspace?leese=1s",
        "cassandra://me:hunter2@localhost/",
        "cassandra://me:hunter2@localhost:port/keyspace",
    ] {
        let complaint = complaint(url).await;
        assert!(!complaint.contains("hunter2"), "{url}: {complaint}");
    }
}

/// A password with a `/` or `?` that is not percent-encoded ends early, and its rest looks like another part of the URL.
#[tokio::test]
async fn no_error_shows_a_secret_that_was_not_escaped() {
    for url in [
        "cassandra://me:hunter2/x@localhost/keyspace",
        "cassandra://me:1/hunter2@localhost/keyspace",
        "cassandra://me:x?hunter2@localhost/keyspace",
        "cassandra://me:1?hunter2@localhost/keyspace",
        "cassandra://me:1?hunter2=x@localhost/keyspace",
    ] {
        let complaint = complaint(url).await;
        assert!(!complaint.contains("hunter2"), "{url}: {complaint}");
    }
}

#[tokio::test]
async fn a_client_is_named_by_the_url() {
    let ylock = ylock::connect("memory://?client=billing%202&lease=5s").await.unwrap();
    assert_eq!(ylock.name().as_str(), "billing 2");
    let ylock = ylock::connect("memory://").await.unwrap();
    assert!(ylock.name().as_str().ends_with(&format!("/{}", std::process::id())), "{ylock:?}");
    assert!(complaint("memory://?client=").await.contains("is empty"));
    assert!(complaint("memory://?client=a%0Ab").await.contains("control character"));
}

#[cfg(not(feature = "metrics"))]
#[tokio::test]
async fn metrics_that_are_not_compiled_in_name_their_feature() {
    let complaint = complaint("memory://?metrics=on").await;
    assert!(complaint.contains("switch on the Cargo feature \"metrics\""), "{complaint}");
    assert!(ylock::connect("memory://?metrics=off").await.is_ok());
}

#[cfg(feature = "metrics")]
#[tokio::test]
async fn metrics_are_switched_on_by_the_url() {
    for (url, measured) in
        [("memory://?metrics=on", true), ("memory://?metrics=off", false), ("memory://", false)]
    {
        let ylock = ylock::connect(url).await.unwrap();
        assert_eq!(format!("{ylock:?}").contains("MetricsLayer"), measured, "{ylock:?}");
    }
    assert!(complaint("memory://?metrics=perhaps").await.contains("metrics"));
}
