//! The settings of the service: a file for each environment.

use std::error::Error;
use std::path::Path;

/// The environments that the service knows, each with a file of its name.
const ENVIRONMENTS: [&str; 3] = ["dev", "test", "production"];

/// What stands in each file.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Settings {
    /// The address of the service.
    pub(crate) listen: String,
    /// The store of its locks, and their options. They are checked when the file is read, as far as that is possible without the store.
    pub(crate) locks: ylock::Config,
}

/// Reads the file of an environment. What the variables `SHOP_LOCKS_URL`, `SHOP_LOCKS_PASSWORD`, `SHOP_LOCKS_LEASE` … say wins over it.
pub(crate) fn read(environment: &str) -> Result<Settings, Box<dyn Error>> {
    if !ENVIRONMENTS.contains(&environment) {
        return Err(format!("environment {environment:?} is none of {ENVIRONMENTS:?}").into());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/config");
    let file = std::fs::read_to_string(folder.join(environment).with_extension("toml"))?;
    let settings: Settings = toml::from_str(&file)?;
    Ok(Settings { locks: settings.locks.with_env("SHOP_LOCKS")?, ..settings })
}
