//! What URLs say, and what they cannot say.

use std::time::Duration;

use ylock_core::url::EngineUrl;

use super::*;

fn options(url: &str) -> Result<ZookeeperOptions> {
    let url = EngineUrl::parse(url)?;
    let mut common = Options::default();
    for (name, value) in &url.options {
        common.set(name, value)?;
    }
    ZookeeperOptions::from_url(&url, &common)
}

#[test]
fn a_url_says_everything() {
    let read = options(
        "zookeeper://me:p%40ss@a,b:2182,[::1]/apps/locks?session=15s&lease=9s&acl=creator&token_floor=77",
    )
    .unwrap();
    assert_eq!(read.cluster(), "a:2181,b:2182,[::1]:2181");
    assert_eq!((read.base(), read.acl()), ("/apps/locks", Acl::Creator));
    assert_eq!((read.session(), read.lease()), (Duration::from_secs(15), Duration::from_secs(9)));
    assert_eq!(read.token_floor(), Some(77));
    assert_eq!(read.login().unwrap().password.reveal(), "p@ss");
    assert!(!format!("{read:?}").contains("p@ss"));
}

#[test]
fn a_session_is_a_fifth_longer_than_the_lease() {
    let read = options("zookeeper://a").unwrap();
    assert_eq!((read.session(), read.base()), (Duration::from_secs(12), "/ylock"));
}

#[test]
fn bad_urls_say_what_is_bad() {
    for (url, part) in [
        ("zookeeper://", "no host"),
        ("zookeeper://a?acl=creator", "needs a login"),
        ("zookeeper://a?acl=all", "open or creator"),
        ("zookeeper://a/zookeeper/x", "not the path"),
        ("zookeeper://a/x//y", "not the path"),
        ("zookeeper://a/x/../y", "not the path"),
        ("zookeeper://a?sesion=1s", "did you mean \"session\""),
        ("zookeeper://a?request_timeout=4s", "third of the lease"),
        ("zookeeper://a?session=5s", "five sixths of session=5s"),
        ("zookeeper://a?tls_ca=x", "tls=on"),
        ("zookeeper://user@a", "user and a password"),
        ("zookeeper://:password@a", "user and a password"),
        #[cfg(feature = "tls")]
        ("zookeeper://a?tls=on", "needs tls_ca"),
        ("zookeeper://a?tls=on&tls_ca=x&tls_cert=y", "tls_cert needs tls_key"),
        #[cfg(not(feature = "tls"))]
        ("zookeeper://a?tls=on&tls_ca=x", "\"zookeeper-tls\" of ylock"),
        ("zookeeper://a%2Cb", "not the name"),
        ("zookeeper://a?token_floor=-1", "token_floor=-1: must be between 0 and 4611686018427387903"),
        ("zookeeper://a?token_floor=4611686018427387904", "room for tokens above it"),
        ("zookeeper://a?token_floor=99999999999999999999", "not a whole number"),
    ] {
        let error = options(url).unwrap_err();
        assert_eq!(error.kind(), ylock_core::ErrorKind::Config);
        assert!(error.to_string().contains(part), "{url}: {error}");
    }
}
