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
use crate::output::say_again;

/// The variables `YLOCK_URL`, `YLOCK_PASSWORD` and so on are those of [`Config`]; the command has others beside them.
const PASSWORD: &str = "YLOCK_PASSWORD";
const STORE: &str = "YLOCK_STORE";
const CONFIG: &str = "YLOCK_CONFIG";
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
        let Self { url, source } = Self::named(arguments)?;
        if url.scheme == "memory" {
            return Err(Failed::new(
                USAGE,
                "memory:// is a store of one process: no other one would see the lock",
            ));
        }
        let takes_password =
            url.scheme != "file" && (url.password.is_none() || matches!(source, Source::File(_)));
        let password = variable(PASSWORD)?.filter(|_| takes_password);
        let url = match password {
            Some(password) => url.with_password(Secret::new(password)),
            None => url,
        };
        Ok(Self { url, source })
    }

    fn named(arguments: &StoreArguments) -> Result<Self> {
        if let Some(url) = &arguments.store {
            return Ok(Self { url: EngineUrl::parse(url)?, source: Source::CommandLine });
        }
        // A file that is named on the command line wins over the environment, too.
        if let Some(url) = variable(STORE)?.filter(|_| arguments.config.is_none()) {
            return Ok(Self { url: EngineUrl::parse(&url)?, source: Source::Environment });
        }
        match config_file(arguments)? {
            Some((path, config)) => Ok(Self { url: config.to_url(), source: Source::File(path) }),
            None => Ok(Self { url: EngineUrl::parse(&default_folder::url()?)?, source: Source::Default }),
        }
    }

    /// Returns the URL without its passwords.
    pub(crate) fn shown(&self) -> String {
        let EngineUrl { scheme, user, hosts, path, options, .. } = &self.url;
        let user = user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        let hosts = servers(hosts);
        let value = |(name, value): &(String, String)| {
            let is_secret = name.contains("password");
            format!("{name}={}", if is_secret { "***" } else { value })
        };
        let options = options.iter().map(value).collect::<Vec<_>>().join("&");
        let query = if options.is_empty() { String::new() } else { format!("?{options}") };
        format!("{scheme}://{user}{hosts}/{path}{query}")
    }

    /// Returns the URL as a title: without the login and the options.
    pub(crate) fn title(&self) -> String {
        let EngineUrl { scheme, hosts, path, .. } = &self.url;
        format!("{scheme}://{}/{path}", servers(hosts))
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
                    say_again(&format!("{error:#}"));
                    sleep(AGAIN).await;
                }
                connected => return Ok(connected?),
            }
        }
    }
}

fn servers(hosts: &[Host]) -> String {
    hosts.iter().map(address).collect::<Vec<_>>().join(",")
}

/// Returns the server as it was named: with a port only if it has one of its own.
pub(crate) fn address(host: &Host) -> String {
    host.port.map_or_else(|| host.name.clone(), |port| host.address(port))
}

/// Returns a variable of the environment; nothing if it is empty.
fn variable(name: &str) -> Result<Option<String>> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    let wrong = |_| Failed::new(USAGE, format!("the variable {name} is not UTF-8"));
    value.map(|value| value.into_string().map_err(wrong)).transpose()
}

/// Reads the configuration file: the one that is named, which must be there, or the one at the usual place.
fn config_file(arguments: &StoreArguments) -> Result<Option<(PathBuf, Config)>> {
    let named = arguments.config.clone().or(variable(CONFIG)?.map(PathBuf::from));
    if let Some(path) = named {
        return read(&path).map(|config| Some((path, config)));
    }
    let Some(path) = usual_file() else { return Ok(None) };
    let is_there = path.try_exists();
    let wrong = |error: std::io::Error| Failed::new(USAGE, format!("{}: {error}", path.display()));
    if is_there.map_err(wrong)? { read(&path).map(|config| Some((path, config))) } else { Ok(None) }
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
