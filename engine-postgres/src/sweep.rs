//! What a client does by itself: it removes the rows of locks that no client has used for a minute, and looks at what the server promises.

use std::sync::{Arc, Weak};
use std::time::Duration;

use ylock_core::Result;
use ylock_core::environment::BoxFuture;

use crate::client::Client;
use crate::driver::{Call, Function, Value};

/// How often a client asks for both. The server sweeps for one client at a time, and not more often either.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
/// The most locks that are removed at once.
const MOST: i32 = 1_000;

/// Sees to it that rows are swept for as long as there is this client.
pub(crate) fn start(client: &Arc<Client>) {
    if client.sweeping.is_running() {
        return;
    }
    let weak = Arc::downgrade(client);
    client.sweeping.start(&client.environment, move || sweeping(Weak::clone(&weak)));
}

fn sweeping(client: Weak<Client>) -> BoxFuture {
    Box::pin(async move {
        while let Some(environment) = client.upgrade().map(|client| Arc::clone(&client.environment)) {
            environment.sleep(environment.jitter(SWEEP_EVERY)).await;
            let Some(client) = client.upgrade() else { return };
            if let Err(error) = client.store.look_again().await {
                tracing::debug!(error = format!("{error:#}"), "what the server promises was not looked at");
            }
            if let Err(error) = sweep(&client).await {
                tracing::debug!(error = format!("{error:#}"), "rows that are not used any more stay for now");
            }
        }
    })
}

async fn sweep(client: &Client) -> Result<()> {
    loop {
        let answer = client.store.call(Call::of(Function::Sweep).with(Value::Small(MOST))).await?;
        if answer.value::<i32>()? < MOST {
            return Ok(());
        }
    }
}
