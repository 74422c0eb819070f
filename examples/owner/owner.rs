//! A process that owns the partition as long as it has the lock.

use std::time::Duration;

use super::{GROUP, PARTITION, Result};

/// Owns the partition again and again, and sends work meanwhile, until it is killed.
pub(crate) async fn run(url: &str) -> Result<()> {
    let ylock = ylock::connect(url).await?;
    let partitions = ylock.locks(GROUP);
    loop {
        let owned = partitions.write(PARTITION).await?;
        let token = owned.token().ok_or("this engine gives no tokens: choose another one")?.get();
        while owned.is_valid() {
            // Here the process may be paused, for as long as the parent likes: no check beforehand can exclude that.
            println!("about to send");
            std::io::stdin().read_line(&mut String::new())?;
            println!("work {token}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
