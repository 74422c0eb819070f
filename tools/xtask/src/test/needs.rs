//! Reads in the files of tests which servers the tests need.

use std::{fs, path::Path};

use super::output::Target;
use crate::{
    ENGINES,
    cargo::{self, Package},
    engine::Engine,
};

/// Returns the engines whose servers these tests need.
pub(crate) fn of<'a>(
    targets: impl IntoIterator<Item = &'a Target>,
    packages: &[Package],
) -> Vec<&'static Engine> {
    let folder = |target: &Target| packages.iter().find(|package| package.name == target.package);
    let text = |target: &Target| Some(text(&cargo::workspace().join(&folder(target)?.folder), &target.name));
    let texts: Vec<_> = targets.into_iter().filter_map(text).collect();
    let needs = |engine: &&Engine| texts.iter().any(|text| needs(text, engine));
    ENGINES.iter().copied().filter(needs).collect()
}

/// Returns whether one of the tests in this text needs the servers. The tests of the dashboards watch a workload on all of them.
fn needs(text: &str, engine: &Engine) -> bool {
    let needs = |what: &str| text.contains(&format!("ignore = \"needs {what}"));
    engine.has_servers()
        && (needs(engine.name) || needs(&format!("a {}", engine.name)) || needs("Prometheus"))
}

/// Returns the text of all files of a target.
fn text(folder: &Path, name: &str) -> String {
    let mut text = String::new();
    if name == Target::UNIT_TESTS {
        read(&folder.join("src"), &mut text);
    } else {
        read(&folder.join("tests").join(name), &mut text);
        read(&folder.join("tests").join(name).with_extension("rs"), &mut text);
    }
    text
}

/// Adds the text of a file, or of all files in a folder; nothing if there is none.
fn read(path: &Path, text: &mut String) {
    if let Ok(entries) = fs::read_dir(path) {
        entries.flatten().for_each(|entry| read(&entry.path(), text));
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        text.push_str(&fs::read_to_string(path).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(package: &str, name: &str) -> Vec<&'static str> {
        let packages = cargo::packages().unwrap();
        of(&[Target::of(package, name)], &packages).iter().map(|engine| engine.name).collect()
    }

    #[test]
    fn files_say_which_servers_their_tests_need() {
        assert_eq!(names("ylock-engine-redis", "own_servers"), ["redis"]);
        assert_eq!(names("ylock-engine-redis", "requests"), [""; 0]);
        assert_eq!(names("ylock-engine-zookeeper", Target::UNIT_TESTS), ["zookeeper"]);
        assert_eq!(names("ylock-engine-cassandra", "trouble"), ["cassandra"]);
        assert_eq!(names("ylock", "ledger"), ["cassandra"]);
    }

    #[test]
    fn the_dashboards_need_all() {
        let all = ENGINES.iter().filter(|engine| engine.has_servers()).map(|engine| engine.name);
        assert_eq!(names("ylock-observability", "prometheus"), all.collect::<Vec<_>>());
    }
}
