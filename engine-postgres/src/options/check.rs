//! Checks of the options, whether they come from a URL or from code.

use ylock_core::options::Tls;
use ylock_core::{Error, ErrorKind, Result};

use super::values::NotifyWord;
use super::{Notify, PostgresOptions};

/// The longest name that PostgreSQL keeps as it is.
const MAX_NAME_BYTES: usize = 63;

impl PostgresOptions {
    /// Checks that every value is within its limits.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config) that names the option and the limit.
    pub fn check(&self) -> Result<()> {
        if self.addresses.is_empty() || self.addresses.iter().any(|address| address.host.is_empty()) {
            return Err(invalid("no host is given: name one, as in postgres://host:port/database"));
        }
        if self.database.is_empty() || self.database.contains('/') {
            return Err(invalid("the path is the name of one database, as in postgres://host:port/database"));
        }
        let namespace = &self.namespace;
        let is_name = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
        if namespace.is_empty()
            || namespace.len() > MAX_NAME_BYTES
            || !namespace.chars().all(is_name)
            || namespace.starts_with(|first: char| first.is_ascii_digit())
            || namespace.starts_with("pg_")
        {
            return Err(invalid(format!(
                "option namespace={namespace}: must be 1 to {MAX_NAME_BYTES} letters a to z, digits and _, not begin with a digit, nor with pg_"
            )));
        }
        if self.tls() != Tls::Off && !cfg!(feature = "tls") {
            return Err(invalid(
                "TLS is not compiled in: switch on the Cargo feature \"tls\" of ylock-engine-postgres, or \"postgres-tls\" of ylock",
            ));
        }
        self.reach.check(self.reach.lease).map_err(|error| error.with_engine(crate::NAME))?;
        self.check_notify()
    }

    fn check_notify(&self) -> Result<()> {
        match self.notify() {
            Notify::Off { .. } if matches!(self.notify, Some(NotifyWord::On | NotifyWord::Auto)) => {
                Err(invalid("poll=… and poll_longest=… are for notify=off"))
            }
            Notify::Off { .. } if self.listen.is_some() => {
                Err(invalid("listen=… and notify=off contradict each other"))
            }
            Notify::Off { poll, poll_longest } if poll.is_zero() || poll_longest < poll => {
                Err(invalid(format!(
                    "poll is {poll:?} and poll_longest {poll_longest:?}: the first pause must be longer than zero, and the longest not shorter"
                )))
            }
            _ => Ok(()),
        }
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
}

#[cfg(test)]
mod tests {
    use ylock_core::Options;
    use ylock_core::url::EngineUrl;

    use super::*;

    fn read(text: &str) -> Result<PostgresOptions> {
        PostgresOptions::from_url(&EngineUrl::parse(text).unwrap(), &Options::default())
    }

    #[test]
    fn a_namespace_is_a_plain_name() {
        let long = "x".repeat(MAX_NAME_BYTES);
        let checked = |name: &str| PostgresOptions::new("h", 1, "d").with_namespace(name).check();
        for name in ["shop", "shop_1", &long] {
            checked(name).unwrap();
        }
        for name in ["", "Shop", "a.b", "a\"b", "1a", "pg_locks", &format!("{long}x")] {
            let error = checked(name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.to_string().contains("namespace="), "{name}: {error}");
        }
    }

    #[test]
    fn a_url_says_what_contradicts_itself() {
        for (text, word) in [
            ("postgres://h", "database"),
            ("postgres://h/a/b", "database"),
            ("postgres://h/d?notify=on&poll=1s", "notify=off"),
            ("postgres://h/d?notify=off&listen=h", "listen"),
            ("postgres://h/d?notify=off&poll=2s&poll_longest=1s", "poll_longest"),
            ("postgres://h/d?standby=maybe", "standby"),
            ("postgres://h/d?schema=drop", "schema"),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.to_string().contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn a_url_says_how_waiters_learn_of_their_turn_and_may_name_a_user_without_a_password() {
        let options = read("postgres://app@h1,h2:7/d").unwrap();
        assert_eq!((options.notify(), options.addresses().len()), (Notify::Auto, 2));
        assert_eq!(options.login().map(|login| login.user.as_str()), Some("app"));
        assert_eq!(read("postgres://h/d?notify=on&listen=direct:6").unwrap().notify(), Notify::On);
        let off = |text| match read(text).unwrap().notify() {
            Notify::Off { poll, poll_longest } => (poll.as_millis(), poll_longest.as_millis()),
            other => panic!("{other:?}"),
        };
        assert_eq!(off("postgres://h/d?notify=off"), (20, 500));
        assert_eq!(off("postgres://h/d?poll=5ms"), (5, 5));
        assert_eq!(off("postgres://h/d?poll=5ms&poll_longest=1s"), (5, 1_000));
    }
}
