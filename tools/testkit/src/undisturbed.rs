//! What a machine that stands still for a moment must not decide: whether a lock of the shortest lease was renewed in time.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::quiet_time;

/// How often it is tried on a machine that keeps standing still.
const ATTEMPTS: usize = 10;

/// Makes an attempt that takes several leases, and makes it again if it fails after the machine stood still for a part of a lease.
///
/// # Panics
/// If an attempt fails on a machine that did not stand still, and after ten attempts on one that did.
pub async fn undisturbed<F>(lease: Duration, attempt: impl Fn() -> F)
where
    F: Future<Output = Result<(), String>>,
{
    by(quiet_time, lease, attempt).await;
}

async fn by<F>(quiet_time: impl Fn() -> Duration, lease: Duration, attempt: impl Fn() -> F)
where
    F: Future<Output = Result<(), String>>,
{
    for _ in 0..ATTEMPTS {
        let stood_still = AtomicBool::new(false);
        let watch = async {
            loop {
                let (began, quiet) = (Instant::now(), quiet_time());
                sleep(lease / 5).await;
                if quiet_time().saturating_sub(quiet) < began.elapsed() / 2 {
                    stood_still.store(true, Ordering::Relaxed);
                }
            }
        };
        let made = tokio::select! {
            made = attempt() => made,
            () = watch => unreachable!("it watches until the attempt is made"),
        };
        let Err(what) = made else { return };
        assert!(stood_still.load(Ordering::Relaxed), "{what}");
        println!("again, because the machine stood still: {what}");
    }
    panic!("the machine stood still in each of {ATTEMPTS} attempts");
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const LEASE: Duration = Duration::from_millis(500);

    async fn fails_at_first(attempts: &Cell<usize>) -> Result<(), String> {
        attempts.set(attempts.get() + 1);
        sleep(LEASE).await;
        if attempts.get() == 1 { Err("lost".to_owned()) } else { Ok(()) }
    }

    #[tokio::test]
    #[should_panic(expected = "lost")]
    async fn what_fails_on_a_quiet_machine_fails() {
        let (attempts, began) = (Cell::new(0), Instant::now());
        by(|| began.elapsed(), LEASE, || fails_at_first(&attempts)).await;
    }

    #[tokio::test]
    async fn what_fails_when_the_machine_stood_still_is_tried_again() {
        let attempts = Cell::new(0);
        by(|| Duration::ZERO, LEASE, || fails_at_first(&attempts)).await;
        assert_eq!(attempts.get(), 2);
    }
}
