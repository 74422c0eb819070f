//! Starts real servers without containers and runs every check of ylock: `cargo xtask`.
//!
//! This crate depends on none of the library's crates: it must start while they do not compile, and in seconds.

#![allow(
    clippy::disallowed_methods,
    reason = "the library's clock is for the library; here time is just time"
)]

mod bench;
mod cargo;
mod cassandra;
mod check;
mod child;
mod cli;
mod daemon;
mod file_lock;
mod interrupt;
mod jars;
mod observe;
mod places;
mod progress;
mod prometheus;
mod redis;
mod rooms;
mod servers;
mod simulate;
mod store;
mod tail;
mod test;
mod tools;
mod tracked;
mod words;
mod zookeeper;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::{
    cassandra::Cassandra,
    cli::{Cli, Command, Server},
    places::Places,
};

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
    let (cassandra, redis) = (Cassandra::new(&places), redis::stores(&places));
    let zookeeper = zookeeper::stores(&places);
    match command {
        Command::Up { servers, with_login } => {
            for server in servers {
                match server {
                    Server::Cassandra => {
                        cassandra.up(with_login, true)?;
                        export(cassandra.environment(with_login));
                    }
                    Server::Redis => {
                        redis.up(true)?;
                        export(redis.environment()?);
                    }
                    Server::Zookeeper => {
                        zookeeper.up(true)?;
                        export(zookeeper.environment()?);
                        export(zookeeper::own_servers(&places)?);
                    }
                }
            }
        }
        Command::Down => {
            // All are stopped, even if one fails to stop.
            [cassandra.down(), redis.down(), zookeeper.down()].into_iter().collect::<Result<()>>()?;
        }
        Command::Node { number, action } => cassandra.change_node(number, action)?,
        Command::Test(options) => return test::test(&places, &options),
        Command::Bench { of, arguments } => return bench::bench(&places, of, &arguments),
        Command::Simulate { arguments } => return simulate::simulate(&arguments),
        Command::Observe(options) => return observe::observe(&places, &options),
        Command::Check => return check::check(),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints variables for a shell to `eval`. All other output goes to stderr.
fn export(variables: impl IntoIterator<Item = (&'static str, String)>) {
    for (name, value) in variables {
        println!("export {name}='{value}'");
    }
}
