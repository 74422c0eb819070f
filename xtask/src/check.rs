//! Checks everything that is wanted of a change, apart from tests: `cargo xtask check`. All checks run, so that one look
//! shows all that is to be done.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::{cargo, child, interrupt, rooms, words};

pub(crate) fn check() -> Result<ExitCode> {
    let mut failed = Vec::new();
    for mut command in commands()? {
        let shown = cargo::shown(&command);
        eprintln!("\n{shown}");
        if !child::run(&mut command, None)?.success() {
            failed.push(format!("`{shown}` failed"));
        }
    }
    for check in [no_driver_by_default, words::check, rooms::check] {
        if let Err(error) = check() {
            interrupt::check()?;
            failed.push(format!("{error:#}"));
        }
    }
    if failed.is_empty() {
        eprintln!("\nall checks passed");
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!();
    failed.iter().for_each(|failure| eprintln!("FAILED  {failure}"));
    Ok(ExitCode::FAILURE)
}

fn commands() -> Result<Vec<Command>> {
    let packages = cargo::packages()?;
    let facade =
        packages.iter().find(|package| package.name == "ylock").context("there is no crate `ylock`")?;
    let one_by_one = facade.features.iter().map(|feature| vec![format!("--features=ylock/{feature}")]);
    let mut feature_sets = vec![vec![]];
    feature_sets.extend(one_by_one);
    feature_sets.iter_mut().for_each(|set| set.push("--no-default-features".to_owned()));
    feature_sets.push(vec!["--all-features".to_owned()]);

    let mut commands = vec![cargo(&["fmt", "--all", "--check"])];
    for set in feature_sets {
        let mut command = cargo(&["clippy", "--workspace", "--all-targets"]);
        command.args(set).args(["--", "-D", "warnings"]);
        commands.push(command);
    }
    let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--all-features"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    commands.push(doc);
    commands.push(package());
    Ok(commands)
}

/// Returns the command that packages the published crates.
fn package() -> Command {
    // Cargo packages crates that are not published, too, and fails where one needs another: the registry would not have it.
    let mut command = cargo(&["package", "--workspace", "--no-verify", "--allow-dirty", "--quiet"]);
    for unpublished in ["xtask", "ylock-benchmark", "ylock-ledger", "ylock-observability", "ylock-simulation"]
    {
        command.args(["--exclude", unpublished]);
    }
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
    match tree
        .lines()
        .find(|line| ["scylla ", "redis ", "zookeeper-client "].iter().any(|driver| line.starts_with(driver)))
    {
        Some(driver) => bail!("the default features of `ylock` bring {driver}"),
        None => Ok(()),
    }
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = cargo::cargo();
    command.args(arguments);
    command
}
