//! `ylock revoke`.

use std::io::{self, IsTerminal, Write};

use serde_json::json;
use ylock::Ylock;
use ylock::engine::AcquisitionId;

use crate::arguments::RevokeArguments;
use crate::exit::{DECLINED, Failed, Result, USAGE};
use crate::name::Named;
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
    let named = &arguments.lock;
    let count = match (arguments.yes, id) {
        (true, None) => named.revoke(ylock).await?,
        (true, Some(id)) => named.revoke_from(ylock, &[id]).await?,
        (false, id) => {
            let holders = shown(ylock, named, id).await?;
            if holders.is_empty() || !is_agreed(holders.len())? {
                return Err(Failed::new(DECLINED, "nothing was revoked"));
            }
            named.revoke_from(ylock, &holders).await?
        }
    };
    if arguments.json {
        let key = &named.key;
        output::json_line(
            &json!({"kind": named.kind(), "group": key.group(), "name": key.name(), "revoked": count}),
        )?;
    } else {
        output::line(&done(named, count))?;
    }
    Ok(0)
}

/// Returns what was done.
pub(crate) fn done(named: &Named, count: usize) -> String {
    format!("{named}: revoked from {}", counted(count))
}

fn counted(count: usize) -> String {
    format!("{count} {}", if count == 1 { "holder" } else { "holders" })
}

/// Shows the lock, and returns the holders that are asked about.
async fn shown(ylock: &Ylock, named: &Named, id: Option<AcquisitionId>) -> Result<Vec<AcquisitionId>> {
    let seen = named.inspect(ylock).await?;
    output::print(named, &seen)?;
    let holders = seen.contenders.holders.iter().map(|holder| holder.id);
    Ok(holders.filter(|holder| id.is_none_or(|id| id == *holder)).collect())
}

fn is_agreed(count: usize) -> Result<bool> {
    print!("Take it away from {}? [y/N] ", counted(count));
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn read_id(text: &str) -> Result<AcquisitionId> {
    let number = u128::from_str_radix(text, 16);
    let wrong = |_| Failed::new(USAGE, format!("--id {text}: not an id as `ylock inspect` shows it"));
    number.map(AcquisitionId::from_u128).map_err(wrong)
}
