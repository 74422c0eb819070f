//! Measures the time that one request takes when nothing else happens.

use std::time::Duration;

use anyhow::Result;
use ylock_core::Key;
use ylock_core::environment::Environment;
use ylock_engine_cassandra::algorithm::store::Store;

use crate::figures::Quantiles;

/// The pause between two requests: a store that was asked without a break would be warmer than contenders find it.
const PAUSE: Duration = Duration::from_millis(1);

/// Reads an empty partition again and again, one time after the other.
pub(crate) async fn round_trip(
    store: &dyn Store,
    environment: &dyn Environment,
    rounds: u32,
) -> Result<Quantiles> {
    let key = Key::new("round-trip", "nobody")?;
    let mut times = Vec::new();
    for round in 0..rounds {
        environment.sleep(PAUSE).await;
        let began = environment.now();
        store.read(&key).await?;
        // The first half warms the driver and the server.
        if round >= rounds / 2 {
            times.push(environment.now().since(began));
        }
    }
    Quantiles::of(times).ok_or_else(|| anyhow::anyhow!("no rounds"))
}
