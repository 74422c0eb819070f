//! What xtask knows of an engine. All commands follow from it; `ENGINES` in `main.rs` lists the engines.

use anyhow::Result;

use crate::{
    ENGINES,
    places::Places,
    rooms::Plan,
    store::{Prepare, Store, Stores, Variable},
};

type MakeStores = fn(&Places) -> Vec<Box<dyn Store>>;

#[derive(Debug)]
pub(crate) struct Engine {
    /// The name in commands, that of its URL scheme and of its Cargo feature.
    pub(crate) name: &'static str,
    /// The crates whose tests are this engine's. A crate may be one of several engines.
    pub(crate) packages: &'static [&'static str],
    /// Its kinds of servers, if it has servers. The first one is that of its URL.
    pub(crate) stores: Option<MakeStores>,
    pub(crate) prepare: Prepare,
    /// Returns what tests need to start servers of their own, which they break.
    pub(crate) own_servers: fn(&Places) -> Result<Vec<Variable>>,
    /// The end of a URL for programs that try the engine out, after the address of its first store.
    pub(crate) url_end: &'static str,
    /// Returns the end of a URL for a place of this name in its first store, in which clients see nothing of what is elsewhere. Nothing if other
    /// processes see nothing of it.
    pub(crate) own_place: Option<fn(&str) -> String>,
    pub(crate) benches: &'static [Bench],
    /// The crates of the store's driver: only the engine's `driver` may name them, and no default feature may bring them.
    pub(crate) drivers: &'static [&'static str],
    pub(crate) rooms: &'static [Plan],
    /// True if nothing runs beside its conformance suite, because the servers keep all cores busy: other servers did not answer for a lease.
    pub(crate) suite_runs_alone: bool,
}

impl Engine {
    /// What an engine says nothing about.
    pub(crate) const BASE: Self = Self {
        name: "",
        packages: &[],
        stores: None,
        prepare: |_| Ok(()),
        own_servers: |_| Ok(vec![]),
        url_end: "",
        own_place: None,
        benches: &[],
        drivers: &[],
        rooms: &[],
        suite_runs_alone: false,
    };

    pub(crate) fn has_servers(&self) -> bool {
        self.stores.is_some()
    }

    pub(crate) fn stores(&self, places: &Places) -> Stores {
        Stores::new(places, self.stores.map_or_else(Vec::new, |stores| stores(places)), self.prepare)
    }

    /// Returns the URL of its first store, which runs.
    pub(crate) fn url(&self, places: &Places) -> Result<String> {
        Ok(format!("{}://{}{}", self.name, self.stores(places).address()?, self.url_end))
    }
}

impl Engine {
    /// Returns the URL of a place of this name in its first store, which runs; see [`own_place`](Self::own_place).
    pub(crate) fn url_of_place(&self, places: &Places, place: &str) -> Result<Option<String>> {
        let Some(end) = self.own_place else { return Ok(None) };
        Ok(Some(format!("{}://{}{}", self.name, self.stores(places).address()?, end(place))))
    }
}

/// A benchmark of `cargo xtask bench`.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) name: &'static str,
    /// What the name does not say.
    pub(crate) help: Option<&'static str>,
    /// The words after `cargo`.
    pub(crate) command: &'static str,
    /// Returns whether it needs the servers of an engine, if it is given these arguments.
    pub(crate) wants_servers: fn(&[String]) -> bool,
    /// True if it measures every engine, or those that its arguments name.
    pub(crate) of_all: bool,
    /// Returns whether it runs `tools/peers`, if it is given these arguments.
    pub(crate) wants_peers: fn(&[String]) -> bool,
}

impl Bench {
    pub(crate) const fn new(name: &'static str, command: &'static str) -> Self {
        Self { name, help: None, command, wants_servers: |_| true, of_all: false, wants_peers: |_| false }
    }
}

impl Bench {
    /// Returns the engines whose servers it needs.
    pub(crate) fn engines(&self, own: &'static Engine, arguments: &[String]) -> Vec<&'static Engine> {
        let named = |engine: &Engine| arguments.iter().any(|one| one == engine.name);
        // An argument may name something else that is measured.
        let names_none = !ENGINES.iter().any(|engine| named(engine));
        let is_named = |engine: &Engine| names_none || named(engine);
        let meant: Vec<_> = if self.of_all {
            ENGINES.iter().copied().filter(|engine| is_named(engine)).collect()
        } else {
            vec![own]
        };
        meant.into_iter().filter(|engine| engine.has_servers() && (self.wants_servers)(arguments)).collect()
    }
}

/// Returns the engines that the user has named, each once; all if none is named.
pub(crate) fn chosen(named: &[&'static Engine]) -> Vec<&'static Engine> {
    let is_chosen = |engine: &&Engine| named.is_empty() || named.iter().any(|one| one.name == engine.name);
    ENGINES.iter().copied().filter(is_chosen).collect()
}

#[cfg(test)]
mod tests;
