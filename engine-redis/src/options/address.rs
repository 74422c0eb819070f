//! The address of a server, and the topology that several servers form.

use std::fmt;

/// Host and port of a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Address {
    pub(crate) fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// The topology that the servers form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    Single,
    /// The addresses are those of Sentinels, which know the master of this service.
    Sentinel {
        service: String,
    },
    /// The addresses are those of some servers, which know the others.
    Cluster,
}
