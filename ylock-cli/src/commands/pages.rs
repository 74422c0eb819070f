//! What packages of the command contain beside it: completions and the manual pages.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::exit::Result;

/// Writes the completion of a shell.
pub(crate) fn completions(shell: Shell) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "ylock", &mut script);
    io::stdout().write_all(&script)?;
    Ok(0)
}

/// Writes the manual page, and after it that of each command.
pub(crate) fn man() -> Result<u8> {
    let mut command = Arguments::command();
    command.build();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        clap_mangen::Man::new(inner.clone()).render(&mut page)?;
    }
    io::stdout().write_all(&page)?;
    Ok(0)
}
