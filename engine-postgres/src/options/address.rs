//! The address of a server.

use std::fmt;

use ylock_core::options::OptionValue;

use super::DEFAULT_PORT;

/// Host and port of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Address {
    pub(crate) fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }
}

impl OptionValue for Address {
    fn from_text(text: &str) -> Result<Self, String> {
        let wrong = || "not an address such as host:5432 or [::1]:5432".to_owned();
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                (host, port.parse().map_err(|_| wrong())?)
            }
            _ => (text, DEFAULT_PORT),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() { Err(wrong()) } else { Ok(Self::new(host, port)) }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read() {
        for (text, host, port) in [
            ("a", "a", 5432),
            ("a:1", "a", 1),
            ("[::1]:2", "::1", 2),
            ("::1", "::1", 5432),
            ("[::1]", "::1", 5432),
        ] {
            assert_eq!(Address::from_text(text), Ok(Address::new(host, port)), "{text}");
        }
        for wrong in ["", ":1", "a:x", "a:70000", "[]"] {
            assert!(Address::from_text(wrong).is_err(), "{wrong}");
        }
    }
}
