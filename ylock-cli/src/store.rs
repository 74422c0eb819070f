//! Which store: that of the command line, of the environment, of a configuration file, or a folder of this host.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::sleep;
use ylock::url::{EngineUrl, Host, Secret};
use ylock::{Config, Ylock};

use crate::arguments::StoreArguments;
use crate::default_folder;
use crate::exit::{Failed, Result, USAGE};

/// The variables `YLOCK_URL`, `YLOCK_PASSWORD` and so on are those of [`Config`]; the command has others beside them.
const PASSWORD: &str = "YLOCK_PASSWORD";
const STORE: &str = "YLOCK_STORE";
/// The pause between two tries to reach a store that is away.
const AGAIN: Duration = Duration::from_secs(1);

/// A store that was named, or found.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) url: EngineUrl,
    pub(crate) source: Source,
}

/// Where a store was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    CommandLine,
    Environment,
    File(PathBuf),
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine => f.write_str("named by --store"),
            Self::Environment => write!(f, "named by the variable {STORE}"),
            Self::File(path) => write!(f, "named in {}", path.display()),
            Self::Default => f.write_str("the folder of this user, because no store is named"),
        }
    }
}

impl Store {
    /// Finds the store.
    pub(crate) fn find(arguments: &StoreArguments) -> Result<Self> {
        let (url, source) = match (&arguments.store, std::env::var(STORE), config_file(arguments)?) {
            (Some(url), _, _) => (EngineUrl::parse(url)?, Source::CommandLine),
            (None, Ok(url), _) if !url.is_empty() => (EngineUrl::parse(&url)?, Source::Environment),
            (None, _, Some((path, config))) => (config.to_url(), Source::File(path)),
            (None, _, None) => (EngineUrl::parse(&default_folder::url())?, Source::Default),
        };
        let url = match std::env::var(PASSWORD) {
            Ok(password) if url.user.is_some() && url.password.is_none() => {
                url.with_password(Secret::new(password))
            }
            _ => url,
        };
        Ok(Self { url, source })
    }

    /// Returns the URL without its passwords.
    pub(crate) fn shown(&self) -> String {
        let EngineUrl { scheme, user, hosts, path, options, .. } = &self.url;
        let user = user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        let host = |host: &Host| host.port.map_or_else(|| host.name.clone(), |port| host.address(port));
        let hosts = hosts.iter().map(host).collect::<Vec<_>>().join(",");
        let value = |(name, value): &(String, String)| {
            let is_secret = name.contains("password");
            format!("{name}={}", if is_secret { "***" } else { value })
        };
        let options = options.iter().map(value).collect::<Vec<_>>().join("&");
        let query = if options.is_empty() { String::new() } else { format!("?{options}") };
        format!("{scheme}://{user}{hosts}/{path}{query}")
    }

    /// Connects.
    pub(crate) async fn connect(&self) -> Result<Ylock> {
        Ok(ylock::connect_to(self.url.clone()).await?)
    }

    /// Connects, and tries again while the store is away. Never ends by itself while it is: the caller bounds it.
    pub(crate) async fn connect_when_there(&self) -> Result<Ylock> {
        loop {
            match ylock::connect_to(self.url.clone()).await {
                Err(error) if error.is_retryable() => {
                    eprintln!("ylock: {error:#}; trying again");
                    sleep(AGAIN).await;
                }
                connected => return Ok(connected?),
            }
        }
    }
}

/// Reads the configuration file: the one that is named, which must be there, or the one at the usual place.
fn config_file(arguments: &StoreArguments) -> Result<Option<(PathBuf, Config)>> {
    if let Some(path) = &arguments.config {
        return read(path).map(|config| Some((path.clone(), config)));
    }
    let Some(path) = usual_file().filter(|path| path.exists()) else { return Ok(None) };
    read(&path).map(|config| Some((path, config)))
}

fn usual_file() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(folder.join("ylock.toml"))
}

fn read(path: &Path) -> Result<Config> {
    let wrong = |why: String| Failed::new(USAGE, format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    // Without the line: it may be that of the password.
    toml::from_str(&text).map_err(|error| wrong(error.message().to_owned()))
}
