//! Runs `examples/ledger` in its three arms: many real processes, a real Cassandra, and every acknowledged move counted.

#![cfg(feature = "cassandra")]

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// The lock of the arm that runs: the arms share the machine's few cores, so they run one after the other.
static ALONE: Mutex<()> = Mutex::const_new(());

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn with_locks_no_update_is_lost() {
    let report = ledger(&["--seconds=10"]).await;
    assert!(report.contains("OK: the locks kept the books right"), "{report}");
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn without_locks_updates_are_lost() {
    // Few accounts, so that the workers meet often however slow the machine is.
    let report = ledger(&["--seconds=10", "--no-lock", "--accounts=4"]).await;
    assert!(report.contains("OK: this is what happens without locks"), "{report}");
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_worker_killed_in_the_middle_of_a_transfer_breaks_nothing() {
    let seconds = ylock_testkit::short_or_long("--seconds=15", "--seconds=300");
    let report = ledger(&[seconds, "--kill", "--lease=2s"]).await;
    assert!(report.contains("OK: the locks kept the books right"), "{report}");
    assert!(!report.contains("workers killed       0"), "no worker was killed, the arm is void:\n{report}");
}

/// Runs the example, and returns its output.
async fn ledger(arguments: &[&str]) -> String {
    let _alone = ALONE.lock().await;
    let mut command = Command::new(built().await);
    command.args(arguments).kill_on_drop(true);
    let Output { status, stdout, stderr } =
        timeout(Duration::from_secs(ylock_testkit::short_or_long(120, 420)), command.output())
            .await
            .expect("the example ends in time")
            .expect("the example starts");
    let report = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{status}\n{report}");
    report
}

/// Builds the example, because a test that is run alone would find no example or an old one. The flags are those of
/// `cargo xtask test`, so that nothing is compiled twice. Returns the path of the program.
async fn built() -> PathBuf {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo.args(["build", "--quiet", "--workspace", "--all-features", "--example=ledger"]);
    let output = cargo.output().await.expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Test programs are in `deps`, examples in a folder beside it.
    let test = std::env::current_exe().expect("a test knows where it is");
    let profile = test.parent().and_then(Path::parent).expect("target/debug/deps/ledger-0123456789abcdef");
    profile.join("examples/ledger")
}
