//! The commands, one file each.

mod client;
mod doctor;
mod inspect;
mod list;
mod pages;
mod revoke;
mod run;
mod signals;
mod top;
mod watch;

use crate::arguments::{Arguments, Command};
use crate::exit::Result;
use crate::store::Store;

/// Does what the arguments say. Returns the exit code.
pub(crate) async fn run(arguments: Arguments) -> Result<u8> {
    let store = || Store::find(&arguments.store);
    match arguments.command {
        Command::Run(run) => run::run(&store()?, run).await,
        Command::Inspect(inspect) => inspect::inspect(&store()?, inspect).await,
        Command::List(list) => list::list(&store()?, list).await,
        Command::Top(top) => top::top(store()?, top).await,
        Command::Watch(watch) => watch::watch(store()?, watch).await,
        Command::Revoke(revoke) => revoke::revoke(&store()?, revoke).await,
        Command::Doctor(doctor) => doctor::doctor(&store()?, doctor).await,
        Command::Completions { shell } => pages::completions(shell),
        Command::Man => pages::man(),
    }
}
