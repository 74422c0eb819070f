//! Finds the tests that a user means by an engine, a crate or a file.

use anyhow::{Context, Result, bail};

use super::{
    needs,
    output::Target,
    parts::{self, Part},
};
use crate::{
    ENGINES,
    cargo::Package,
    engine::{self, Engine},
};

/// The tests that are run.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// By crates, and of each its unit tests, then its files in the order of their names.
    pub(crate) targets: Vec<Target>,
    /// The names of the crates whose examples in the documentation are run.
    pub(crate) documented: Vec<String>,
    /// The engines whose servers the tests use, those without servers among them.
    pub(crate) engines: Vec<&'static Engine>,
    /// True if nothing is left out.
    pub(crate) is_whole: bool,
}

impl Chosen {
    /// Finds what these words mean; everything if there are none.
    pub(crate) fn find(words: &[String], packages: &[Package]) -> Result<Self> {
        let engine = |word: &String| ENGINES.iter().copied().find(|engine| engine.name == word);
        let named: Vec<_> = words.iter().filter_map(engine).collect();
        let others = words.iter().filter(|word| engine(word).is_none());
        let places: Vec<_> = others.map(|word| Place::find(word, packages)).collect::<Result<_>>()?;
        let engines = if places.is_empty() || !named.is_empty() { engine::chosen(&named) } else { vec![] };
        // Only the whole has the crates that are of no engine.
        let is_whole = engines.len() == ENGINES.len();
        let mut chosen = Self { targets: vec![], documented: vec![], engines, is_whole };
        for package in packages {
            chosen.add(package, &places);
        }
        if chosen.targets.is_empty() {
            bail!("{} has no tests", words.join(" "));
        }
        let is_by_place = |target: &&Target| places.iter().any(|place| place.has(target));
        let mut needed = needs::of(chosen.targets.iter().filter(is_by_place), packages);
        needed.retain(|engine| !chosen.engines.iter().any(|one| one.name == engine.name));
        chosen.engines.extend(needed);
        Ok(chosen)
    }

    fn add(&mut self, package: &Package, places: &[Place<'_>]) {
        let is_of = |engine: &&Engine| package.is_of(engine);
        let is_own = self.is_whole || self.engines.iter().any(is_of);
        let is_there = |name: &str| self.engines.iter().any(|engine| is_beside(name, engine.name));
        let is_absent =
            |name: &str| !is_there(name) && ENGINES.iter().any(|engine| is_beside(name, engine.name));
        let is_meant = |target: &Target| {
            (is_own && !is_absent(&target.name))
                || is_there(&target.name)
                || places.iter().any(|place| place.has(target))
        };
        let targets: Vec<_> = targets(package).filter(is_meant).collect();
        if is_own || places.iter().any(|place| place.is_all_of(package)) {
            self.documented.push(package.name.clone());
        }
        self.targets.extend(targets);
    }

    /// Leaves out what is of other parts, and the servers that this one does not need.
    pub(crate) fn only(mut self, part: Part, packages: &[Package], is_long: bool) -> Self {
        self.targets = parts::targets_of(part, &self.targets, is_long);
        if !part.is_first() {
            self.documented.clear();
        }
        let needed = needs::of(&self.targets, packages);
        self.engines.retain(|one| needed.iter().any(|engine| engine.name == one.name));
        self.is_whole = false;
        self
    }
}

/// Returns the targets of a crate: its unit tests, and its files in the order of their names.
fn targets(package: &Package) -> impl Iterator<Item = Target> {
    let mut names: Vec<_> = package.tests.iter().map(String::as_str).collect();
    names.sort_unstable();
    let units = package.has_unit_tests.then_some(Target::UNIT_TESTS);
    units.into_iter().chain(names).map(|name| Target::of(&package.name, name))
}

/// Returns whether tests of this file hold something to the servers of this engine.
fn is_beside(name: &str, engine: &str) -> bool {
    name.strip_prefix("real_").is_some_and(|beside| beside == engine)
}

/// A crate, or one of its targets.
#[derive(Debug)]
struct Place<'a> {
    package: &'a Package,
    name: Option<&'a str>,
}

impl<'a> Place<'a> {
    /// Finds what is meant by the name of a crate, or by the path of a folder or a file.
    fn find(word: &'a str, packages: &'a [Package]) -> Result<Self> {
        if let Some(package) = packages.iter().find(|package| package.name == word) {
            return Ok(Self { package, name: None });
        }
        let path = word.trim_start_matches("./").trim_end_matches(['/', '.']);
        let inside = |package: &'a Package| Some((package, inside(path, &package.folder)?));
        let (package, rest) = packages
            .iter()
            .filter_map(inside)
            .max_by_key(|(package, _)| package.folder.len())
            .with_context(|| unknown(word))?;
        let mut steps = rest.split('/');
        let name = match (steps.next(), steps.next()) {
            (Some(""), None) => None,
            (Some("src"), _) => Some(Target::UNIT_TESTS),
            (Some("tests"), Some(file)) => {
                let name = file.trim_end_matches(".rs");
                let is_there = package.tests.iter().any(|test| test == name);
                Some(is_there.then_some(name).with_context(|| unknown(word))?)
            }
            _ => bail!(unknown(word)),
        };
        Ok(Self { package, name })
    }

    fn has(&self, target: &Target) -> bool {
        target.package == self.package.name && self.name.is_none_or(|name| target.name == name)
    }

    fn is_all_of(&self, package: &Package) -> bool {
        self.package.name == package.name && self.name.is_none()
    }
}

/// Returns what is left of a path in this folder.
fn inside<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(folder)?;
    if folder.is_empty() || rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

fn unknown(word: &str) -> String {
    let engines: Vec<_> = ENGINES.iter().map(|engine| engine.name).collect();
    format!(
        "`{word}` is no engine ({}), no crate (`ylock-core`, `engine-redis`) and no file of tests \
         (`engine-redis/tests/own_servers`)",
        engines.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo;

    fn chosen(words: &[&str]) -> Result<Chosen> {
        let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
        Chosen::find(&words, &cargo::packages().unwrap())
    }

    /// Returns the targets, the crates with documentation, and the engines that these words choose.
    fn shown(words: &[&str]) -> [String; 3] {
        let Chosen { targets, documented, engines, .. } = chosen(words).unwrap();
        let targets = targets.iter().map(|target| format!("{} {}", target.package, target.name));
        let engines: Vec<_> = engines.iter().map(|engine| engine.name).collect();
        [targets.collect::<Vec<_>>().join(", "), documented.join(", "), engines.join(", ")]
    }

    #[test]
    fn a_file_is_one_target_and_brings_its_servers_alone() {
        for word in ["engine-redis/tests/own_servers", "./engine-redis/tests/own_servers/main.rs"] {
            assert_eq!(shown(&[word]), ["ylock-engine-redis own_servers", "", "redis"]);
        }
        assert_eq!(shown(&["tests/owner.rs"]), ["ylock owner", "", ""]);
        assert_eq!(shown(&["ylock-core/src/lib.rs"]), ["ylock-core unit tests", "", ""]);
    }

    #[test]
    fn a_crate_is_known_by_its_name_and_by_its_folder() {
        let [targets, documented, engines] = shown(&["engine-etcd"]);
        assert!(
            targets.starts_with("ylock-engine-etcd unit tests, ylock-engine-etcd algorithm"),
            "{targets}"
        );
        assert_eq!([&*documented, &engines], ["ylock-engine-etcd", "etcd"]);
        assert_eq!(shown(&["ylock-engine-etcd"]), shown(&["engine-etcd/"]));
        assert_eq!(shown(&["ylock-core"])[1..], ["ylock-core", ""]);
        assert_eq!(shown(&["."]), shown(&["ylock"]));
    }

    #[test]
    fn an_engine_brings_what_is_held_to_its_servers_and_nothing_else_of_that_crate() {
        let [targets, documented, engines] = shown(&["zookeeper"]);
        assert!(targets.contains("ylock-simulation real_zookeeper"), "{targets}");
        assert!(!targets.contains("ylock-simulation seeds"), "{targets}");
        assert!(!targets.contains("real_redis"), "{targets}");
        assert_eq!([&*documented, &engines], ["ylock-cli, ylock-engine-zookeeper", "zookeeper"]);
    }

    #[test]
    fn a_crate_of_examples_has_no_unit_tests() {
        let [targets, ..] = shown(&[]);
        assert!(!targets.contains("ylock-ledger"), "{targets}");
        let error = chosen(&["examples/ledger"]).unwrap_err().to_string();
        assert!(error.contains("examples/ledger has no tests"), "{error}");
    }

    #[test]
    fn no_word_is_everything_and_an_unknown_one_nothing() {
        assert!(chosen(&[]).unwrap().is_whole);
        assert!(!chosen(&["memory"]).unwrap().is_whole);
        for word in ["engine-oracle", "engine-redis/tests/none", "engine-redis/benches", "docs"] {
            assert!(chosen(&[word]).unwrap_err().to_string().contains(word));
        }
    }
}
