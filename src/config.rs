//! The part of a program's configuration that concerns its locks.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

use ylock_core::url::{EngineUrl, Secret};
use ylock_core::{Error, ErrorKind, Result};

use crate::connect::check;

/// The store and the options of a client, from a configuration file, from the environment, or from both.
///
/// `url` names the store. `password` is that of the URL, kept outside of it. Every other key is an option, named as in the URL. Nothing is
/// connected to before [`connect_with`](crate::connect_with), but everything that can be checked without the store is checked at once,
/// except that a missing password may still come from the environment.
///
/// If several places set the same value, the environment wins over the file, and an option that has a key of its own wins over the same
/// option in the URL, wherever either comes from.
///
/// # Examples
/// In a file: with the Cargo feature `serde`, as a part of the configuration of a service.
/// ```
/// # #[cfg(feature = "serde")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// #[derive(serde::Deserialize)]
/// struct Service {
///     listen: String,
///     locks: ylock::Config,
/// }
///
/// let file = r#"
///     listen = "0.0.0.0:8080"
///
///     [locks]
///     url = "memory://"
///     lease = "15s"
///     fairness = "strict"
///     hand_over = 500
/// "#;
/// let service: Service = toml::from_str(file)?;
/// let ylock = ylock::connect_with(&service.locks.with_env("SERVICE_LOCKS")?).await?;
/// assert_eq!(ylock.options().lease().as_secs(), 15);
/// # ylock.close().await; Ok(()) }
/// # #[cfg(not(feature = "serde"))] fn main() {}
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Config {
    url: EngineUrl,
    password: Option<Secret>,
    options: BTreeMap<String, String>,
}

impl Config {
    /// Creates the configuration for the store that this URL names, with no options beside those of the URL.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config) as [`connect`](crate::connect), for everything that can be told without the store.
    pub fn new(url: &str) -> Result<Self> {
        Self::bare(url)?.checked_but_for_the_password()
    }

    /// Reads the environment: with the prefix `YLOCK` the variables `YLOCK_URL`, `YLOCK_PASSWORD`, `YLOCK_LEASE` and so on. An empty
    /// variable counts as not set.
    ///
    /// Every variable with this prefix must be one of them, so that a misspelled name is noticed.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config) if there is no `…_URL`, for a variable that is no option, and as [`connect`](crate::connect), for
    /// everything that can be told without the store.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example() -> ylock::Result<()> {
    /// let ylock = ylock::connect_with(&ylock::Config::from_env("YLOCK")?).await?;
    /// # ylock.close().await; Ok(()) }
    /// ```
    pub fn from_env(prefix: &str) -> Result<Self> {
        Self::from_variables(None, prefix, std::env::vars_os())
    }

    /// Returns this configuration, changed by the variables of the environment; see [`from_env`](Self::from_env). No variable need be set.
    ///
    /// # Errors
    /// As [`from_env`](Self::from_env).
    pub fn with_env(self, prefix: &str) -> Result<Self> {
        Self::from_variables(Some(self), prefix, std::env::vars_os())
    }

    /// Returns the URL, with the password and the options that are kept beside it.
    pub fn to_url(&self) -> EngineUrl {
        let url =
            self.options.iter().fold(self.url.clone(), |url, (name, value)| url.with_option(name, value));
        match &self.password {
            Some(password) => url.with_password(password.clone()),
            None => url,
        }
    }

    fn bare(url: &str) -> Result<Self> {
        Ok(Self { url: EngineUrl::parse(url)?, password: None, options: BTreeMap::new() })
    }

    fn checked(self) -> Result<Self> {
        check(self.to_url())?;
        Ok(self)
    }

    /// Checks what is read first: a missing password may come from a source that is read later.
    fn checked_but_for_the_password(self) -> Result<Self> {
        let url = self.to_url();
        let lacks = url.user.is_some() && url.password.is_none();
        check(if lacks { url.with_password(Secret::new("comes later")) } else { url })?;
        Ok(self)
    }

    fn from_variables(
        base: Option<Self>,
        prefix: &str,
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Self> {
        let mut said = options_of(prefix, variables)?;
        let within = |error: Error| Error::new(error.kind(), format!("variables {prefix}_…: {error}"));
        let url = said.remove("url").map(|url| Self::bare(&url)).transpose().map_err(within)?;
        let mut config = match (base, url) {
            // The password of a file is for the store that the file names.
            (Some(base), Some(other)) => Self { url: other.url, password: None, ..base },
            (Some(config), None) | (None, Some(config)) => config,
            (None, None) => {
                let message =
                    format!("variable {prefix}_URL is not set: it names the store, as in redis://host");
                return Err(Error::new(ErrorKind::Config, message));
            }
        };
        if let Some(password) = said.remove("password") {
            config.password = Some(Secret::new(password));
        }
        config.options.extend(said);
        config.checked().map_err(within)
    }
}

/// Shows the URL, without its passwords.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Config").field(&self.to_url()).finish()
    }
}

/// Returns the values of the variables with this prefix, by the names that options have in a URL.
fn options_of(
    prefix: &str,
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Result<BTreeMap<String, String>> {
    let mut said = BTreeMap::new();
    for (variable, value) in variables {
        let name = variable
            .to_str()
            .and_then(|name| name.strip_prefix(prefix))
            .and_then(|name| name.strip_prefix('_'));
        let Some(name) = name.filter(|_| !value.is_empty()) else { continue };
        let value = value.into_string().map_err(|_| {
            Error::new(ErrorKind::Config, format!("the value of variable {prefix}_{name} is not UTF-8"))
        })?;
        said.insert(name.to_ascii_lowercase(), value);
    }
    Ok(said)
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Config {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        use ylock_core::options::Values;

        let Values(mut said) = Values::deserialize(deserializer)?;
        let url = said.remove("url").ok_or_else(|| D::Error::missing_field("url"))?;
        let password = said.remove("password").map(Secret::new);
        let bare = Self::bare(&url).map_err(D::Error::custom)?;
        Self { password, options: said, ..bare }.checked_but_for_the_password().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(base: Option<Config>, variables: &[(&str, &str)]) -> Result<Config> {
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Config::from_variables(base, "YLOCK", variables)
    }

    #[test]
    fn the_environment_says_everything() {
        let config = environment(
            None,
            &[
                ("HOME", "/"),
                ("YLOCKS_URL", "nothing of ours"),
                ("YLOCK_URL", "memory://?max_wait=1s"),
                ("YLOCK_LEASE", "5s"),
                ("YLOCK_HAND_OVER", "7"),
                ("YLOCK_FAIRNESS", ""),
            ],
        );
        let url = config.unwrap().to_url();
        let option = |name| url.option(name);
        assert_eq!(
            (option("max_wait"), option("lease"), option("hand_over")),
            (Some("1s"), Some("5s"), Some("7"))
        );
        assert_eq!(option("fairness"), None);
    }

    #[test]
    fn an_option_of_its_own_wins_over_the_url_and_the_environment_over_all() {
        let base =
            environment(None, &[("YLOCK_URL", "memory://?lease=1s&max_wait=1s"), ("YLOCK_LEASE", "2s")])
                .unwrap();
        assert_eq!(base.to_url().option("lease"), Some("2s"));
        let config = environment(Some(base), &[("YLOCK_LEASE", "3s")]).unwrap();
        assert_eq!(
            (config.to_url().option("lease"), config.to_url().option("max_wait")),
            (Some("3s"), Some("1s"))
        );
        let config = environment(Some(config), &[("YLOCK_URL", "memory://?lease=4s")]).unwrap();
        assert_eq!((config.to_url().option("lease"), config.to_url().option("max_wait")), (Some("3s"), None));
    }

    #[cfg(feature = "redis")]
    #[test]
    fn a_password_comes_from_the_environment() {
        let file = Config::new("redis://locks@cache/0").unwrap();
        let config = environment(Some(file.clone()), &[("YLOCK_PASSWORD", "hunter2")]).unwrap();
        assert_eq!(config.to_url().password.unwrap().reveal(), "hunter2");
        let error = environment(Some(file.clone()), &[]).unwrap_err();
        assert!(error.to_string().contains("has no password"), "{error}");
        // The password of one store is not sent to another one.
        let other = [("YLOCK_URL", "redis://other")];
        assert_eq!(environment(Some(config), &other).unwrap().to_url().password, None);
    }

    #[test]
    fn what_is_wrong_with_the_environment_is_named() {
        for (variables, part) in [
            (&[][..], "YLOCK_URL is not set"),
            (&[("YLOCK_URL", "memry://")], "did you mean memory://?"),
            (
                &[("YLOCK_URL", "memory://"), ("YLOCK_LEESE", "1s")],
                "YLOCK_…: unknown option \"leese\"; did you mean \"lease\"?",
            ),
            (
                &[("YLOCK_URL", "memory://"), ("YLOCK_LEASE", "soon")],
                "YLOCK_…: option lease=soon: not a duration",
            ),
            (&[("YLOCK_URL", "memory://"), ("YLOCK_LEASE", "1ms")], "between 100ms and 24h"),
            (&[("YLOCK_URL", "memory://"), ("YLOCK_METRICS", "yes")], "on or off"),
        ] {
            let error = environment(None, variables).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.to_string().contains(part), "{variables:?}: {error}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let base = Config::new("memory://").unwrap();
        let error = environment(Some(base), &[("YLOCK_PASSWORD", "hunter2")]).unwrap_err();
        assert!(
            error.to_string().contains("memory:// has no user") && !error.to_string().contains("hunter2")
        );
        let shown = Config { password: Some(Secret::new("hunter2")), ..Config::new("memory://").unwrap() };
        assert!(!format!("{shown:?}").contains("hunter2"));
        assert_eq!(shown.to_url().password.unwrap().reveal(), "hunter2");
    }

    #[cfg(feature = "serde")]
    mod files {
        use super::*;

        #[test]
        fn a_file_may_say_numbers_and_switches() {
            let config: Config =
                toml::from_str("url = 'memory://?lease=9s'\nlease = '5s'\nhand_over = 7\nmetrics = false")
                    .unwrap();
            let url = config.to_url();
            let said = ["lease", "hand_over", "metrics"].map(|name| url.option(name).unwrap_or_default());
            assert_eq!(said, ["5s", "7", "off"]);
        }

        /// As a file of JSON may have it; TOML refuses it by itself.
        #[test]
        fn a_key_that_is_given_twice_is_refused() {
            use serde::Deserialize;
            use serde::de::value::{Error, MapDeserializer};

            for twice in ["lease", "url", "password"] {
                let keys =
                    [("url", "memory://"), ("lease", "1s"), ("password", "hunter2"), (twice, "memory://x")];
                let read = Config::deserialize(MapDeserializer::<_, Error>::new(keys.into_iter()));
                assert_eq!(read.unwrap_err().to_string(), format!("{twice} is given twice"));
            }
        }

        #[test]
        fn what_is_wrong_with_a_file_is_named_when_it_is_read() {
            for (file, part) in [
                ("lease = '5s'", "missing field `url`"),
                ("url = 'memory://'\nleese = '5s'", "did you mean \"lease\"?"),
                ("url = 'memory://'\nlease = 'soon'", "option lease=soon: not a duration"),
                ("url = 'memory://'\nlease = 1.5", "a text such as \"10s\""),
                ("url = 'memory://host'", "no user, host or path"),
            ] {
                let error = toml::from_str::<Config>(file).unwrap_err();
                assert!(error.to_string().contains(part), "{file}: {error}");
            }
        }
    }
}
