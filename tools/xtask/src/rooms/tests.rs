//! Small crates that keep to a plan, and that do not.

use super::plans::Exception;
use super::*;

const PLAN: Plan = Plan {
    sources: "house/src",
    floors: &[&["attic"], &["kitchen", "parlour"], &["hall"]],
    exceptions: &[Exception { user: "cellar", used: "hall" }],
};

fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

fn found(path: &str, text: &str) -> Vec<String> {
    let root = file("house/src/lib.rs", "mod attic;\npub use attic::{Dust, Window};");
    forbidden_uses(&PLAN, &[root, file(path, text)])
}

#[test]
fn a_room_uses_rooms_below_it() {
    assert!(found("house/src/kitchen/mod.rs", "use crate::hall::Door;\nuse crate::garden::Herb;").is_empty());
    assert!(found("house/src/kitchen/stove.rs", "use crate::kitchen::Pot;").is_empty());
    assert!(found("house/src/garden.rs", "use crate::shed::Spade;").is_empty());
}

#[test]
fn a_room_above_or_beside_is_found() {
    let text =
        "use crate::hall::Door;\nuse crate::parlour::Chair;\n\nfn open(window: crate::attic::Window) {}";
    assert_eq!(
        found("house/src/kitchen/stove.rs", text),
        [
            "  house/src/kitchen/stove.rs:2: `kitchen` must not use `parlour`",
            "  house/src/kitchen/stove.rs:4: `kitchen` must not use `attic`",
        ]
    );
}

#[test]
fn a_room_that_the_plan_does_not_name_is_below_all_others() {
    assert_eq!(
        found("house/src/garden.rs", "use crate::{hall::Door, shed};"),
        ["  house/src/garden.rs:1: `garden` must not use `hall`"]
    );
}

#[test]
fn a_name_that_the_root_reexports_counts_as_its_room() {
    assert_eq!(
        found("house/src/hall.rs", "use crate::Window;"),
        ["  house/src/hall.rs:1: `hall` must not use `attic`"]
    );
}

#[test]
fn an_exception_is_for_one_room_only() {
    assert!(found("house/src/cellar.rs", "use crate::hall::Stairs;").is_empty());
    assert_eq!(found("house/src/cellar.rs", "use crate::attic::Dust;").len(), 1);
}

#[test]
fn comments_and_tests_are_left_out() {
    assert!(found("house/src/hall.rs", "/// See [`Dust`](crate::attic::Dust).").is_empty());
    assert!(found("house/src/hall/tests.rs", "use crate::attic::Dust;").is_empty());
}

#[test]
fn a_room_of_the_plan_that_is_not_there_is_found() {
    let files = ["attic.rs", "kitchen/mod.rs", "hall.rs"].map(|name| file(&format!("house/src/{name}"), ""));
    assert_eq!(
        rooms_that_are_not_there(&PLAN, &files),
        ["  house/src: the room `parlour` of the plan is not there"]
    );
}

#[test]
fn a_driver_is_named_by_the_driver_only() {
    let text = "//! Not zookeeper_client::Client.\nuse zookeeper_client::Client;";
    for path in ["engine-zookeeper/src/driver/line.rs", "engine-zookeeper/src/driver_api.rs"] {
        assert!(drivers_outside(&[file(path, text)]).is_empty(), "{path}");
    }
    for path in
        ["engine-zookeeper/src/algorithm/judge.rs", "engine-zookeeper/src/engine.rs", "src/driver/a.rs"]
    {
        let told = format!("  {path}:2: only `driver/` and `driver_api` may name `zookeeper_client`");
        assert_eq!(drivers_outside(&[file(path, text)]), [told]);
    }
}
