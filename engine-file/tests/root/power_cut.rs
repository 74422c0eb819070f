//! A power cut: of a disk is left what had been written to it by then.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ylock_core::{Error, JobOutcome, Period, Ylock};
use ylock_engine_file::{FileEngine, FileOptions};
use ylock_testkit::ChildProcess;

use super::folder::Folder;
use super::{is_root, skip};

/// A file system in a file, mounted for as long as this.
struct Mounted(PathBuf);

impl Mounted {
    /// Returns nothing where that is not possible.
    fn mount(disk: &Path, at: PathBuf) -> Option<Self> {
        fs::create_dir(&at).unwrap();
        let mut mount = Command::new("mount");
        run(mount.args(["-t", "ext4", "-o", "loop"]).arg(disk).arg(&at)).then_some(Self(at))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run(Command::new("umount").arg(&self.0));
    }
}

fn run(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

async fn run_job(mounted: &Mounted) -> JobOutcome<()> {
    run_job_in(&mounted.0.join("ylock")).await.unwrap()
}

async fn run_job_in(folder: &Path) -> Result<JobOutcome<()>, Error> {
    let ylock = Ylock::new(FileEngine::connect(&FileOptions::new(folder)).await?);
    // So long that it has begun and does not end while this test runs.
    let period = Period::of(Duration::from_secs(365 * 24 * 3600));
    ylock.locks("jobs").once_per("report", period, |_| async {}).await
}

#[tokio::test]
async fn a_job_that_has_begun_is_not_run_again_in_its_period() {
    const TEST: &str = "power_cut::a_job_that_has_begun_is_not_run_again_in_its_period";
    if !is_root() {
        return skip(TEST, "it needs root, to mount a disk");
    }
    let folder = Folder::new();
    let (disk, copy) = (folder.beside("disk"), folder.beside("copy"));
    fs::File::create(&disk).unwrap().set_len(32 << 20).unwrap();
    let is_made = run(Command::new("mkfs.ext4").arg("-q").arg(&disk));
    let mounted = is_made.then(|| Mounted::mount(&disk, folder.beside("before"))).flatten();
    let Some(mounted) = mounted else {
        return skip(TEST, "it needs mkfs.ext4 and loop devices, for a disk in a file");
    };
    // The first file of all: that its folders are on the disk, too, is what counts.
    assert!(matches!(run_job(&mounted).await, JobOutcome::Ran(())));
    fs::copy(&disk, &copy).unwrap();
    let after = Mounted::mount(&copy, folder.beside("after")).expect("as before");
    let again = run_job(&after).await;
    assert!(matches!(again, JobOutcome::AlreadyRun(_)), "{again:?}");
}

/// The folder that it is in may be in a file system that cannot be synced, such as one that is only read.
#[tokio::test]
async fn a_job_is_run_in_a_folder_that_is_mounted_where_nothing_can_be_synced() {
    const TEST: &str = "power_cut::a_job_is_run_in_a_folder_that_is_mounted_where_nothing_can_be_synced";
    const AT: &str = "/proc/fs";
    if let Some(_told) = ChildProcess::told() {
        return ChildProcess::say(&format!("ran {:?}", run_job_in(Path::new(AT)).await));
    }
    // The mount is seen by this child alone, and goes with it.
    let mut child = Command::new("unshare");
    let script = format!("mount -t tmpfs -o mode=0700 none {AT} && exec \"$0\" \"$@\"");
    child.args(["--mount", "sh", "-c", &script]).arg(std::env::current_exe().unwrap());
    if !is_root() {
        return skip(TEST, "it needs root, to mount a file system");
    }
    let said = ChildProcess::start_by(child, TEST, "").says("ran").await;
    assert!(said.starts_with("Ok(Ran"), "{said}");
}
