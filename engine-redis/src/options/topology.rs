//! The topology that several servers form.

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
