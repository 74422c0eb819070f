//! Clearing away what dead clients have left: contenders of locks for which none asks any more, and their own pipes.

use ylock_core::{ErrorKind, Result};

use crate::client::Client;
use crate::client_id::ClientId;
use crate::driver::{FileName, IfMissing};

/// After so many files other tasks have their turn.
const AT_ONCE: usize = 32;

/// Clears once.
pub(crate) async fn sweep(client: &Client) {
    if let Err(error) = try_to(client).await {
        tracing::debug!(%error, "what dead clients have left stays for now");
    }
}

async fn try_to(client: &Client) -> Result<()> {
    let dead = client.folder.dead_clients()?;
    if dead.is_empty() {
        return Ok(());
    }
    let mut is_whole = true;
    for (count, file) in client.folder.key_files()?.into_iter().enumerate() {
        if count % AT_ONCE == 0 {
            tokio::task::yield_now().await;
        }
        is_whole &= clear(client, file, &dead);
    }
    if is_whole {
        // The last of all: as long as the pipe is there, each client can tell that its owner has ended.
        dead.into_iter().try_for_each(|client_id| client.folder.remove_pipe(client_id))?;
    }
    Ok(())
}

/// Removes the files of keys that this client has left, and that none has used since; all of them, if `all` is true.
pub(crate) async fn remove_idle(client: &Client, all: bool) {
    for (count, key) in client.idle.over(client.environment.now(), all).into_iter().enumerate() {
        if count % AT_ONCE == AT_ONCE - 1 {
            tokio::task::yield_now().await;
        }
        let removed = client.folder.lock(&key, IfMissing::Leave).and_then(|locked| {
            let Some(locked) = locked else { return Ok(()) };
            client.change_locked(locked, None, |_, _| Ok(()))
        });
        if let Err(error) = removed {
            tracing::debug!(%error, %key, "the file of a lock that is not in use stays");
        }
    }
}

/// Removes what these clients have left at one key. Returns whether nothing of them is there any more.
fn clear(client: &Client, file: FileName, dead: &[ClientId]) -> bool {
    let cleared = client.folder.lock_found(file).and_then(|locked| {
        let Some(locked) = locked else { return Ok(false) };
        client.change_locked(locked, None, |state, _| {
            state.queue.remove_those(|contender| dead.contains(&contender.kept));
            Ok(true)
        })
    });
    // In a file that is damaged nothing is known of any client, and it stays as it is.
    cleared.unwrap_or_else(|error| error.kind() == ErrorKind::Unexpected)
}
