//! Looks whether clients of two versions work side by side: `cargo xtask upgrade`.
//!
//! The command `ylock` of an older commit and that of the work tree use the same locks on real servers, both ways round. Either they respect each other in
//! everything, or the one that comes second is refused by name, in everything too: nothing is let in beside what it cannot see.

mod holder;
mod pair;
mod program;

use std::process::{self, ExitCode};

use anyhow::Result;

use self::{
    pair::{Found, Pair},
    program::Program,
};
use crate::{
    engine::{self, Engine},
    places::Places,
    servers::Servers,
};

pub(crate) fn upgrade(places: &Places, against: &str, named: &[&'static Engine]) -> Result<ExitCode> {
    // Before the servers start, which would run beside the build.
    let [before, now] = Program::both(against)?;
    let meant: Vec<_> = engine::chosen(named).into_iter().filter(|one| one.own_place.is_some()).collect();
    let with_servers: Vec<_> = meant.iter().copied().filter(|engine| engine.has_servers()).collect();
    let _servers = Servers::start(places, &with_servers)?;
    let mut failed = 0;
    for engine in meant {
        for (first, second) in [(&before, &now), (&now, &before)] {
            // New each time, so that the first client decides what is stored.
            let place = format!("upgrade_{}_{}", first.name, process::id());
            let Some(store) = engine.url_of_place(places, &place)? else { continue };
            let said = match (Pair { store, first, second }).look() {
                Ok(Found::SideBySide) => "side by side".to_owned(),
                Ok(Found::Refused(why)) => format!("refused by name: {why}"),
                Err(error) => {
                    failed += 1;
                    format!("WRONG: {error:#}")
                }
            };
            println!("{:<10} {:<6} then {:<6} {said}", engine.name, first.name, second.name);
        }
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
