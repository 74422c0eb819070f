//! `ylock revoke`.

use std::io::{self, IsTerminal, Write};

use serde_json::json;
use ylock::Ylock;
use ylock::engine::AcquisitionId;

use crate::arguments::RevokeArguments;
use crate::exit::{Failed, NOT_FREE, Result, USAGE};
use crate::output;
use crate::store::Store;

pub(crate) async fn revoke(store: &Store, arguments: RevokeArguments) -> Result<u8> {
    let id = arguments.id.as_deref().map(read_id).transpose()?;
    if !arguments.yes && !io::stdin().is_terminal() {
        return Err(Failed::new(USAGE, "there is no terminal to ask: say --yes"));
    }
    let ylock = store.connect().await?;
    let done = revoke_from(&ylock, &arguments, id).await;
    ylock.close().await;
    done
}

async fn revoke_from(ylock: &Ylock, arguments: &RevokeArguments, id: Option<AcquisitionId>) -> Result<u8> {
    let key = &arguments.lock.0;
    if !arguments.yes && !is_agreed(ylock, arguments).await? {
        return Err(Failed::new(NOT_FREE, "nothing was revoked"));
    }
    let count = match id {
        Some(id) => usize::from(ylock.revoke_one(key.group(), key.name(), id).await?),
        None => ylock.revoke(key.group(), key.name()).await?,
    };
    if arguments.json {
        output::line(&json!({"group": key.group(), "name": key.name(), "revoked": count}).to_string())?;
    } else {
        output::line(&format!(
            "{key}: revoked from {count} {}",
            if count == 1 { "holder" } else { "holders" }
        ))?;
    }
    Ok(0)
}

/// Shows what is about to happen, and asks.
async fn is_agreed(ylock: &Ylock, arguments: &RevokeArguments) -> Result<bool> {
    let key = &arguments.lock.0;
    let seen = ylock.inspect(key.group(), key.name()).await?;
    output::lines(key, &seen).iter().try_for_each(|line| output::line(line))?;
    print!("Take it away from {}? [y/N] ", arguments.id.as_deref().unwrap_or("all holders"));
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn read_id(text: &str) -> Result<AcquisitionId> {
    let number = u128::from_str_radix(text, 16);
    let wrong = |_| Failed::new(USAGE, format!("--id {text}: not an id as `ylock inspect` shows it"));
    number.map(AcquisitionId::from_u128).map_err(wrong)
}
