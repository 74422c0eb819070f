//! Helpers for tests that start servers of their own, to break them.

#[cfg(feature = "tls")]
mod certificates;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(target_os = "linux")]
mod clock_files;
mod ports;
mod proxy;
#[cfg(all(target_os = "linux", feature = "suite"))]
mod small_disk;
mod standing;

use std::process::{Child, Command};
use std::time::Duration;

#[cfg(feature = "tls")]
pub use certificates::Certificates;
#[cfg(target_os = "linux")]
pub use clock::SetClock;
pub use ports::free_port;
pub use proxy::{Link, Proxy};
#[cfg(all(target_os = "linux", feature = "suite"))]
pub use small_disk::SmallDisk;
pub use standing::await_standing;

/// The time for which tests wait for what servers do.
const BOUND: Duration = Duration::from_secs(30);

/// Returns the result of the future.
///
/// # Panics
/// If it takes half a minute.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    super::within(BOUND, what, future).await
}

/// Waits until the condition holds: asks again and again.
///
/// # Panics
/// If it does not within half a minute.
pub async fn until(what: &str, condition: impl AsyncFn() -> bool) {
    super::eventually(BOUND, what, || condition()).await;
}

/// Sends a signal to a process, such as `CONT`, or `STOP`: when that returns, the process stands still as a machine does that hangs.
///
/// # Panics
/// If that is refused.
pub fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status();
    assert!(status.is_ok_and(|status| status.success()), "kill -{name}");
    if name == "STOP" {
        await_standing(child.id());
    }
}
