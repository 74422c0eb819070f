//! Clearing away what dead clients have left: contenders of locks for which none asks any more, and their own pipes. And what is over: runs of jobs.

use ylock_core::{ErrorKind, Result};

use crate::client::Client;
use crate::client_id::ClientId;
use crate::driver::{FileName, IfMissing, Shelf};
use crate::runs;

/// After so many files other tasks have their turn.
const AT_ONCE: usize = 32;

/// Clears once.
pub(crate) async fn sweep(client: &Client) {
    client.folder.touch();
    client.pipe.touch();
    if let Err(error) = try_to(client).await {
        tracing::debug!(%error, "what dead clients have left stays for now");
    }
    if let Err(error) = runs::sweep(client).await {
        tracing::debug!(%error, "runs that are not kept any more stay for now");
    }
}

async fn try_to(client: &Client) -> Result<()> {
    let dead = client.folder.dead_clients()?;
    if dead.is_empty() {
        return Ok(());
    }
    let mut is_whole = true;
    for (count, file) in client.folder.files(Shelf::Locks)?.into_iter().enumerate() {
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
            tracing::debug!(%error, %key, "the file of a lock that is not in use stays for now");
            // No other client knows that it is to be removed: again, when those have their turn that are left by then.
            client.idle.keep(&key, client.environment.now());
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

#[cfg(test)]
mod tests {
    use ylock_core::Key;
    use ylock_core::environment::SystemEnvironment;

    use super::*;
    use crate::options::FileOptions;

    #[tokio::test]
    async fn the_file_of_an_idle_lock_that_cannot_be_removed_is_removed_later() {
        let path = std::env::temp_dir().join(format!("ylock-idle-{}", std::process::id()));
        let client = Client::open(&FileOptions::new(&path), SystemEnvironment::shared()).await.unwrap();
        let key = Key::new("users", "alice").unwrap();
        client.change(&key, IfMissing::Create, |_, _| Ok(())).unwrap().expect("none has it locked");
        let (file, aside) = (path.join("locks/users=alice"), path.join("aside"));
        // In its place is what cannot be opened.
        std::fs::rename(&file, &aside).unwrap();
        std::fs::create_dir(&file).unwrap();
        remove_idle(&client, true).await;
        std::fs::remove_dir(&file).unwrap();
        std::fs::rename(&aside, &file).unwrap();
        assert_eq!(client.idle.len(), 1);
        remove_idle(&client, true).await;
        assert!(!file.exists() && client.idle.len() == 0);
        std::fs::remove_dir_all(path).unwrap();
    }
}
