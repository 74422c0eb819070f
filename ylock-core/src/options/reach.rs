//! What the options of every engine over a network have: how long an answer may take, who logs in, and whom to trust.

use std::path::PathBuf;
use std::time::Duration;

use super::{Options, duration, invalid, switch};
use crate::error::Result;
use crate::url::{EngineUrl, Secret};

/// How the servers of a store are reached. An engine keeps it beside its own options, and lets
/// [`reach_options!`](crate::reach_options) write the methods that set it.
#[derive(Clone, Debug)]
#[allow(
    clippy::exhaustive_structs,
    reason = "a part of the options of engines, which are made by their own methods"
)]
pub struct Reach {
    /// The lease of the client, from which the default request timeout comes.
    pub lease: Duration,
    /// How long one request may take before its outcome counts as unknown, where somebody said it.
    pub request_timeout: Option<Duration>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// Whom to log in as.
    pub login: Option<Login>,
    /// Whether and whom to trust with TLS.
    pub tls: Tls,
}

/// Whom to log in as.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "what a URL can say")]
pub struct Login {
    /// The user; may be empty where a store has a user without a name.
    pub user: String,
    /// The user's password.
    pub password: Secret,
}

/// Whether connections are encrypted, and who may vouch for the servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an engine must say what becomes of each")]
pub enum Tls {
    /// Plain TCP.
    #[default]
    Off,
    /// Encrypted; the authorities that the operating system trusts vouch for the servers.
    PlatformRoots,
    /// Encrypted; only the authorities of this PEM file vouch for the servers.
    Authority(PathBuf),
}

impl Default for Reach {
    fn default() -> Self {
        Self {
            lease: Options::default().lease(),
            request_timeout: None,
            connect_timeout: Duration::from_secs(10),
            login: None,
            tls: Tls::Off,
        }
    }
}

impl Reach {
    /// The options of a URL that [`set`](Self::set) reads.
    pub const NAMES: [&'static str; 2] = ["connect_timeout", "request_timeout"];

    /// With the login of a URL, and the lease that it gave for every engine.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) for a user without a password.
    pub fn of(url: &EngineUrl, common: &Options) -> Result<Self> {
        Ok(Self { lease: common.lease(), login: Login::of(url)?, ..Self::default() })
    }

    /// Takes one option of a URL. Answers whether its name is one of [`NAMES`](Self::NAMES).
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) if the value cannot be read.
    pub fn set(&mut self, name: &str, value: &str) -> Result<bool> {
        match name {
            "connect_timeout" => self.connect_timeout = duration(name, value)?,
            "request_timeout" => self.request_timeout = Some(duration(name, value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// How long one request may take: if nobody said it, a fifth of the lease, at most two seconds.
    pub fn request_timeout(&self) -> Duration {
        self.request_timeout.unwrap_or_else(|| (self.lease / 5).min(Duration::from_secs(2)))
    }

    /// Checks the timeouts against the longest lease that grants will have: a renewal that gets no answer must leave time for
    /// another one.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) that says what is too long or too short.
    pub fn check(&self, lease: Duration) -> Result<()> {
        let request_timeout = self.request_timeout();
        if request_timeout.is_zero() || self.connect_timeout.is_zero() {
            return Err(invalid("request_timeout and connect_timeout must be longer than zero".to_owned()));
        }
        if request_timeout >= lease / 3 {
            return Err(invalid(format!(
                "request_timeout is {request_timeout:?}, but must be shorter than a third of the lease, which is {lease:?}: \
                 a renewal that gets no answer must leave time for another one"
            )));
        }
        Ok(())
    }
}

impl Login {
    fn of(url: &EngineUrl) -> Result<Option<Self>> {
        match (&url.user, &url.password) {
            (None, _) => Ok(None),
            (Some(user), Some(password)) => Ok(Some(Self { user: user.clone(), password: password.clone() })),
            (Some(user), None) => {
                let scheme = &url.scheme;
                Err(invalid(format!(
                    "a login is a user and a password: user {user:?} has no password, as in {scheme}://user:password@…"
                )))
            }
        }
    }
}

impl Tls {
    /// The options of a URL that [`of`](Self::of) reads.
    pub const NAMES: [&'static str; 2] = ["tls", "tls_ca"];

    /// What `tls` and `tls_ca` of a URL say.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) for an authority without TLS, and for what is neither on nor off.
    pub fn of(url: &EngineUrl) -> Result<Self> {
        let on = url.option("tls").map_or(Ok(false), |value| switch("tls", value))?;
        Self::when(on, url.option("tls_ca"), "tls=on")
    }

    /// With an authority, if there is one. `how`: how the URL would have said that TLS is wanted.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) for an authority without TLS: somebody took the connection for encrypted.
    pub fn when(on: bool, authority: Option<&str>, how: &str) -> Result<Self> {
        match (on, authority) {
            (false, None) => Ok(Self::Off),
            (true, None) => Ok(Self::PlatformRoots),
            (true, Some(file)) => Ok(Self::Authority(file.into())),
            (false, Some(_)) => Err(invalid(format!("tls_ca needs TLS: {how}"))),
        }
    }
}

/// Writes the methods of an engine's options that set and tell its [`Reach`], in the field of this name. What the engine has to say
/// about them stands before each.
#[macro_export]
macro_rules! reach_options {
    (
        $reach:ident:
        $(#[$login:meta])* with_login,
        $(#[$tls:meta])* with_tls,
        $(#[$connect:meta])* with_connect_timeout $(,)?
    ) => {
        $(#[$login])*
        #[must_use]
        pub fn with_login(mut self, user: impl Into<String>, password: $crate::url::Secret) -> Self {
            self.$reach.login = Some($crate::options::Login { user: user.into(), password });
            self
        }

        $(#[$tls])*
        #[must_use]
        pub fn with_tls(mut self, tls: $crate::options::Tls) -> Self {
            self.$reach.tls = tls;
            self
        }

        /// The lease of the client, from which the default [request timeout](Self::with_request_timeout) comes; 10 s by default.
        #[must_use]
        pub fn with_lease(mut self, lease: ::std::time::Duration) -> Self {
            self.$reach.lease = lease;
            self
        }

        /// How long one request may take before its outcome counts as unknown; a fifth of the lease, at most 2 s, by default.
        ///
        /// Less than a third of the lease: a renewal that gets no answer must leave time for another one.
        #[must_use]
        pub fn with_request_timeout(mut self, timeout: ::std::time::Duration) -> Self {
            self.$reach.request_timeout = Some(timeout);
            self
        }

        $(#[$connect])*
        #[must_use]
        pub fn with_connect_timeout(mut self, timeout: ::std::time::Duration) -> Self {
            self.$reach.connect_timeout = timeout;
            self
        }

        /// See [`with_lease`](Self::with_lease).
        pub fn lease(&self) -> ::std::time::Duration {
            self.$reach.lease
        }

        /// See [`with_request_timeout`](Self::with_request_timeout).
        pub fn request_timeout(&self) -> ::std::time::Duration {
            self.$reach.request_timeout()
        }

        /// See [`with_connect_timeout`](Self::with_connect_timeout).
        pub fn connect_timeout(&self) -> ::std::time::Duration {
            self.$reach.connect_timeout
        }

        pub(crate) fn login(&self) -> Option<&$crate::options::Login> {
            self.$reach.login.as_ref()
        }

        pub(crate) fn tls(&self) -> &$crate::options::Tls {
            &self.$reach.tls
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> EngineUrl {
        EngineUrl::parse(text).unwrap()
    }

    #[test]
    fn a_login_is_a_user_and_a_password() {
        let login = |text| Reach::of(&url(text), &Options::default()).map(|reach| reach.login);
        assert_eq!(login("x://h").unwrap(), None);
        let known = login("x://:secret@h").unwrap().unwrap();
        assert_eq!((known.user.as_str(), known.password.reveal()), ("", "secret"));
        assert!(!format!("{known:?}").contains("secret"));
        assert!(login("x://me@h").unwrap_err().to_string().contains("x://user:password@"));
    }

    #[test]
    fn an_authority_is_only_named_with_tls() {
        let tls = |text| Tls::of(&url(text));
        assert_eq!(tls("x://h").unwrap(), Tls::Off);
        assert_eq!(tls("x://h?tls=on").unwrap(), Tls::PlatformRoots);
        assert_eq!(tls("x://h?tls=on&tls_ca=/ca").unwrap(), Tls::Authority("/ca".into()));
        for wrong in ["x://h?tls_ca=/ca", "x://h?tls=off&tls_ca=/ca"] {
            assert!(tls(wrong).unwrap_err().to_string().contains("tls=on"));
        }
        assert!(tls("x://h?tls=yes").unwrap_err().to_string().contains("on or off"));
    }

    #[test]
    fn a_renewal_without_an_answer_leaves_time_for_another_one() {
        let mut reach = Reach { lease: Duration::from_secs(3), ..Reach::default() };
        assert!(reach.check(reach.lease).is_ok());
        reach.request_timeout = Some(Duration::from_secs(1));
        assert!(reach.check(reach.lease).is_err());
    }
}
