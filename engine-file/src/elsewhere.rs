//! The engine on systems that it is not made for yet.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ylock_core::engine::{
    AcquisitionId, Engine, Grant, Holding, Inspection, KeyPage, Meter, Release, Renewal, Request, Ticket,
};
use ylock_core::environment::Environment;
use ylock_core::{Error, ErrorKind, Guarantees, JobRun, Key, Options, Result};

use crate::options::FileOptions;

/// The engine for locks among the processes of one host. There is none on this system yet: only on Linux.
#[derive(Debug)]
pub enum FileEngine {}

impl FileEngine {
    /// Fails: `file://` is not there yet on this system.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config), always.
    pub async fn connect(_: &FileOptions) -> Result<Self> {
        let message = format!("file:// is not there yet on {}: only on Linux", std::env::consts::OS);
        Err(Error::new(ErrorKind::Config, message).with_engine(crate::NAME))
    }
}

#[async_trait]
impl Engine for FileEngine {
    fn name(&self) -> &'static str {
        match *self {}
    }

    fn guarantees(&self) -> Guarantees {
        match *self {}
    }

    fn environment(&self) -> Arc<dyn Environment> {
        match *self {}
    }

    fn meter(&self) -> &Meter {
        match *self {}
    }

    fn in_memory(&self) -> Vec<(&'static str, usize)> {
        match *self {}
    }

    fn check(&self, _: &Options) -> Result<()> {
        match *self {}
    }

    fn ticket(&self) -> Ticket {
        match *self {}
    }

    async fn acquire(&self, _: &Request) -> Result<Option<Grant>> {
        match *self {}
    }

    async fn renew(&self, _: &[Holding]) -> Vec<Result<Renewal>> {
        match *self {}
    }

    async fn release(&self, _: &Key, _: AcquisitionId, _: Option<&Request>) -> Result<Release> {
        match *self {}
    }

    async fn inspect(&self, _: &Key) -> Result<Inspection> {
        match *self {}
    }

    async fn keys(&self, _: Option<&str>, _: Option<&str>) -> Result<KeyPage> {
        match *self {}
    }

    async fn revoke(&self, _: &Key, _: AcquisitionId) -> Result<bool> {
        match *self {}
    }

    async fn last_run(&self, _: &Key) -> Result<Option<JobRun>> {
        match *self {}
    }

    async fn store_run(&self, _: &Key, _: &JobRun, _: Duration) -> Result<bool> {
        match *self {}
    }

    async fn close(&self) -> Result<()> {
        match *self {}
    }
}
