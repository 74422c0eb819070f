//! Rooms that use a room beside or above them: `cargo xtask check` finds what the drawing in ARCHITECTURE.md forbids.
//!
//! Paths count that begin with `crate::`, as those to other rooms do. Tests are left out: a test may look at its room from above.

mod plans;
mod uses;

use std::collections::HashMap;

use anyhow::{Result, bail};

use crate::{
    ENGINES,
    tracked::{self, File},
};
use plans::CORE;
pub(crate) use plans::{HANDED_OVER, Plan};

/// The sources that no driver may be named in, apart from the places that [`is_of_driver`] knows.
const WITHOUT_DRIVERS: [&str; 6] = [
    "src/*.rs",
    "ylock-core/src/*.rs",
    "ylock-cli/src/*.rs",
    "ylock-metrics/src/*.rs",
    "engine-*/src/*.rs",
    "tools/testkit/src/*.rs",
];

/// Fails, with every place, if a room uses what it must not use.
pub(crate) fn check() -> Result<()> {
    let mut found = Vec::new();
    for plan in [&CORE].into_iter().chain(ENGINES.iter().flat_map(|engine| engine.rooms)) {
        let files = tracked::files(&[&format!("{}/*.rs", plan.sources)])?;
        found.extend(rooms_that_are_not_there(plan, &files));
        found.extend(forbidden_uses(plan, &files));
    }
    found.extend(drivers_outside(&tracked::files(&WITHOUT_DRIVERS)?));
    if found.is_empty() { Ok(()) } else { bail!("rooms use what they must not use:\n{}", found.join("\n")) }
}

/// Returns the rooms of a plan that have no file: after a move the plan would forbid nothing.
fn rooms_that_are_not_there(plan: &Plan, files: &[File]) -> Vec<String> {
    let rooms: Vec<&str> = files.iter().filter_map(|file| room_of(plan, &file.path)).collect();
    let missing = plan.floors.iter().copied().flatten().filter(|room| !rooms.contains(room));
    missing.map(|room| format!("  {}: the room `{room}` of the plan is not there", plan.sources)).collect()
}

fn forbidden_uses(plan: &Plan, files: &[File]) -> Vec<String> {
    let root = format!("{}/lib.rs", plan.sources);
    let root = files.iter().find(|file| file.path == root).map_or("", |file| &file.text);
    let root = uses::without_comments(root);
    let reexported = uses::reexported(&root);
    files.iter().flat_map(|file| forbidden_uses_in(plan, file, &reexported)).collect()
}

fn forbidden_uses_in(plan: &Plan, file: &File, reexported: &HashMap<&str, &str>) -> Vec<String> {
    let Some(user) = room_of(plan, &file.path) else { return Vec::new() };
    let code = uses::without_comments(uses::without_unit_tests(&file.text));
    let rooms = uses::first_names(&code)
        .into_iter()
        .map(|(line, name)| (line, reexported.get(name).copied().unwrap_or(name)));
    rooms
        .filter(|(_, used)| !plan.allows(user, used))
        .map(|(line, used)| format!("  {}:{line}: `{user}` must not use `{used}`", file.path))
        .collect()
}

/// Returns the room that a file belongs to; `None` for the root of the crate and for tests.
fn room_of<'a>(plan: &Plan, path: &'a str) -> Option<&'a str> {
    let inside = path.strip_prefix(plan.sources)?.strip_prefix('/')?;
    let mut parts = inside.split('/').map(|part| part.strip_suffix(".rs").unwrap_or(part));
    if parts.clone().any(|part| part == "tests") {
        return None;
    }
    parts.next().filter(|room| !["lib", "main"].contains(room))
}

/// Returns the places at which a driver of a store is named, apart from the driver of an engine. There are no exceptions.
fn drivers_outside(files: &[File]) -> Vec<String> {
    let drivers = ENGINES.iter().flat_map(|engine| engine.drivers);
    // As code names them.
    let drivers: Vec<_> = drivers.map(|driver| driver.replace('-', "_")).collect();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| !is_of_driver(&file.path)) {
        let code = uses::without_comments(&file.text);
        for driver in &drivers {
            let lines = uses::lines_that_name(driver, &code);
            let told =
                |line| format!("  {}:{line}: only `driver/` and `driver_api` may name `{driver}`", file.path);
            found.extend(lines.into_iter().map(told));
        }
    }
    found
}

/// Returns whether a file may name the crate of an engine's driver: it is of the driver, or it takes over what the program has of it.
fn is_of_driver(path: &str) -> bool {
    let Some((krate, inside)) = path.split_once("/src/") else { return false };
    krate.starts_with("engine-") && (inside.starts_with("driver/") || inside == "driver_api.rs")
}

#[cfg(test)]
mod tests;
