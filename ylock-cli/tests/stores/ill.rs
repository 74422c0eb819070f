//! A store with which something is wrong, and what `ylock doctor` says of it.

use super::json;
use super::support::Place;

/// `url` has this part in the place of a server that is not there.
pub(crate) fn one_server_of_several_that_is_down_is_named(url: &str) {
    let place = Place::on(url);
    let found = place.output(&["doctor"]);
    assert_eq!(found.code, Some(69), "{found:?}");
    assert!(found.stdout.contains("reached: WRONG: 127.0.0.1:1: "), "{}", found.stdout);
    assert!(found.stdout.contains("acquire and release: take "), "the others are enough: {}", found.stdout);
    let well = json(&place.output(&["doctor", "--json"]).stdout)["well"].clone();
    assert_eq!(well, false);
}

/// What is wrong with the configuration is said once, and what mends it.
pub(crate) fn a_configuration_that_is_wrong_is_explained(url: &str, parts: &[&str]) {
    let place = Place::on(url);
    let found = place.output(&["doctor"]);
    assert_eq!(found.code, Some(64), "{found:?}");
    for part in parts.iter().chain(&["connection: WRONG: "]) {
        assert_eq!(found.stdout.matches(part).count(), 1, "{part}: {}", found.stdout);
    }
    assert!(!format!("{found:?}").contains("hunter2"), "{found:?}");
    let inspected = place.output(&["inspect", "--json", "users/alice"]);
    assert_eq!((inspected.code, &json(&inspected.stderr)["code"]), (Some(64), &64.into()), "{inspected:?}");
}
