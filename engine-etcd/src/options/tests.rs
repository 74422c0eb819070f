//! What URLs say, and what they cannot say.

use std::time::Duration;

use ylock_core::url::EngineUrl;

use super::*;

fn options(url: &str) -> Result<EtcdOptions> {
    let url = EngineUrl::parse(url)?;
    let mut common = Options::default();
    for (name, value) in &url.options {
        common.set(name, value)?;
    }
    EtcdOptions::from_url(&url, &common)
}

#[test]
fn a_url_says_everything() {
    let read = options("etcd://me:p%40ss@a,b:2380,[::1]/apps/locks?lease=9s&allow_old=on").unwrap();
    assert_eq!(read.cluster(), "a:2379,b:2380,[::1]:2379");
    assert_eq!((read.prefix(), read.lease()), ("apps/locks", Duration::from_secs(9)));
    assert!(read.allow_old());
    assert_eq!(read.login().unwrap().password.reveal(), "p@ss");
    assert!(!format!("{read:?}").contains("p@ss"));
    read.check().unwrap();
}

#[test]
fn a_url_may_say_little() {
    let read = options("etcd://a").unwrap();
    assert_eq!((read.prefix(), read.allow_old()), ("ylock", false));
    read.check().unwrap();
}

#[test]
fn bad_urls_say_what_is_bad() {
    for (url, part) in [
        ("etcd://a/x//y", "prefix"),
        ("etcd://a?allow_old=perhaps", "allow_old"),
        ("etcd://a?lease=1s&request_timeout=900ms", "request_timeout"),
        ("etcd://:secret@a", "login"),
        ("etcd://a?tls_ca=/x", "tls_ca"),
    ] {
        let error = options(url).and_then(|read| read.check()).unwrap_err();
        assert!(error.to_string().contains(part), "{url}: {error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
