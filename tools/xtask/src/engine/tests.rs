//! Engines that are not told apart, or that other places do not know.

use std::{collections::HashSet, fmt::Debug, hash::Hash};

use super::*;
use crate::{cargo, tracked};

fn stores() -> Vec<Box<dyn Store>> {
    let places = Places::at("/nowhere".into());
    ENGINES.iter().filter_map(|engine| engine.stores).flat_map(|stores| stores(&places)).collect()
}

fn assert_differ<T: Clone + Debug + Eq + Hash>(all: impl IntoIterator<Item = T>) {
    let mut seen = HashSet::new();
    all.into_iter().for_each(|one| assert!(seen.insert(one.clone()), "{one:?} is there twice"));
}

#[test]
fn names_variables_and_folders_are_each_used_once() {
    assert_differ(ENGINES.iter().map(|engine| engine.name));
    assert_differ(ENGINES.iter().flat_map(|engine| engine.benches).map(|bench| bench.name));
    assert_differ(stores().iter().map(|store| store.name()));
    assert_differ(stores().iter().map(|store| store.variable()));
    let processes = stores().into_iter().flat_map(|store| store.processes());
    assert_differ(processes.map(|process| process.folder().to_owned()));
}

#[test]
fn every_crate_of_an_engine_is_in_the_list_and_in_the_workspace() {
    let packages = cargo::packages().unwrap();
    let listed: HashSet<_> = ENGINES.iter().flat_map(|engine| engine.packages).copied().collect();
    let there: HashSet<_> = packages.iter().map(|package| package.name.as_str()).collect();
    assert!(listed.is_subset(&there), "{listed:?} are not all of {there:?}");
    let engines: HashSet<_> = there.into_iter().filter(|name| name.starts_with("ylock-engine-")).collect();
    assert!(engines.is_subset(&listed), "{engines:?} are not all of {listed:?}");
}

#[test]
fn an_engine_with_servers_has_a_feature_of_its_name_and_rooms() {
    let packages = cargo::packages().unwrap();
    let facade = packages.iter().find(|package| package.name == "ylock").unwrap();
    for engine in ENGINES.iter().filter(|engine| engine.has_servers()) {
        assert!(facade.features.iter().any(|feature| feature == engine.name), "{}", engine.name);
        assert!(!engine.drivers.is_empty() && !engine.rooms.is_empty(), "{}", engine.name);
    }
}

#[test]
fn contributors_can_name_servers_of_their_own() {
    let pages = tracked::files(&["CONTRIBUTING.md"]).unwrap();
    for store in stores().iter().filter(|store| !store.wants_login()) {
        let row = format!("| `{}` | ", store.variable());
        assert!(pages[0].text.contains(&row), "CONTRIBUTING.md has no row of {}", store.variable());
    }
}
