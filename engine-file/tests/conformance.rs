//! The file engine, asked by the suite that every engine answers.
#![cfg(target_os = "linux")]

mod folder;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use folder::Folder;
use ylock_core::Guarantees;
use ylock_core::engine::Engine;
use ylock_testkit::{Harness, Role};

#[derive(Debug)]
struct File(Folder);

#[async_trait]
impl Harness for File {
    fn name(&self) -> &str {
        "file"
    }

    fn guarantees(&self) -> Guarantees {
        ylock_testkit::ALL_GUARANTEES
    }

    async fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(self.0.client().await)
    }

    fn role(&self) -> Role {
        Role::Whole
    }

    fn lease(&self) -> Duration {
        Duration::from_millis(1200)
    }

    fn trip(&self) -> Duration {
        Duration::from_millis(100)
    }

    fn notice(&self) -> Duration {
        Duration::from_millis(100)
    }

    fn long_hold(&self) -> Duration {
        // Nothing is kept for longer than its lease.
        self.lease() * 5
    }

    async fn left_behind(&self, _group: &str) -> usize {
        // Every test has a folder of its own.
        self.0.locks().len()
    }
}

ylock_testkit::conformance_tests!(File(Folder::new()));
