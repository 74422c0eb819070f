//! Starts real servers without containers and runs every check of ylock: `cargo xtask`.
//!
//! This crate depends on none of the library's crates: it must start while they do not compile, and in seconds.

#![allow(
    clippy::disallowed_methods,
    reason = "the library's clock is for the library; here time is just time"
)]

mod bench;
mod both;
mod cargo;
mod cassandra;
mod check;
mod child;
mod cli;
mod daemon;
mod engine;
mod etcd;
mod file;
mod file_lock;
mod interrupt;
mod jars;
mod memory;
mod mutants;
mod observe;
mod oldest;
mod places;
mod postgres;
mod progress;
mod prometheus;
mod redis;
mod roles;
mod rooms;
mod servers;
mod simulate;
mod store;
mod tail;
mod test;
mod tools;
mod tracked;
mod tree;
mod upgrade;
mod words;
mod zookeeper;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::{
    cli::{Cli, Command},
    engine::Engine,
    places::Places,
    store::Variable,
};

/// All engines: a new one is a folder, its `mod` and its line here. No other place in this crate lists them.
static ENGINES: &[&Engine] = &[
    &cassandra::ENGINE,
    &etcd::ENGINE,
    &file::ENGINE,
    &memory::ENGINE,
    &postgres::ENGINE,
    &redis::ENGINE,
    &zookeeper::ENGINE,
];

fn main() -> ExitCode {
    match interrupt::install().and_then(|()| run(Cli::parse().command)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            if interrupt::happened() { ExitCode::from(interrupt::EXIT_CODE) } else { ExitCode::FAILURE }
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    let places = Places::find()?;
    match command {
        Command::Up { servers, with_login } => {
            servers.into_iter().try_for_each(|engine| up(&places, engine, with_login))?;
        }
        Command::Down => {
            // All are stopped, even if one fails to stop.
            let stopped: Vec<_> = ENGINES.iter().map(|engine| engine.stores(&places).down()).collect();
            stopped.into_iter().collect::<Result<()>>()?;
        }
        Command::Node { number, action } => cassandra::change_node(&places, number, action)?,
        Command::Clock { number, ahead } => cassandra::set_clock(&places, number, ahead)?,
        Command::Test(options) => return test::test(&places.for_tests(), &options),
        Command::Bench { of, against, arguments } => {
            return bench::bench(&places, of, against.as_deref(), &arguments);
        }
        Command::Simulate { arguments } => return simulate::simulate(&arguments),
        Command::Mutants { files, again } => return mutants::mutants(&files, again),
        Command::Upgrade { against, engines } => return upgrade::upgrade(&places, &against, &engines),
        Command::Observe(options) => return observe::observe(&places, &options),
        Command::Check => return check::check(),
    }
    Ok(ExitCode::SUCCESS)
}

fn up(places: &Places, engine: &Engine, with_login: bool) -> Result<()> {
    let all = engine.stores(places);
    let stores = if with_login { all } else { all.without_login() };
    stores.up(true)?;
    export(stores.environment()?);
    export((engine.own_servers)(places)?);
    Ok(())
}

/// Prints variables for a shell to `eval`. All other output goes to stderr.
fn export(variables: Vec<Variable>) {
    for (name, value) in variables {
        println!("export {name}='{value}'");
    }
}
