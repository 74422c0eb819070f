//! The name of a client.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;

use crate::error::{Error, ErrorKind, Result};

/// The name of a client: stored with the locks that the client holds and waits for, so that other programs see which client that is.
/// Nothing is decided by the name, and several clients may have the same one.
///
/// By default it is the host and the process, as in `web-3/4711`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ClientName(Arc<str>);

impl ClientName {
    /// The most bytes of UTF-8 that a name may have.
    pub const MAX_BYTES: usize = 64;

    /// Creates the name of a client.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config) for an empty name, one of more than [`MAX_BYTES`](Self::MAX_BYTES), and one with control characters.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self> {
        let name = name.into();
        let wrong = if name.is_empty() {
            "is empty".to_owned()
        } else if name.len() > Self::MAX_BYTES {
            format!("{name:?} has {} bytes", name.len())
        } else if name.contains(char::is_control) {
            format!("{name:?} has a control character")
        } else {
            return Ok(Self(name));
        };
        let message = format!(
            "the name of the client {wrong}: 1 to {} bytes without control characters",
            Self::MAX_BYTES
        );
        Err(Error::new(ErrorKind::Config, message))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Creates the name that a store shows, unchecked: another program may have written it.
    pub fn stored(text: &str) -> Self {
        Self(text.into())
    }
}

/// The name by default: the host and the process.
impl Default for ClientName {
    fn default() -> Self {
        static OF_THIS_PROCESS: OnceLock<ClientName> = OnceLock::new();
        OF_THIS_PROCESS
            .get_or_init(|| {
                Self::of(&gethostname::gethostname().to_string_lossy(), &std::process::id().to_string())
            })
            .clone()
    }
}

impl ClientName {
    /// Creates the name from host and process. The host may be longer than a name: its end is left out, since the domain stands there.
    fn of(host: &str, process: &str) -> Self {
        let mut host: String = host.chars().filter(|letter| !letter.is_control()).collect();
        let mut end = host.len().min(Self::MAX_BYTES - 1 - process.len());
        while !host.is_char_boundary(end) {
            end -= 1;
        }
        host.truncate(end);
        Self(format!("{host}/{process}").into())
    }
}

impl fmt::Display for ClientName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ClientName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// The name that all clones of a client have now.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedName(Arc<ArcSwap<ClientName>>);

impl SharedName {
    pub(crate) fn get(&self) -> ClientName {
        (**self.0.load()).clone()
    }

    pub(crate) fn set(&self, name: ClientName) {
        self.0.store(Arc::new(name));
    }
}

impl fmt::Display for SharedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.load().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_limits() {
        let longest = "ä".repeat(ClientName::MAX_BYTES / 2);
        for good in ["a", "web 3 \"x\"", &longest] {
            assert_eq!(ClientName::new(good).unwrap().as_str(), good);
        }
        for (bad, part) in [("", "empty"), (&*format!("{longest}x"), "65 bytes"), ("a\nb", "control")] {
            let error = ClientName::new(bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn the_default_name_is_a_name_whatever_the_host_is_called() {
        for host in ["web-3", "", &"ä".repeat(200), "odd\thost"] {
            let name = ClientName::of(host, "4711");
            assert_eq!(ClientName::new(name.as_str()).unwrap(), name);
            assert!(name.as_str().ends_with("/4711"), "{name}");
        }
        assert_eq!(ClientName::of("web-3", "4711").as_str(), "web-3/4711");
        assert_eq!(ClientName::default(), ClientName::default());
    }
}
