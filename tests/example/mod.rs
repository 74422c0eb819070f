//! Runs an example of this crate as a program of its own.

use std::path::Path;
use std::time::Duration;

use tokio::process::Command;

/// Builds the example and runs it. It must end well within `bound`. Returns what it has printed.
pub(crate) async fn run(example: &str, argument: &str, bound: Duration) -> String {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    // What the test has compiled already.
    let what: &[_] = if cfg!(feature = "cassandra") {
        &["--workspace", "--all-features"]
    } else {
        &["--package=ylock", "--features=file"]
    };
    let built = cargo.args(["build", "--quiet", "--example", example]).args(what).output().await.unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    // Test programs are in `deps`, examples in a folder beside it.
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let mut program = Command::new(profile.join("examples").join(example));
    program.arg(argument).kill_on_drop(true);
    let output = ylock_testkit::within(bound, "it ends", program.output()).await.unwrap();
    let report =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && report.contains("OK: "), "{report}");
    report
}
