//! Two clients that share nothing but a folder.

use std::fs;
use std::path::PathBuf;
use std::thread;

use ylock::blocking::{Ylock, connect};

use super::{BOUND, SHORT, bounded};

const ROUNDS: u32 = 50;

/// A folder of a test, which goes with this.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("ylock-blocking-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn client(&self) -> Ylock {
        connect(&format!("file://{}/locks?lease=5s", self.0.display())).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn two_clients_exclude_each_other() {
    bounded(|| {
        let folder = Folder::new("count");
        let file = folder.0.join("count");
        fs::write(&file, "0").unwrap();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let lock = folder.client().lock("counters", "file");
                    for _ in 0..ROUNDS {
                        lock.write()
                            .run(|_| {
                                let seen: u32 = fs::read_to_string(&file).unwrap().parse().unwrap();
                                fs::write(&file, (seen + 1).to_string()).unwrap();
                            })
                            .unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read_to_string(&file).unwrap(), (2 * ROUNDS).to_string());
    });
}

#[test]
fn a_waiter_is_let_in_by_a_drop_and_by_the_end_of_a_client() {
    bounded(|| {
        let folder = Folder::new("drop");
        let (here, there) = (folder.client(), folder.client());
        let guard = here.lock("users", "alice").write().wait().unwrap();
        assert!(there.lock("users", "alice").write().within(SHORT).wait().unwrap().is_none());
        drop(guard);
        assert!(there.lock("users", "alice").write().within(BOUND).wait().unwrap().is_some());
        let guard = here.lock("users", "alice").write().within(BOUND).wait().unwrap();
        assert!(guard.is_some());
        drop((here, guard));
        assert!(there.lock("users", "alice").write().within(BOUND).wait().unwrap().is_some());
    });
}

#[test]
fn a_loss_is_told_when_another_client_revokes() {
    bounded(|| {
        let folder = Folder::new("loss");
        let (here, there) = (folder.client(), folder.client());
        let guard = here.lock("users", "alice").write().wait().unwrap();
        assert_eq!(there.revoke("users", "alice").unwrap(), 1);
        assert!(guard.wait_lost(BOUND).unwrap().is_some());
        there.close().unwrap();
        here.close().unwrap();
    });
}
