//! Fetches servers in Java, once: Maven artifacts and what they depend on.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{self, Command},
};

use anyhow::{Context, Result, bail};

use crate::{
    child,
    places::Places,
    progress::Step,
    tail,
    tools::{self, Java},
};

/// The programs that are needed to start a server in Java.
#[derive(Debug)]
pub(crate) struct Software {
    pub(crate) java: Java,
    pub(crate) jars: PathBuf,
}

#[derive(Debug)]
pub(crate) struct Jars {
    /// The name in messages and, in small letters, in the name of the folder.
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// The project file that tells Maven what to fetch; `{version}` in it is replaced by the version.
    pub(crate) pom: &'static str,
    /// The name of the server's jar, without the version and without `.jar`.
    pub(crate) server: &'static str,
    pub(crate) megabytes: u32,
}

impl Jars {
    /// Finds Java and the jars. Only one command at a time may call this: what is missing is installed and fetched.
    pub(crate) fn software(&self, places: &Places) -> Result<Software> {
        Ok(Software { java: tools::java()?, jars: self.get(places)? })
    }

    /// Returns the folder with the jars, and downloads them if need be.
    fn get(&self, places: &Places) -> Result<PathBuf> {
        let jars = places.root().join(format!("{}-{}", self.name.to_lowercase(), self.version));
        if jars.exists() {
            return Ok(jars);
        }
        remove_unfinished(places)?;
        // Renamed only when complete, so that the rest of an interrupted download is never taken for a server. The
        // number is for the case that only this process was killed: Maven may still be writing there.
        let unfinished = places.root().join(format!("{UNFINISHED}{}", process::id()));
        self.download(&unfinished)?;
        fs::rename(unfinished.join("lib"), &jars)?;
        fs::remove_dir_all(&unfinished)?;
        Ok(jars)
    }

    fn download(&self, to: &Path) -> Result<()> {
        let maven = tools::maven()?;
        let (what, pom) = (format!("{} {}", self.name, self.version), to.join("pom.xml"));
        fs::create_dir_all(to)?;
        fs::write(&pom, self.pom.replace("{version}", self.version))?;
        let step = Step::begin(format!("fetching {what} ({} MB, only once)", self.megabytes));
        copy_dependencies(&maven, &pom, &step).with_context(|| format!("Maven could not fetch {what}"))?;
        let server = to.join(format!("lib/{}-{}.jar", self.server, self.version));
        server
            .metadata()
            .with_context(|| format!("Maven reported no failure, but {} is missing", server.display()))?;
        step.done(&format!("fetched {what}"));
        Ok(())
    }
}

/// Fetches the jars into the folder `lib` beside the pom.
fn copy_dependencies(maven: &Path, pom: &Path, step: &Step) -> Result<()> {
    let mut command = Command::new(maven);
    command.args(["-B", "-f"]).arg(pom);
    command.args(["dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=lib"]);
    let mut said = Vec::new();
    let status = child::run_into(&mut command, None, |bytes| {
        said.extend_from_slice(bytes);
        if let Some(file) = last_file(bytes) {
            step.detail(file);
        }
    })?;
    if !status.success() {
        bail!("the end of its output:\n{}", tail::of(&said));
    }
    Ok(())
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

/// Returns the name of the file that Maven has fetched last: Maven prints the address of each file.
fn last_file(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let word = text.split_whitespace().rfind(|word| word.ends_with(".jar"))?;
    word.rsplit('/').next().map(str::to_owned)
}

const UNFINISHED: &str = "unfinished-";
