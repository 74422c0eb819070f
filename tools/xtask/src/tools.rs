//! Finds programs such as Java, or installs them where an installation is certainly welcome.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{child, progress::Step, tail};

#[derive(Clone, Debug)]
pub(crate) struct Java {
    pub(crate) program: PathBuf,
    pub(crate) version: u32,
}

pub(crate) fn java() -> Result<Java> {
    // A user without Java will need Maven too, and shall be told once.
    find_or_install(find_java, || vec![debian_java(), "maven"])
}

pub(crate) fn maven() -> Result<PathBuf> {
    find_or_install(find_maven, || vec!["maven"])
}

/// Finds or installs the server; `promtool` is in the same folder.
pub(crate) fn prometheus() -> Result<PathBuf> {
    if let Some(found) = find_prometheus() {
        return Ok(found);
    }
    let found = find_or_install(find_prometheus, || vec!["prometheus"])?;
    // The package also starts a service, which the user did not ask for. The command fails if no service runs.
    let _ = Command::new("invoke-rc.d").args(["prometheus", "stop"]).output();
    Ok(found)
}

/// Finds a program, or installs these packages of Debian and finds it then.
pub(crate) fn find_or_install<T>(
    find: impl Fn() -> Option<T>,
    packages: impl FnOnce() -> Vec<&'static str>,
) -> Result<T> {
    if let Some(found) = find() {
        return Ok(found);
    }
    let packages = packages();
    install(&packages)?;
    find().with_context(|| format!("{} was installed, but is not found", packages.join(" ")))
}

fn find_java() -> Option<Java> {
    let home = env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin/java"));
    let installed = fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let candidates = home.into_iter().chain([PathBuf::from("java")]);
    let candidates = candidates.chain(installed.map(|entry| entry.path().join("bin/java")));
    let found = candidates.filter_map(|program| Some(Java { version: java_version(&program)?, program }));
    // The version closest to the one that Cassandra is released for.
    found.filter(|java| SUPPORTED.contains(&java.version)).min_by_key(|java| java.version)
}

fn java_version(program: &Path) -> Option<u32> {
    let output = Command::new(program).arg("-version").output().ok()?;
    parse_java_version(&String::from_utf8_lossy(&output.stderr))
}

/// Returns the major version from `openjdk version "17.0.15" 2025-04-15`; old versions print `"1.8.0_302"`.
fn parse_java_version(text: &str) -> Option<u32> {
    let quoted = text.split('"').nth(1)?;
    quoted.split(['.', '-', '+']).next()?.parse().ok()
}

fn find_maven() -> Option<PathBuf> {
    let home = env::var_os("MAVEN_HOME").map(|home| Path::new(&home).join("bin/mvn"));
    let mut candidates = home.into_iter().chain([PathBuf::from("mvn")]);
    candidates
        .find(|program| Command::new(program).arg("-version").output().is_ok_and(|out| out.status.success()))
}

/// Returns the full path of `prometheus`, because tests look for `promtool` beside it.
fn find_prometheus() -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    let mut candidates = env::split_paths(&folders).map(|folder| folder.join("prometheus"));
    candidates.find(|program| program.is_file() && program.with_file_name("promtool").is_file())
}

/// Returns the name of a Java package that this Debian release has: newer releases no longer have Java 17.
fn debian_java() -> &'static str {
    let known = |package: &&str| {
        let shown = Command::new("apt-cache").args(["show", "--no-all-versions", package]).output();
        shown.is_ok_and(|output| output.status.success())
    };
    DEBIAN_JAVA.into_iter().find(known).unwrap_or(DEBIAN_JAVA[0])
}

fn install(packages: &[&str]) -> Result<()> {
    let line = format!("apt-get install -y --no-install-recommends {}", packages.join(" "));
    if !Path::new("/etc/debian_version").exists() || !rustix::process::geteuid().is_root() {
        bail!("a program is missing; on Debian install it with: sudo {line}");
    }
    let step = Step::begin(format!("installing {} with apt-get", packages.join(" and ")));
    for arguments in ["apt-get update".to_owned(), line] {
        let mut words = arguments.split(' ');
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).env("DEBIAN_FRONTEND", "noninteractive");
        let mut said = Vec::new();
        let status = child::run_into(&mut command, None, |bytes| said.extend_from_slice(bytes))?;
        if !status.success() {
            bail!("{arguments} failed:\n{}", tail::of(&said));
        }
    }
    step.done(&format!("installed {}", packages.join(" and ")));
    Ok(())
}

const DEBIAN_JAVA: [&str; 2] = ["openjdk-17-jre-headless", "openjdk-21-jre-headless"];

/// The versions of Java that Cassandra 5.0 starts with: it needs the security manager, which Java no longer has from 24 on.
const SUPPORTED: std::ops::RangeInclusive<u32> = 17..=23;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_major_version_of_java() {
        assert_eq!(parse_java_version("openjdk version \"17.0.15\" 2025-04-15\n"), Some(17));
        assert_eq!(parse_java_version("openjdk version \"21\" 2023-09-19"), Some(21));
        assert_eq!(parse_java_version("java version \"1.8.0_302\""), Some(1));
        assert_eq!(parse_java_version("not found"), None);
    }
}
