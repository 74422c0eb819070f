//! Builds `tools/peers`, a crate that is not of the workspace: SQLite, which it compiles, takes longer than all the rest.

use anyhow::Result;

use crate::{cargo, child, store::Variable};

/// The variable in which the benchmark finds the program.
const VARIABLE: &str = "YLOCK_BENCH_PEERS";
const MANIFEST: &str = "tools/peers/Cargo.toml";
const TARGET: &str = "target/peers";

/// Returns the variable that names the program; nothing if it does not compile, such as where there is no C compiler.
pub(super) fn build() -> Result<Option<Variable>> {
    let mut command = cargo::cargo();
    command.args(["build", "--release", "--locked", "--manifest-path", MANIFEST, "--target-dir", TARGET]);
    if !child::run(&mut command, None)?.success() {
        eprintln!("the peers of the file engine do not compile here: the benchmark runs without them");
        return Ok(None);
    }
    let program = cargo::workspace().join(TARGET).join("release/ylock-peers");
    Ok(Some((VARIABLE, program.display().to_string())))
}
