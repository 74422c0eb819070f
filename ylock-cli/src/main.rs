//! The command `ylock`: runs commands under locks, and shows who holds them.
#![allow(
    clippy::disallowed_methods,
    reason = "a program tells the time, waits and spawns like any other: the library below it has a seam for that"
)]

mod arguments;
mod commands;
mod default_folder;
mod exit;
mod name;
mod output;
mod store;

use std::process::ExitCode;

use arguments::Arguments;
use clap::Parser;
use exit::Failed;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Of help and version, too. What is said goes to where it belongs; that the reader is gone changes nothing.
            let _ = error.print();
            return if error.use_stderr() { exit::USAGE.into() } else { ExitCode::SUCCESS };
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let done = match runtime {
        Ok(runtime) => {
            let done = runtime.block_on(commands::run(arguments));
            // What still runs is of no use to a process that ends.
            runtime.shutdown_background();
            done
        }
        Err(error) => Err(Failed::new(exit::UNAVAILABLE, format!("no runtime can be started: {error}"))),
    };
    match done {
        Ok(code) => code.into(),
        Err(failed) => {
            if !failed.message.is_empty() {
                output::say(&failed.message);
            }
            failed.code.into()
        }
    }
}
