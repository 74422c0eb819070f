//! URLs that can be read, and URLs that cannot.

use std::time::Duration;

use ylock_core::ErrorKind;

use super::*;

fn parse(text: &str) -> Result<CassandraOptions> {
    let url = EngineUrl::parse(text)?;
    let mut common = Options::default();
    for (name, value) in &url.options {
        common.set(name, value)?;
    }
    CassandraOptions::from_url(&url, &common)
}

#[test]
fn a_url_gives_hosts_login_and_keyspace() {
    let options = parse("cassandra://me:secret@a,b:9043,[::1]/ks?table=t").unwrap();
    assert_eq!(options.addresses(), ["a:9042", "b:9043", "[::1]:9042"]);
    assert_eq!((options.keyspace(), options.table()), ("ks", "t"));
    assert_eq!(options.login().unwrap().user, "me");
    assert_eq!(options.login().unwrap().password.reveal(), "secret");
    assert!(!format!("{options:?}").contains("secret"));
}

#[test]
fn every_known_name_is_read() {
    let options = parse(
        "cassandra://a/ks?lease=30s&clock=global-time&connect_timeout=1s&consistency=local_quorum&datacenter=dc1&gc_grace=2m\
         &expiry=observed&max_clock_skew=1s&notify=off&protocol=shadow-rows&replication=5&request_timeout=700ms&schema=create&tls=on&tls_ca=/ca&token_ttl=1h",
    )
    .unwrap();
    assert_eq!((options.clock(), options.protocol()), (Clock::GlobalTime, Protocol::ShadowRows));
    assert_eq!(options.connect_timeout(), Duration::from_secs(1));
    assert_eq!(options.consistency(), Consistency::LocalQuorum);
    assert_eq!(options.datacenter(), Some("dc1"));
    assert_eq!(options.expiry(), Expiry::Observed);
    assert_eq!(options.gc_grace(), Duration::from_secs(120));
    assert_eq!(options.max_clock_skew(), Duration::from_secs(1));
    assert_eq!(options.replication(), 5);
    assert_eq!(options.request_timeout(), Duration::from_millis(700));
    assert_eq!(options.schema(), SchemaMode::Create);
    assert_eq!(options.tls(), Tls::Authority("/ca".into()));
    assert_eq!(options.token_ttl(), Duration::from_secs(3600));
}

#[test]
fn how_waiters_are_told_is_read() {
    let text = "cassandra://a/ks?notify=udp&notify_bind=127.0.0.1:7000&notify_advertise=10.0.0.1:0&notify_allow=10.0.0.0/8";
    let options = parse(text).unwrap();
    let built = CassandraOptions::new("ks")
        .with_notify(Notify::Udp)
        .with_notify_bind(([127, 0, 0, 1], 7000))
        .with_notify_advertise(([10, 0, 0, 1], 0))
        .with_notify_allow("10.0.0.0/8")
        .unwrap();
    for options in [options, built] {
        assert_eq!(options.notify(), Notify::Udp);
        assert_eq!(options.notify_bind().to_string(), "127.0.0.1:7000");
        assert_eq!(options.notify_advertise().unwrap().to_string(), "10.0.0.1:0");
        assert!(options.notify_allow().unwrap().contain([10, 1, 2, 3].into()));
    }
    assert_eq!(parse("cassandra://a/ks").unwrap().notify(), Notify::Auto);
}

/// What others do not see need not be an address that they could reach.
#[test]
fn where_another_address_is_named_the_bound_one_may_be_any() {
    for query in [
        "notify_bind=0.0.0.0:7000",
        "notify_bind=[::]:0",
        "notify_bind=127.0.0.1:7000",
        "notify_bind=0.0.0.0:700&notify_advertise=10.0.0.2:7000",
    ] {
        assert!(parse(&format!("cassandra://a/ks?notify=udp&{query}")).is_ok(), "{query}");
    }
}

#[test]
fn the_request_timeout_follows_the_lease() {
    for (lease, timeout) in [("10s", 2000), ("1m", 2000), ("1s", 200)] {
        let options = parse(&format!("cassandra://a/ks?lease={lease}")).unwrap();
        assert_eq!(options.request_timeout(), Duration::from_millis(timeout), "{lease}");
    }
}

#[test]
fn a_skew_of_any_length_is_an_error_and_no_panic() {
    for expiry in [Expiry::Ttl, Expiry::Observed] {
        let options = CassandraOptions::new("ks").with_expiry(expiry).with_max_clock_skew(Duration::MAX);
        let error = options.check().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{expiry:?}");
    }
}

/// Where rows are observed the servers' clocks decide nothing within this.
#[test]
fn how_far_clocks_may_differ_follows_the_expiry() {
    for (query, seconds) in [
        ("expiry=ttl", 2),
        ("expiry=observed", 60),
        ("expiry=ttl&max_clock_skew=1h", 3_600),
        ("expiry=observed&max_clock_skew=3days", 3 * 24 * 3_600),
    ] {
        let options = parse(&format!("cassandra://a/ks?{query}")).unwrap();
        assert_eq!(options.max_clock_skew(), Duration::from_secs(seconds), "{query}");
        // It ends late by that, is shown for longer by that, and what came after it is thrown away early by that.
        assert_eq!(options.longest_shown(), Duration::from_secs(11 + 3 * seconds), "{query}");
    }
}

/// A node that was away must not show a row again of which another node has thrown away what came after.
#[test]
fn a_table_that_is_created_keeps_what_supersedes_a_row_for_as_long_as_that_is_shown() {
    for (query, seconds) in [
        ("", 10 + 1 + 3 * 60),
        ("lease=90s", 90 + 1 + 3 * 60),
        ("lease=500ms&max_clock_skew=4500ms", 20),
        ("expiry=ttl", 20),
        ("expiry=ttl&lease=30s", 30 + 1 + 3 * 2),
        ("expiry=observed&max_clock_skew=2h", 10 + 1 + 3 * 7_200),
        ("expiry=observed&max_clock_skew=3days", 10 + 1 + 9 * 24 * 3_600),
        ("gc_grace=3s", 3),
        ("token_ttl=1825days&max_clock_skew=900days", 1_825 * 24 * 3_600),
    ] {
        let options = parse(&format!("cassandra://a/ks?{query}")).unwrap();
        assert_eq!(options.gc_grace(), Duration::from_secs(seconds), "{query}");
        // A client does not warn of the table that it has just created, unless it was told to make it so.
        assert!(query.starts_with("gc_grace") || options.longest_shown() <= options.gc_grace(), "{query}");
    }
}

#[test]
fn rows_of_a_new_table_are_observed_unless_it_is_to_be_otherwise() {
    let left = parse("cassandra://a/ks").unwrap();
    assert_eq!((left.expiry_asked_for(), left.expiry()), (None, Expiry::Observed));
    let asked = parse("cassandra://a/ks?expiry=ttl").unwrap();
    assert_eq!((asked.expiry_asked_for(), asked.expiry()), (Some(Expiry::Ttl), Expiry::Ttl));
}

/// What fits one rule and not the other is refused when it is known by which the table's clients go.
#[test]
fn what_depends_on_the_table_is_not_refused_before_the_table_is_known() {
    for (query, wrong) in [("token_ttl=30s", Expiry::Observed), ("max_clock_skew=2h", Expiry::Ttl)] {
        let options = parse(&format!("cassandra://a/ks?{query}")).unwrap();
        let right = if wrong == Expiry::Ttl { Expiry::Observed } else { Expiry::Ttl };
        options.clone().with_expiry(right).check().unwrap();
        let error = options.with_expiry(wrong).check().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{query}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    for (url, parts) in [
        ("cassandra:///ks", &["no host"][..]),
        ("cassandra://a", &["no keyspace"]),
        ("cassandra://a/my-ks", &["keyspace", "my-ks"]),
        ("cassandra://a/1ks", &["keyspace"]),
        ("cassandra://a/ks?table=a%22b", &["table"]),
        ("cassandra://a/ks?request_timeout=4s", &["request_timeout", "4s", "lease", "10s"]),
        ("cassandra://a/ks?lease=2s&request_timeout=667ms", &["request_timeout", "667ms", "lease", "2s"]),
        ("cassandra://a/ks?request_timeout=0s", &["request_timeout"]),
        ("cassandra://a/ks?consistency=local_quorum", &["datacenter"]),
        ("cassandra://a/ks?consistency=one", &["quorum", "one"]),
        ("cassandra://a/ks?schema=drop", &["check or create", "drop"]),
        ("cassandra://a/ks?clock=sundial", &["clock", "hlc", "global-time", "sundial"]),
        ("cassandra://a/ks?protocol=lwt", &["protocol", "lwt"]),
        ("cassandra://a/ks?token_ttl=100ms", &["token_ttl", "1s"]),
        ("cassandra://a/ks?expiry=ttl&token_ttl=20s", &["token_ttl", "24s"]),
        ("cassandra://a/ks?expiry=ttl&max_clock_skew=10days", &["max_clock_skew", "3600s"]),
        ("cassandra://a/ks?expiry=observed&max_clock_skew=4days", &["token_ttl", "604800s"]),
        ("cassandra://a/ks?expiry=later", &["expiry", "ttl", "observed", "later"]),
        ("cassandra://a/ks?gc_grace=0s", &["gc_grace"]),
        ("cassandra://a/ks?notify=on", &["notify", "off or udp"]),
        ("cassandra://a/ks?notify_bind=127.0.0.1:0", &["notify_bind", "notify=udp"]),
        ("cassandra://a/ks?notify_allow=10.0.0.0/8", &["notify_allow", "notify=udp"]),
        ("cassandra://a/ks?notify=udp&notify_bind=localhost:0", &["notify_bind", "10.1.2.3:7000"]),
        ("cassandra://a/ks?notify=udp&notify_allow=10.0.0.0/33", &["notify_allow", "10.0.0.0/8"]),
        ("cassandra://a/ks?notify=udp&notify_bind=0.0.0.0:700", &["notify_bind=0.0.0.0:700", "1024"]),
        ("cassandra://a/ks?notify=udp&notify_bind=224.0.0.1:7000", &["notify_bind", "one machine"]),
        (
            "cassandra://a/ks?notify=udp&notify_bind=10.0.0.1:53&notify_advertise=10.0.0.2:0",
            &["notify_bind", "1024"],
        ),
        ("cassandra://a/ks?notify=udp&notify_advertise=10.0.0.1:53", &["notify_advertise", "1024"]),
        ("cassandra://a/ks?notify=udp&notify_advertise=224.0.0.1:0", &["notify_advertise", "one machine"]),
        ("cassandra://a/ks?notify=udp&notify_advertise=0.0.0.0:7000", &["notify_advertise", "one machine"]),
        ("cassandra://a/ks?notify=udp&protocol=shadow-rows", &["notify=udp", "protocol=queue"]),
        ("cassandra://a/ks?replication=0", &["replication"]),
        ("cassandra://a/ks?replication=x", &["replication"]),
        ("cassandra://a/ks?tls=maybe", &["tls", "maybe"]),
        ("cassandra://a/ks?tls=off&tls_ca=x", &["tls_ca"]),
        ("cassandra://a/ks?datacenter=d'c", &["datacenter"]),
        ("cassandra://user@a/ks", &["user", "password"]),
        ("cassandra://a/ks?consistencey=quorum", &["\"consistency\""]),
        ("cassandra://a/ks?leese=1s", &["\"lease\""]),
    ] {
        let error = parse(url).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{url}");
        for part in parts {
            assert!(error.to_string().contains(part), "{url}: {error}");
        }
    }
}

#[test]
fn a_name_of_48_letters_is_the_longest() {
    assert!(parse(&format!("cassandra://a/{}", "k".repeat(48))).is_ok());
    assert!(parse(&format!("cassandra://a/{}", "k".repeat(49))).is_err());
}

#[test]
fn no_error_shows_the_password() {
    for url in
        ["cassandra://me:hunter2@a", "cassandra://me:hunter2@a/ks?x=1", "cassandra://me:hunter2@a/ks?tls=x"]
    {
        let error = parse(url).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}
