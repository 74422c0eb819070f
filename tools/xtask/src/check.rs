//! Checks everything that is wanted of a change, apart from tests: `cargo xtask check`. All checks run, so that one look
//! shows all that is to be done.

use std::{
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::{
    ENGINES,
    cargo::{self, Package},
    child, interrupt, oldest, roles, rooms, tracked, words,
};

pub(crate) fn check() -> Result<ExitCode> {
    let packages = cargo::packages()?;
    let facade =
        packages.iter().find(|package| package.name == "ylock").context("there is no crate `ylock`")?;
    let (mut failed, mut skipped, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for mut command in commands(&packages, facade)? {
        let (shown, began) = (cargo::shown(&command), Instant::now());
        eprintln!("\n{shown}");
        if !child::run(&mut command, None)?.success() {
            failed.push(format!("`{shown}` failed"));
        }
        times.push((shown, began.elapsed()));
    }
    let began = Instant::now();
    let results = [
        oldest::check(&facade.rust_version, &UNPUBLISHED).map(|left_out| skipped.extend(left_out)),
        no_driver_by_default(),
        words::check(),
        rooms::check(),
        roles::check(),
    ];
    times.push(("the oldest Rust, drivers, words, rooms, files of engines".to_owned(), began.elapsed()));
    for error in results.into_iter().filter_map(Result::err) {
        interrupt::check()?;
        failed.push(format!("{error:#}"));
    }
    print_times(&times);
    Ok(report(&failed, &skipped))
}

fn print_times(times: &[(String, Duration)]) {
    eprintln!("\n{:>7}", "seconds");
    for (shown, time) in times {
        eprintln!("{:>7.1}  {shown}", time.as_secs_f32());
    }
    let all: Duration = times.iter().map(|(_, time)| *time).sum();
    eprintln!("{:>7.1}  in all", all.as_secs_f32());
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

fn commands(packages: &[Package], facade: &Package) -> Result<Vec<Command>> {
    let mut commands = vec![
        cargo(&["fmt", "--all", "--check"]),
        // Not of the workspace.
        cargo(&["fmt", "--check", "--manifest-path", "tools/peers/Cargo.toml"]),
        clippy(&["--all-targets", "--workspace", "--all-features"]),
        without_features(packages),
    ];
    let tests = tracked::files(&["tests/*.rs"])?;
    commands.extend(facade.features.iter().map(|feature| with_one_feature(feature, facade, &tests)));
    // With all features on, no engine is left to name its feature: the test of that must run without any.
    let mut alone = cargo(&["test", "--quiet", "--package", "ylock", "--lib", "--no-default-features"]);
    // It takes no time, and compiling for speed does.
    alone.args(["--config", "profile.dev.package.ylock-core.opt-level=0"]);
    commands.extend([alone, doc(), package()]);
    Ok(commands)
}

fn clippy(selection: &[&str]) -> Command {
    let mut command = cargo(&["clippy"]);
    command.args(selection).args(["--", "-D", "warnings"]);
    command
}

/// Returns the command that checks all crates without features, but for those that have none: with all features on, they were just the same.
fn without_features(packages: &[Package]) -> Command {
    let mut selection = vec!["--all-targets", "--workspace", "--no-default-features"];
    let the_same = packages.iter().filter(|package| package.features.is_empty());
    selection.extend(the_same.flat_map(|package| ["--exclude", &package.name]));
    clippy(&selection)
}

/// Returns the command that checks the facade with this feature alone, and with it the crates that it reaches: beside any other crate of the workspace the facade
/// would have the features that the tests of that one ask for. Features only add: so what does not name the feature is not checked again.
fn with_one_feature(feature: &str, facade: &Package, tests: &[tracked::File]) -> Command {
    let named = format!("feature = \"{feature}\"");
    let names_it = |test: &&str| {
        let (file, folder) = (format!("tests/{test}.rs"), format!("tests/{test}/"));
        let is_of = |path: &str| path == file || path.starts_with(&folder);
        tests.iter().any(|file| is_of(&file.path) && file.text.contains(&named))
    };
    let feature = format!("--features={feature}");
    // The profile makes `--lib` mean the unit tests, too.
    let mut selection = vec!["--package=ylock", "--no-default-features", &feature, "--profile=test", "--lib"];
    // One test at least: with it the dependencies have the features that most of these commands give them, and are checked once.
    let tests = facade.tests.iter().map(String::as_str).filter(|test| *test == "connect" || names_it(test));
    selection.extend(tests.flat_map(|test| ["--test", test]));
    clippy(&selection)
}

/// Returns the command that builds the documentation. The example is asked for because the dependencies then have the features that the first check
/// gave them, and are not checked again.
fn doc() -> Command {
    let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--all-features"]);
    // The programs are those that have no library.
    doc.args(["--lib", "--bin=xtask", "--bin=ylock-benchmark", "--example=quickstart"])
        .env("RUSTDOCFLAGS", "-D warnings");
    doc
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
