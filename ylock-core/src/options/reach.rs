//! The options that every engine over a network has: how long an answer may take, the login, and the authorities to trust.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Options, invalid};
use crate::error::Result;
use crate::url::{EngineUrl, Secret};

crate::define_options! {
    /// The options for reaching the servers of a store. An engine includes them in its own options; see
    /// [`define_options!`](crate::define_options).
    #[derive(Clone, Debug)]
    pub struct Reach {
        /// The lease of the client, from which the default request timeout comes.
        pub lease: Duration,
        /// The user to log in as, and its password.
        pub login: Option<Login>,
    }

    /// How long one request may take before its outcome counts as unknown; less than a third of the lease, also of the leases in `Options`.
    request_timeout / with_request_timeout: Duration or "a fifth of the lease, at most `2s`";

    /// How long connecting may take.
    connect_timeout / with_connect_timeout: Duration = "10s";

    /// Whether connections are encrypted. With `on` the authorities that the operating system trusts vouch for the servers.
    tls: bool = "off";

    /// With TLS: a PEM file of the only authorities to trust.
    tls_ca: PathBuf or "";

    /// With TLS: a PEM file of the certificate by which the servers know this client, for servers that want one.
    tls_cert: PathBuf or "";

    /// With `tls_cert`: the PEM file of the certificate's private key.
    tls_key: PathBuf or "";
}

/// The user to log in as, and its password.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "what a URL can say")]
pub struct Login {
    /// The user; may be empty where a store has a user without a name.
    pub user: String,
    /// The user's password.
    pub password: Secret,
}

/// The encryption of connections, and the authorities that may vouch for the servers.
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

/// The certificate by which servers know a client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "what a URL can say")]
pub struct ClientCertificate {
    /// The PEM file of the certificate, followed by those of the authorities between it and one that the servers trust.
    pub certificate: PathBuf,
    /// The PEM file of its private key.
    pub key: PathBuf,
}

impl ClientCertificate {
    /// Returns what the files of the certificate and of its key have, in PEM.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) that names the option whose file cannot be read.
    pub fn read(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        let read = |name: &str, file: &Path| {
            std::fs::read(file).map_err(|error| {
                invalid(format!("{name}={} cannot be read", file.display())).with_source(error)
            })
        };
        Ok((read("tls_cert", &self.certificate)?, read("tls_key", &self.key)?))
    }
}

/// Returns what to tell the user if a server ended the TLS handshake, and that is the cause of an error. With TLS 1.3 a client hears of it after it has
/// finished the handshake itself, with whatever it reads first: so it is what becomes of a certificate that the server does not trust, or misses.
#[doc(hidden)]
pub fn ended_handshake(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let said = causes.map(ToString::to_string).find(|said| said.contains("received fatal alert"))?;
    Some(format!(
        "the server ended the TLS handshake ({said}): if it wants a certificate of the client, name one that it trusts with tls_cert and tls_key"
    ))
}

impl Default for Reach {
    fn default() -> Self {
        Self::with_defaults(Options::DEFAULT_LEASE, None)
    }
}

impl Reach {
    /// Returns these options with the login of a URL, and with the lease of the options that all engines share.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) for a user without a password.
    pub fn with_url(self, url: &EngineUrl, common: &Options) -> Result<Self> {
        Ok(Self { lease: common.lease(), login: Login::of(url)?, ..self })
    }

    /// Sets whether to use TLS and which authorities to trust: the options `tls` and `tls_ca`.
    #[must_use]
    pub fn with_tls(mut self, tls: Tls) -> Self {
        self.tls = tls != Tls::Off;
        self.tls_ca = match tls {
            Tls::Authority(file) => Some(file),
            Tls::Off | Tls::PlatformRoots => None,
        };
        self
    }

    /// Returns whether TLS is used, and the authorities to trust; see [`with_tls`](Self::with_tls).
    pub fn tls(&self) -> Tls {
        match &self.tls_ca {
            _ if !self.tls => Tls::Off,
            None => Tls::PlatformRoots,
            Some(file) => Tls::Authority(file.clone()),
        }
    }

    /// Sets the certificate by which the servers know this client: the options `tls_cert` and `tls_key`.
    #[must_use]
    pub fn with_client_certificate(mut self, certificate: ClientCertificate) -> Self {
        (self.tls_cert, self.tls_key) = (Some(certificate.certificate), Some(certificate.key));
        self
    }

    /// Returns the certificate by which the servers know this client; see [`with_client_certificate`](Self::with_client_certificate).
    pub fn client_certificate(&self) -> Option<ClientCertificate> {
        let (certificate, key) = self.tls_cert.clone().zip(self.tls_key.clone())?;
        Some(ClientCertificate { certificate, key })
    }

    /// Returns how long one request may take: if no option says it, a fifth of the lease, at most two seconds.
    pub fn request_timeout(&self) -> Duration {
        self.request_timeout.unwrap_or_else(|| (self.lease / 5).min(Duration::from_secs(2)))
    }

    /// Checks the timeouts against the longest lease that grants will have: a renewal that gets no answer must leave time for
    /// another one. Checks also that no caller takes a plain connection for an encrypted one: an authority and a certificate need TLS.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) that says what is too long or too short.
    pub fn check(&self, lease: Duration) -> Result<()> {
        self.check_tls()?;
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

impl Reach {
    fn check_tls(&self) -> Result<()> {
        let given = [("tls_ca", &self.tls_ca), ("tls_cert", &self.tls_cert), ("tls_key", &self.tls_key)];
        if let Some((name, _)) = given.iter().find(|(_, file)| file.is_some() && !self.tls) {
            return Err(invalid(format!("{name} needs TLS: tls=on")));
        }
        match (&self.tls_cert, &self.tls_key) {
            (Some(_), None) => Err(invalid("tls_cert needs tls_key, the file of its private key".to_owned())),
            (None, Some(_)) => {
                Err(invalid("tls_key needs tls_cert, the file of the key's certificate".to_owned()))
            }
            _ => Ok(()),
        }
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
                    "user {user:?} has no password: a login is a user and a password, as in {scheme}://user:password@…"
                )))
            }
        }
    }
}

/// Writes the methods that the options of an engine pass on to the [`Reach`] in their field of this name.
#[doc(hidden)]
#[macro_export]
macro_rules! reach_methods {
    ($reach:ident) => {
        /// Logs in with a name and a password. An empty name is the user without a name, where a store has one.
        #[must_use]
        pub fn with_login(mut self, user: impl Into<String>, password: $crate::url::Secret) -> Self {
            self.$reach.login = Some($crate::options::Login { user: user.into(), password });
            self
        }

        /// Sets whether to use TLS and which authorities to trust; off by default. The options `tls` and `tls_ca`.
        #[must_use]
        pub fn with_tls(mut self, tls: $crate::options::Tls) -> Self {
            self.$reach = self.$reach.with_tls(tls);
            self
        }

        /// Sets the certificate by which the servers know this client, for servers that want one. The options `tls_cert` and `tls_key`.
        #[must_use]
        pub fn with_client_certificate(mut self, certificate: $crate::options::ClientCertificate) -> Self {
            self.$reach = self.$reach.with_client_certificate(certificate);
            self
        }

        /// Sets the lease of the client, from which the default [request timeout](Self::with_request_timeout) comes; 10 s by default.
        #[must_use]
        pub fn with_lease(mut self, lease: ::std::time::Duration) -> Self {
            self.$reach.lease = lease;
            self
        }

        /// Sets how long one request may take before its outcome counts as unknown; a fifth of the lease, at most 2 s, by default.
        ///
        /// It must be less than a third of the lease: a renewal that gets no answer must leave time for another one.
        #[must_use]
        pub fn with_request_timeout(mut self, timeout: ::std::time::Duration) -> Self {
            self.$reach = self.$reach.with_request_timeout(timeout);
            self
        }

        /// Sets how long connecting may take; 10 s by default.
        #[must_use]
        pub fn with_connect_timeout(mut self, timeout: ::std::time::Duration) -> Self {
            self.$reach = self.$reach.with_connect_timeout(timeout);
            self
        }

        /// Returns the lease of the client; see [`with_lease`](Self::with_lease).
        pub fn lease(&self) -> ::std::time::Duration {
            self.$reach.lease
        }

        /// Returns how long one request may take; see [`with_request_timeout`](Self::with_request_timeout).
        pub fn request_timeout(&self) -> ::std::time::Duration {
            self.$reach.request_timeout()
        }

        /// Returns how long connecting may take; see [`with_connect_timeout`](Self::with_connect_timeout).
        pub fn connect_timeout(&self) -> ::std::time::Duration {
            self.$reach.connect_timeout()
        }

        pub(crate) fn login(&self) -> Option<&$crate::options::Login> {
            self.$reach.login.as_ref()
        }

        pub(crate) fn tls(&self) -> $crate::options::Tls {
            self.$reach.tls()
        }

        #[allow(dead_code, reason = "without TLS an engine has no use for it")]
        pub(crate) fn client_certificate(&self) -> Option<$crate::options::ClientCertificate> {
            self.$reach.client_certificate()
        }

        /// Returns these options, changed by the login and the options of a URL, if the result passes the check.
        fn read(mut self, url: &$crate::url::EngineUrl, common: &$crate::Options) -> $crate::Result<Self> {
            self.$reach = self.$reach.with_url(url, common)?;
            url.set_options(&Self::definitions(), |name, value| self.set(name, value))?;
            self.check()?;
            Ok(self)
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
        let login =
            |text| Reach::default().with_url(&url(text), &Options::default()).map(|reach| reach.login);
        assert_eq!(login("x://h").unwrap(), None);
        let known = login("x://:secret@h").unwrap().unwrap();
        assert_eq!((known.user.as_str(), known.password.reveal()), ("", "secret"));
        assert!(!format!("{known:?}").contains("secret"));
        assert!(login("x://me@h").unwrap_err().to_string().contains("x://user:password@"));
    }

    #[test]
    fn an_authority_is_only_named_with_tls() {
        let tls = |text| {
            let (url, mut reach) = (url(text), Reach::default());
            url.set_options(&Reach::definitions(), |name, value| reach.set(name, value))?;
            reach.check(reach.lease).map(|()| reach.tls())
        };
        assert_eq!(tls("x://h").unwrap(), Tls::Off);
        assert_eq!(tls("x://h?tls=on").unwrap(), Tls::PlatformRoots);
        assert_eq!(tls("x://h?tls=on&tls_ca=/ca").unwrap(), Tls::Authority("/ca".into()));
        for wrong in ["x://h?tls_ca=/ca", "x://h?tls=off&tls_ca=/ca"] {
            assert!(tls(wrong).unwrap_err().to_string().contains("tls=on"));
        }
        assert!(tls("x://h?tls=yes").unwrap_err().to_string().contains("on or off"));
    }

    #[test]
    fn a_certificate_comes_with_its_key_and_with_tls() {
        let certificate = |text| {
            let (url, mut reach) = (url(text), Reach::default());
            url.set_options(&Reach::definitions(), |name, value| reach.set(name, value))?;
            reach.check(reach.lease).map(|()| reach.client_certificate())
        };
        let known = ClientCertificate { certificate: "/c".into(), key: "/k".into() };
        assert_eq!(certificate("x://h?tls=on&tls_cert=/c&tls_key=/k").unwrap(), Some(known.clone()));
        assert_eq!(certificate("x://h?tls=on").unwrap(), None);
        for (wrong, hint) in [
            ("x://h?tls_cert=/c&tls_key=/k", "tls=on"),
            ("x://h?tls=on&tls_cert=/c", "tls_key"),
            ("x://h?tls=on&tls_key=/k", "tls_cert"),
        ] {
            assert!(certificate(wrong).unwrap_err().to_string().contains(hint), "{wrong}");
        }
        assert_eq!(Reach::default().with_client_certificate(known.clone()).client_certificate(), Some(known));
    }

    #[test]
    fn what_code_says_of_tls_is_read_back() {
        for tls in [Tls::Off, Tls::PlatformRoots, Tls::Authority("/ca".into())] {
            assert_eq!(Reach::default().with_tls(tls.clone()).tls(), tls);
        }
    }

    #[test]
    fn a_renewal_without_an_answer_leaves_time_for_another_one() {
        let mut reach = Reach { lease: Duration::from_secs(3), ..Reach::default() };
        assert!(reach.check(reach.lease).is_ok());
        reach.request_timeout = Some(Duration::from_secs(1));
        assert!(reach.check(reach.lease).is_err());
    }
}
