//! Cassandra itself: one Maven artifact and what it depends on, fetched once.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{self, Command},
};

use anyhow::{Context, Result, bail};

use crate::{child, places::Places, progress::Step, tail, tools};

const VERSION: &str = "5.0.7";
const UNFINISHED: &str = "unfinished-";

/// The folder with the jars, downloaded if need be.
pub(crate) fn get(places: &Places) -> Result<PathBuf> {
    let jars = places.root().join(format!("cassandra-{VERSION}"));
    if jars.exists() {
        return Ok(jars);
    }
    remove_unfinished(places)?;
    // Renamed only when complete, so what an interrupted download left is never taken for Cassandra. The number
    // is for the case that only we were killed: Maven may still be writing there.
    let unfinished = places.root().join(format!("{UNFINISHED}{}", process::id()));
    download(&unfinished)?;
    fs::rename(unfinished.join("lib"), &jars)?;
    fs::remove_dir_all(&unfinished)?;
    Ok(jars)
}

fn remove_unfinished(places: &Places) -> Result<()> {
    for entry in fs::read_dir(places.root())? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn download(to: &Path) -> Result<()> {
    let maven = tools::maven()?;
    fs::create_dir_all(to)?;
    fs::write(to.join("pom.xml"), include_str!("assets/pom.xml").replace("{version}", VERSION))?;
    let mut command = Command::new(maven);
    command.args(["-B", "-f"]).arg(to.join("pom.xml")).args([
        "dependency:copy-dependencies",
        "-DincludeScope=runtime",
        "-DoutputDirectory=lib",
    ]);
    let step = Step::begin(format!("fetching Cassandra {VERSION} (67 MB, only once)"));
    let mut said = Vec::new();
    let status = child::run_into(&mut command, None, |bytes| {
        said.extend_from_slice(bytes);
        if let Some(file) = last_file(bytes) {
            step.detail(file);
        }
    })?;
    if !status.success() {
        bail!("Maven could not fetch Cassandra {VERSION}:\n{}", tail::of(&said));
    }
    let server = to.join(format!("lib/cassandra-all-{VERSION}.jar"));
    server
        .metadata()
        .with_context(|| format!("Maven said nothing wrong, but {} is missing", server.display()))?;
    step.done(&format!("fetched Cassandra {VERSION}"));
    Ok(())
}

/// Maven names each file by its address.
fn last_file(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let word = text.split_whitespace().rfind(|word| word.ends_with(".jar"))?;
    word.rsplit('/').next().map(str::to_owned)
}
