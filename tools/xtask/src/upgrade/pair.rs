//! Two versions at the same locks.

use std::{
    process::Output,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use serde_json::Value;

use super::{
    holder::Holder,
    program::{NOT_FREE, Program, REFUSED, Taken},
};
use crate::interrupt;

const WRITE: Taken<'static> = &["shop/alice"];
const READ: Taken<'static> = &["--read", "shop/bob"];
const WRITE_BESIDE: Taken<'static> = &["shop/bob"];
const PERMIT: Taken<'static> = &["--permits", "2", "shop/two"];

/// For so long a waiter may take to be seen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two versions, and the place in a store that they share. The first one is there when the second one comes.
pub(super) struct Pair<'a> {
    pub(super) store: String,
    pub(super) first: &'a Program,
    pub(super) second: &'a Program,
}

/// What was found.
pub(super) enum Found {
    /// Each respects the other.
    SideBySide,
    /// The second one does nothing, for this reason.
    Refused(String),
}

impl Pair<'_> {
    pub(super) fn look(&self) -> Result<Found> {
        let held = self.takes(self.first, WRITE)?.inside()?;
        let tried = self.second.tries(&self.store, WRITE)?;
        if tried.status.code() == Some(REFUSED) {
            return self.is_refused_everything(&tried);
        }
        code(&tried, NOT_FREE, "a writer beside a writer")?;
        self.is_seen_and_waited_for(held)?;
        self.readers_share()?;
        self.permits_are_counted()?;
        Ok(Found::SideBySide)
    }

    /// Nothing gets in, not even where there would be room, and nothing is shown.
    fn is_refused_everything(&self, tried: &Output) -> Result<Found> {
        let why = String::from_utf8_lossy(&tried.stderr).trim().to_owned();
        ensure!(why.contains("version"), "refused, but not by name: {why}");
        for taken in [WRITE, READ, WRITE_BESIDE, PERMIT, &["shop/free"]] {
            code(
                &self.second.tries(&self.store, taken)?,
                REFUSED,
                &format!("beside another version: {taken:?}"),
            )?;
        }
        for words in [&["inspect", "shop/alice"][..], &["list", "shop"]] {
            let said = self.second.says(&self.store, words)?;
            ensure!(!said.status.success(), "{words:?} shows what is of another version");
        }
        Ok(Found::Refused(why))
    }

    fn is_seen_and_waited_for(&self, held: Holder) -> Result<()> {
        ensure!(self.see("holders", 1)?, "one of the two does not see the holder");
        let listed = self.second.says(&self.store, &["list", "shop", "--json"])?;
        ensure!(
            String::from_utf8_lossy(&listed.stdout).contains("\"alice\""),
            "list of the second: {listed:?}"
        );
        let mut waits = self.takes(self.second, WRITE)?;
        let began = Instant::now();
        while !self.see("queue", 1)? {
            ensure!(!waits.has_ended()? && began.elapsed() < PATIENCE, "no waiter is seen");
            interrupt::pause(Duration::from_millis(20))?;
        }
        ensure!(self.see("holders", 1)?, "a waiter got in beside a holder");
        held.leave()?;
        let waited = waits.inside()?;
        code(&self.first.tries(&self.store, WRITE)?, NOT_FREE, "a writer beside one that waited")?;
        waited.leave()?;
        code(&self.first.tries(&self.store, WRITE)?, 0, "a lock that was given back")
    }

    /// Returns whether each of the two sees so many holders, or waiters, at the lock of the writers.
    fn see(&self, of: &str, count: usize) -> Result<bool> {
        let sees = |program: &Program| -> Result<bool> {
            let said = program.says(&self.store, &["inspect", "shop/alice", "--json"])?;
            code(&said, 0, "inspect")?;
            let seen: Value = serde_json::from_slice(&said.stdout)?;
            Ok(seen[of].as_array().map_or(0, Vec::len) == count)
        };
        Ok(sees(self.first)? && sees(self.second)?)
    }

    fn readers_share(&self) -> Result<()> {
        let first = self.takes(self.first, READ)?.inside()?;
        let second = self.takes(self.second, READ)?.inside()?;
        for program in [self.first, self.second] {
            code(&program.tries(&self.store, WRITE_BESIDE)?, NOT_FREE, "a writer beside readers")?;
        }
        first.leave()?;
        code(&self.first.tries(&self.store, WRITE_BESIDE)?, NOT_FREE, "a writer beside the other reader")?;
        second.leave()?;
        code(&self.second.tries(&self.store, WRITE_BESIDE)?, 0, "a lock without readers")
    }

    fn permits_are_counted(&self) -> Result<()> {
        let first = self.takes(self.first, PERMIT)?.inside()?;
        let second = self.takes(self.second, PERMIT)?.inside()?;
        for program in [self.first, self.second] {
            code(&program.tries(&self.store, PERMIT)?, NOT_FREE, "a third of two permits")?;
        }
        first.leave()?;
        code(&self.second.tries(&self.store, PERMIT)?, 0, "a permit that was given back")?;
        second.leave()
    }

    fn takes(&self, program: &Program, taken: Taken<'_>) -> Result<Holder> {
        program.takes(&self.store, taken)
    }
}

/// Fails unless the command has ended with this exit code.
fn code(said: &Output, meant: i32, what: &str) -> Result<()> {
    if said.status.code() == Some(meant) {
        return Ok(());
    }
    bail!("{what}: {} and not {meant}: {}", said.status, String::from_utf8_lossy(&said.stderr).trim())
}
