//! Runs `examples/scheduler`: three real processes that are killed in turn, and a journal of who led and which periods were run.

#![cfg(all(feature = "file", target_os = "linux"))]

use std::path::Path;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

#[tokio::test]
async fn replicas_that_are_killed_lead_one_by_one_and_run_each_period_once() {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    // What the test has compiled already.
    let what: &[_] = if cfg!(feature = "cassandra") {
        &["--workspace", "--all-features"]
    } else {
        &["--package=ylock", "--features=file"]
    };
    let built = cargo.args(["build", "--quiet", "--example=scheduler"]).args(what).output().await.unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    // Test programs are in `deps`, examples in a folder beside it.
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let mut example = Command::new(profile.join("examples/scheduler"));
    example.arg(ylock_testkit::short_or_long("8", "120")).kill_on_drop(true);
    let output = timeout(Duration::from_secs(240), example.output()).await.expect("it ends").unwrap();
    let report =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && report.contains("OK: "), "{report}");
    assert!(!report.contains("0 replicas killed"), "no replica was killed, the run is void:\n{report}");
}
