//! The worker: it holds no lock, and does what the owner of the partition sends.

use std::process::ExitCode;

use ylock::{Token, Ylock};

use super::{GROUP, PARTITION, Result};

#[derive(Debug)]
pub(crate) struct Worker {
    ylock: Ylock,
    /// The tokens with which work was sent that was done, in this order.
    done: Vec<Token>,
    refused: usize,
}

impl Worker {
    pub(crate) fn new(ylock: Ylock) -> Self {
        Self { ylock, done: Vec::new(), refused: 0 }
    }

    /// Does work that was sent with this token, if it is that of the present owner. Returns whether it has done it.
    pub(crate) async fn take(&mut self, token: Token) -> Result<bool> {
        let is_of_the_owner = self.ylock.verify(GROUP, PARTITION, token).await?;
        if is_of_the_owner {
            self.done.push(token);
        } else {
            self.refused += 1;
        }
        Ok(is_of_the_owner)
    }

    /// Says what was done. Good: nothing of a former owner after work of a later one, and at least one refusal for each pause.
    pub(crate) fn judge(&self, pauses: usize) -> ExitCode {
        let in_order = self.done.is_sorted();
        let good = in_order && self.refused >= pauses && !self.done.is_empty();
        let verdict = if good { "OK" } else { "FAILED" };
        println!(
            "{verdict}: {} done, {} refused; owner after owner: {in_order}",
            self.done.len(),
            self.refused
        );
        if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
