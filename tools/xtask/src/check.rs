//! Checks everything that is wanted of a change, apart from tests: `cargo xtask check`. All checks run, so that one look
//! shows all that is to be done.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::{
    ENGINES,
    cargo::{self, Package},
    child, interrupt, oldest, roles, rooms, words,
};

pub(crate) fn check() -> Result<ExitCode> {
    let packages = cargo::packages()?;
    let facade =
        packages.iter().find(|package| package.name == "ylock").context("there is no crate `ylock`")?;
    let (mut failed, mut skipped) = (Vec::new(), Vec::new());
    for mut command in commands(facade) {
        let shown = cargo::shown(&command);
        eprintln!("\n{shown}");
        if !child::run(&mut command, None)?.success() {
            failed.push(format!("`{shown}` failed"));
        }
    }
    let results = [
        oldest::check(&facade.rust_version, &UNPUBLISHED).map(|left_out| skipped.extend(left_out)),
        no_driver_by_default(),
        words::check(),
        rooms::check(),
        roles::check(),
    ];
    for error in results.into_iter().filter_map(Result::err) {
        interrupt::check()?;
        failed.push(format!("{error:#}"));
    }
    Ok(report(&failed, &skipped))
}

fn report(failed: &[String], skipped: &[String]) -> ExitCode {
    eprintln!();
    skipped.iter().for_each(|skip| eprintln!("SKIPPED  {skip}"));
    failed.iter().for_each(|failure| eprintln!("FAILED  {failure}"));
    match (failed.len(), skipped.len()) {
        (0, 0) => eprintln!("all checks passed"),
        (failures, skips) => eprintln!("{failures} checks failed, {skips} skipped"),
    }
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn commands(facade: &Package) -> Vec<Command> {
    let mut commands = vec![
        cargo(&["fmt", "--all", "--check"]),
        // Not of the workspace.
        cargo(&["fmt", "--check", "--manifest-path", "tools/peers/Cargo.toml"]),
    ];
    commands.push(clippy(&["--workspace", "--all-features"]));
    commands.push(clippy(&["--workspace", "--no-default-features"]));
    for feature in &facade.features {
        let feature = format!("--features={feature}");
        // Only the facade, and with it the crates that this feature reaches: beside any other crate of the workspace the facade would have the features that
        // the tests of that one ask for.
        commands.push(clippy(&["--package=ylock", "--no-default-features", &feature]));
    }
    // With all features on, no engine is left to name its feature: the test of that must run without any.
    commands.push(cargo(&["test", "--quiet", "--package", "ylock", "--lib", "--no-default-features"]));
    let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--all-features"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    commands.push(doc);
    commands.push(package());
    commands
}

fn clippy(selection: &[&str]) -> Command {
    let mut command = cargo(&["clippy", "--all-targets"]);
    command.args(selection).args(["--", "-D", "warnings"]);
    command
}

/// Returns the command that packages the published crates.
fn package() -> Command {
    // Cargo packages crates that are not published, too, and fails where one needs another: the registry would not have it.
    let mut command = cargo(&["package", "--workspace", "--no-verify", "--allow-dirty", "--quiet"]);
    command.args(UNPUBLISHED.iter().flat_map(|package| ["--exclude", package]));
    command
}

/// Checks that the default features bring no driver: users that want only the in-memory engine shall not compile one.
fn no_driver_by_default() -> Result<()> {
    let mut command = cargo(&["tree", "-p", "ylock", "-e", "normal", "--prefix", "none"]);
    let shown = cargo::shown(&command);
    eprintln!("\n{shown}");
    let output = command.output()?;
    if !output.status.success() {
        bail!("`{shown}` failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let tree = String::from_utf8_lossy(&output.stdout);
    let is_driver = |name: &str| ENGINES.iter().any(|engine| engine.drivers.contains(&name));
    match tree.lines().find(|line| line.split(' ').next().is_some_and(is_driver)) {
        Some(driver) => bail!("the default features of `ylock` bring {driver}"),
        None => Ok(()),
    }
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = cargo::cargo();
    command.args(arguments);
    command
}

const UNPUBLISHED: [&str; 7] = [
    "xtask",
    "ylock-benchmark",
    "ylock-ledger",
    "ylock-observability",
    "ylock-simulation",
    "ylock-testkit",
    "ylock-transfer",
];
