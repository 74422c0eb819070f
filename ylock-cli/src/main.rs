//! The command `ylock`: runs commands under locks, and shows who holds them.
#![allow(
    clippy::disallowed_methods,
    reason = "a program tells the time, waits and spawns like any other: the library below it has a seam for that"
)]

mod arguments;
mod commands;
mod default_folder;
#[cfg(test)]
mod documented;
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
        Err(error) => return not_understood(&error),
    };
    if arguments.command.is_json() {
        output::say_json();
    }
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
                output::say_end(&failed.message, failed.code);
            }
            failed.code.into()
        }
    }
}

/// Says what is wrong with the arguments; or prints help or version, which clap hands on in the same way.
fn not_understood(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // That the reader is gone changes nothing.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    // What could not be understood may have said that it wants JSON; not what belongs to a command that was to be run.
    let before = |argument: &std::ffi::OsString| argument != "--";
    if std::env::args_os().take_while(before).any(|argument| argument == "--json") {
        output::say_json();
        output::say_end(error.to_string().trim_end(), exit::USAGE);
    } else {
        let _ = error.print();
    }
    exit::USAGE.into()
}
