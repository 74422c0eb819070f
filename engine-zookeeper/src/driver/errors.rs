//! The driver's errors, as the algorithm knows them.

use zookeeper_client::Error;

use crate::algorithm::store::{Cause, Fault};

/// Returns what an error of the driver says.
pub(super) fn translated(error: Error) -> Fault {
    match error {
        Error::NoNode => Fault::NoNode,
        Error::NodeExists => Fault::NodeExists,
        Error::NotEmpty => Fault::NotEmpty,
        Error::BadVersion => Fault::BadVersion,
        Error::NoChildrenForEphemerals => Fault::NoChildren,
        Error::NoHosts => Fault::NoHosts,
        Error::Timeout => Fault::Timeout,
        Error::ConnectionLoss => Fault::ConnectionLoss,
        error @ (Error::NoAuth | Error::InvalidAcl) => Fault::NotAllowed(Cause::new(error)),
        error @ Error::AuthFailed => Fault::LoginRefused(Cause::new(error)),
        error @ Error::Unimplemented => Fault::TooOld(Cause::new(error)),
        error @ Error::BadArguments(_) => Fault::BadOption(Cause::new(error)),
        error @ Error::QuotaExceeded => Fault::QuotaUsedUp(Cause::new(error)),
        error @ (Error::SessionExpired | Error::ClientClosed) => Fault::Ended(Cause::new(error)),
        error => Fault::Other(Cause::new(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Errors are shown with these words behind ours.
    #[test]
    fn a_fault_says_what_the_driver_says() {
        for error in [
            Error::NoNode,
            Error::NodeExists,
            Error::NotEmpty,
            Error::BadVersion,
            Error::NoChildrenForEphemerals,
            Error::NoHosts,
            Error::Timeout,
            Error::ConnectionLoss,
            Error::NoAuth,
            Error::SessionExpired,
            Error::UnexpectedErrorCode(-2),
        ] {
            assert_eq!(translated(error.clone()).to_string(), error.to_string());
        }
    }
}
