//! Runs `examples/ledger` in its three arms: many real processes, and every acknowledged move counted. And `examples/transfer` in its two: every
//! reading of all accounts added up.

#![cfg(any(feature = "cassandra", all(feature = "file", target_os = "linux")))]

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::Mutex;

/// The lock of the arm that runs: the arms share the machine's few cores, so they run one after the other.
static ALONE: Mutex<()> = Mutex::const_new(());

/// How long an example may print nothing.
const PATIENCE: Duration = Duration::from_secs(60);

/// With locks nothing is lost.
fn is_right(report: &str) {
    assert!(report.contains("OK: the locks kept the books right"), "{report}");
}

/// Without locks much is lost.
fn is_wrong(report: &str) {
    assert!(report.contains("OK: this is what happens without locks"), "{report}");
}

fn has_killed(report: &str) {
    assert!(!report.contains("workers killed       0"), "no worker was killed, the arm is void:\n{report}");
}

#[cfg(feature = "cassandra")]
mod on_cassandra {
    use super::{has_killed, is_right, is_wrong, ledger};

    fn store() -> String {
        let hosts = std::env::var("YLOCK_TEST_CASSANDRA").expect("the variable names the nodes");
        format!("--store=cassandra://{hosts}/ylock_ledger?schema=create")
    }

    #[tokio::test]
    #[ignore = "needs cassandra: run `cargo xtask test`"]
    async fn with_locks_no_update_is_lost() {
        is_right(&ledger(&[&store(), "--seconds=10"]).await);
    }

    #[tokio::test]
    #[ignore = "needs cassandra: run `cargo xtask test`"]
    async fn without_locks_updates_are_lost() {
        // Few accounts, so that the workers meet often however slow the machine is.
        is_wrong(&ledger(&[&store(), "--seconds=10", "--no-lock", "--accounts=4"]).await);
    }

    #[tokio::test]
    #[ignore = "needs cassandra: run `cargo xtask test`"]
    async fn a_worker_killed_in_the_middle_of_a_transfer_breaks_nothing() {
        let seconds = ylock_testkit::short_or_long("--seconds=15", "--seconds=300");
        let report = ledger(&[&store(), seconds, "--kill", "--lease=2s"]).await;
        is_right(&report);
        has_killed(&report);
    }
}

#[cfg(all(feature = "file", target_os = "linux"))]
mod in_files {
    use super::{has_killed, is_right, is_wrong, ledger};

    #[tokio::test]
    async fn with_locks_no_update_is_lost() {
        is_right(&ledger(&["--seconds=3"]).await);
    }

    #[tokio::test]
    async fn without_locks_updates_are_lost() {
        is_wrong(&ledger(&["--seconds=3", "--no-lock", "--accounts=4"]).await);
    }

    #[tokio::test]
    async fn a_worker_killed_in_the_middle_of_a_transfer_breaks_nothing() {
        let seconds = ylock_testkit::short_or_long("--seconds=6", "--seconds=300");
        let report = ledger(&[seconds, "--kill", "--accounts=16"]).await;
        is_right(&report);
        has_killed(&report);
    }
}

#[cfg(all(feature = "file", target_os = "linux"))]
mod transfer {
    use super::example;

    #[tokio::test]
    async fn sets_of_locks_keep_the_books_right_at_every_moment() {
        let report = example("transfer", &["--seconds=3"]).await;
        assert!(report.contains("OK: the sets of locks kept the books right"), "{report}");
        assert!(!report.contains("readings of all      0,"), "no worker has read all accounts:\n{report}");
    }

    #[tokio::test]
    async fn without_locks_they_are_wrong() {
        let report = example("transfer", &["--seconds=3", "--no-lock"]).await;
        assert!(report.contains("OK: this is what happens without locks"), "{report}");
    }
}

/// Runs the ledger, and returns its output.
async fn ledger(arguments: &[&str]) -> String {
    example("ledger", arguments).await
}

/// Runs an example, and returns its output.
async fn example(name: &str, arguments: &[&str]) -> String {
    let _alone = ALONE.lock().await;
    let mut command = Command::new(built(name).await);
    command.args(arguments).kill_on_drop(true);
    // As long as it prints something, or ends.
    let ends = ylock_testkit::while_it_goes_on(PATIENCE, "the example", command.output());
    let Output { status, stdout, stderr } = ends.await.expect("the example starts");
    let report = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{status}\n{report}");
    report
}

/// Builds the example, because a test that is run alone would find no example or an old one. The flags are those of
/// `cargo xtask test`, so that nothing is compiled twice. Returns the path of the program.
async fn built(name: &str) -> PathBuf {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    // What the test has compiled already.
    let package = format!("--package=ylock-{name}");
    let what: &[_] =
        if cfg!(feature = "cassandra") { &["--workspace", "--all-features"] } else { &[&*package] };
    cargo.args(["build", "--quiet"]).arg(format!("--example={name}")).args(what);
    let output = cargo.output().await.expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Test programs are in `deps`, examples in a folder beside it.
    let test = std::env::current_exe().expect("a test knows where it is");
    let profile = test.parent().and_then(Path::parent).expect("target/debug/deps/ledger-0123456789abcdef");
    profile.join("examples").join(name)
}
