//! What goes wrong, as JSON.

use serde_json::Value;

use crate::support::Place;

/// Returns the only line of what was said.
fn only(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn errors_are_json_where_the_output_is() {
    let place = Place::new();
    let away = "redis://127.0.0.1:1/0?connect_timeout=500ms";
    for (arguments, code) in [
        (&["inspect", "--json", "alice"][..], 64),
        (&["inspect", "--json"], 64),
        (&["list", "--json", ""], 64),
        (&["revoke", "--yes", "--json", "--id", "xyz", "users/alice"], 64),
        (&["--store", "nonsense", "watch", "--json", "users/alice"], 64),
        #[cfg(feature = "redis")]
        (&["--store", away, "list", "--json"], 69),
        #[cfg(feature = "redis")]
        (&["--store", away, "watch", "--json", "users/alice"], 69),
    ] {
        let ended = place.output(arguments);
        assert_eq!((ended.code, &*ended.stdout), (Some(code), ""), "{arguments:?}: {ended:?}");
        let said = only(&ended.stderr);
        assert!(said["code"] == code && !said["error"].as_str().unwrap().is_empty(), "{arguments:?}: {said}");
    }
    let _ = away;
}

/// What the command that is run is told is not told to `ylock`.
#[test]
fn the_arguments_of_a_command_that_is_run_ask_for_nothing() {
    let ended = Place::new().output(&["run", "--no-such-option", "users/alice", "--", "true", "--json"]);
    assert!(ended.code == Some(64) && ended.stderr.starts_with("error: "), "{ended:?}");
}
