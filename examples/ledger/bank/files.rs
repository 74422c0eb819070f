//! The accounts in files: a folder for each account, and in it a file for the last write, named after its stamp.
//!
//! A write makes its file under another name and gives it the right one at last, so it is there as a whole or not at all, also if the worker is
//! killed. The file with the largest stamp is the account: a write of a former holder, however late it comes, has a smaller one and changes
//! nothing.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use ylock::url::EngineUrl;

use crate::account::{Account, Debt};

/// The accounts of one run.
#[derive(Debug)]
pub(crate) struct Files {
    folder: PathBuf,
}

impl Files {
    /// Names the folder of this run, beside the folder of the locks.
    pub(crate) fn open(url: &EngineUrl, run: &str) -> Result<Self> {
        let folder = Path::new("/").join(url.path.trim_end_matches('/')).with_extension("accounts").join(run);
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        Ok(Self { folder })
    }

    pub(crate) fn read(&self, name: &str) -> Result<Account> {
        loop {
            let Some(stamp) = self.stamps(name)?.into_iter().max() else { bail!("no account {name}") };
            match fs::read_to_string(self.file(name, stamp)) {
                Ok(text) => {
                    let account =
                        Account { stamp, ..parse(&text).with_context(|| format!("{name}: {text:?}"))? };
                    return Ok(account);
                }
                // A later write has taken its place meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(crate) fn write(&self, name: &str, account: &Account, stamp: i64) -> Result<()> {
        let new = self.folder.join(name).join(format!("new-{}", std::process::id()));
        fs::create_dir_all(self.folder.join(name))?;
        fs::write(&new, to_text(account))?;
        fs::rename(&new, self.file(name, stamp))?;
        let smaller = self.stamps(name)?.into_iter().filter(|other| *other < stamp);
        for older in smaller {
            // Another worker may remove it as well.
            let _ = fs::remove_file(self.file(name, older));
        }
        Ok(())
    }

    pub(crate) fn settle(&self, name: &str, stamp: i64) -> Result<()> {
        let account = self.read(name)?;
        self.write(name, &Account { owes: None, ..account }, stamp)
    }

    pub(crate) fn clear(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }

    /// Returns the stamps of the writes that are there.
    fn stamps(&self, name: &str) -> Result<Vec<i64>> {
        let entries = match fs::read_dir(self.folder.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Ok(names.filter_map(|name| name.strip_prefix("at-")?.parse().ok()).collect())
    }

    fn file(&self, name: &str, stamp: i64) -> PathBuf {
        self.folder.join(name).join(format!("at-{stamp}"))
    }
}

/// Three lines: the balance, the moves by worker, and what is owed.
fn to_text(account: &Account) -> String {
    let moves: Vec<_> = account.moves.iter().map(|(worker, count)| format!("{worker}:{count}")).collect();
    let owes = account
        .owes
        .as_ref()
        .map(|Debt { worker, to, amount, count }| format!("{worker} {to} {amount} {count}"));
    format!("{}\n{}\n{}\n", account.balance, moves.join(" "), owes.unwrap_or_default())
}

fn parse(text: &str) -> Option<Account> {
    let mut lines = text.lines();
    let balance = lines.next()?.parse().ok()?;
    let count = |word: &str| {
        let (worker, count) = word.split_once(':')?;
        Some((worker.parse().ok()?, count.parse().ok()?))
    };
    let moves = lines.next()?.split_whitespace().map(count).collect::<Option<_>>()?;
    let owes = match lines.next()?.split(' ').collect::<Vec<_>>()[..] {
        [""] => None,
        [worker, to, amount, count] => Some(Debt {
            worker: worker.parse().ok()?,
            to: to.to_owned(),
            amount: amount.parse().ok()?,
            count: count.parse().ok()?,
        }),
        _ => return None,
    };
    Some(Account { balance, moves, owes, stamp: 0 })
}
