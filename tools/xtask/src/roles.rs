//! Engines that lack a file which every engine has: `cargo xtask check` finds them. A reader who knows one engine finds each role in the
//! file of that name in the others.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use crate::tracked;

/// The sources and pages of the engines, and what shows that a folder is an engine.
const READ: [&str; 3] = ["engine-*/Cargo.toml", "engine-*/guarantees.md", "engine-*/src/*.rs"];
/// The roles that are in the root of the crate or in `algorithm/`.
const IN_ROOT_OR_ALGORITHM: [&str; 4] = ["acquire", "renew", "release", "inspect"];

/// Fails, with every file that is missing, if an engine lacks one.
pub(crate) fn check() -> Result<()> {
    let files = tracked::files(&READ)?;
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let missing = missing(&paths);
    if missing.is_empty() {
        Ok(())
    } else {
        bail!("engines lack files that every engine has:\n{}", missing.join("\n"))
    }
}

/// Returns what is missing, by engine and role.
fn missing(paths: &[&str]) -> Vec<String> {
    let engines: BTreeSet<&str> = paths.iter().filter_map(|path| Some(path.split_once('/')?.0)).collect();
    let mut missing = Vec::new();
    for engine in engines {
        for places in roles() {
            let is_there = |place: &String| paths.contains(&format!("{engine}/{place}").as_str());
            if !places.iter().any(is_there) {
                missing.push(format!("  {engine}: no {}", places.join(" or ")));
            }
        }
    }
    missing
}

/// Returns for each role the places at which its file may be.
fn roles() -> Vec<Vec<String>> {
    let file_or_folder = |path: String| [format!("{path}.rs"), format!("{path}/mod.rs")];
    let mut roles: Vec<Vec<String>> = Vec::new();
    for role in IN_ROOT_OR_ALGORITHM {
        let places = ["src", "src/algorithm"].map(|folder| file_or_folder(format!("{folder}/{role}")));
        roles.push(places.into_iter().flatten().collect());
    }
    roles.push(file_or_folder("src/options".to_owned()).into());
    roles.push(vec!["src/driver/mod.rs".to_owned()]);
    roles.push(vec!["guarantees.md".to_owned()]);
    roles
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: [&str; 8] = [
        "engine-etcd/Cargo.toml",
        "engine-etcd/guarantees.md",
        "engine-etcd/src/algorithm/acquire/mod.rs",
        "engine-etcd/src/algorithm/renew.rs",
        "engine-etcd/src/release.rs",
        "engine-etcd/src/inspect/mod.rs",
        "engine-etcd/src/options.rs",
        "engine-etcd/src/driver/mod.rs",
    ];

    fn without(left_out: &str) -> Vec<String> {
        let left: Vec<&str> = WHOLE.into_iter().filter(|path| !path.ends_with(left_out)).collect();
        assert_eq!(left.len() + 1, WHOLE.len(), "{left_out}");
        missing(&left)
    }

    #[test]
    fn a_file_or_a_folder_will_do_in_the_root_or_in_the_algorithm() {
        assert!(missing(&WHOLE).is_empty());
    }

    #[test]
    fn each_file_that_is_missing_is_named() {
        for (left_out, told) in [
            (
                "acquire/mod.rs",
                "src/acquire.rs or src/acquire/mod.rs or src/algorithm/acquire.rs or src/algorithm/acquire/mod.rs",
            ),
            (
                "renew.rs",
                "src/renew.rs or src/renew/mod.rs or src/algorithm/renew.rs or src/algorithm/renew/mod.rs",
            ),
            (
                "release.rs",
                "src/release.rs or src/release/mod.rs or src/algorithm/release.rs or src/algorithm/release/mod.rs",
            ),
            (
                "inspect/mod.rs",
                "src/inspect.rs or src/inspect/mod.rs or src/algorithm/inspect.rs or src/algorithm/inspect/mod.rs",
            ),
            ("options.rs", "src/options.rs or src/options/mod.rs"),
            ("driver/mod.rs", "src/driver/mod.rs"),
            ("guarantees.md", "guarantees.md"),
        ] {
            assert_eq!(without(left_out), [format!("  engine-etcd: no {told}")]);
        }
    }

    #[test]
    fn a_file_of_another_name_a_file_in_another_place_and_another_engine_do_not_count() {
        let mut paths: Vec<&str> = WHOLE.into_iter().filter(|path| !path.ends_with("release.rs")).collect();
        paths.extend([
            "engine-etcd/src/release_all.rs",
            "engine-etcd/src/driver/release.rs",
            "engine-etcd/src/algorithm/seat/release.rs",
        ]);
        paths.extend(["engine-nats/Cargo.toml", "engine-nats/src/release.rs"]);
        let missing = missing(&paths);
        assert_eq!(missing.iter().filter(|told| told.contains("engine-etcd")).count(), 1, "{missing:?}");
        assert_eq!(missing.iter().filter(|told| told.contains("engine-nats")).count(), 6, "{missing:?}");
    }

    /// The engines as they are. Fails before `cargo xtask check` does.
    #[test]
    fn no_engine_lacks_a_file() {
        check().unwrap();
    }
}
