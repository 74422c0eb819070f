//! Compares the functions with the queue that the in-memory engine runs on: random operations, no difference.
//!
//! `YLOCK_TEST_SEED=…` plays one seed again.
#![allow(clippy::disallowed_methods, reason = "tests of real servers wait in real time")]

mod functions;
mod mistakes;

#[path = "../server/mod.rs"]
mod server;

use functions::Functions;

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn random_operations_make_no_difference() {
    ylock_testkit::model::random_operations_make_no_difference(&mut Functions::connect().await).await;
}
