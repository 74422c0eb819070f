//! A store that is away, goes away, and comes back.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::group;
use super::support::{Place, eventually};
use super::terminal::Terminal;

/// Between the command and one server: can be cut, or carry nothing.
pub(crate) struct Link {
    port: u16,
    line: Arc<Mutex<Line>>,
}

#[derive(Default)]
struct Line {
    is_cut: bool,
    /// True while what is sent does not arrive.
    is_silent: Arc<AtomicBool>,
    /// Both sides of each connection.
    connected: Vec<TcpStream>,
}

impl Link {
    pub(crate) fn before(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = Self { port: listener.local_addr().unwrap().port(), line: Arc::default() };
        let (line, server) = (link.line.clone(), server.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().map_while(io::Result::ok) {
                let mut line = line.lock().unwrap();
                // One that is dropped here is closed.
                let Ok(server) = TcpStream::connect(&server) else { continue };
                if line.is_cut {
                    continue;
                }
                carry(&client, &server, &line.is_silent);
                carry(&server, &client, &line.is_silent);
                line.connected.extend([client, server]);
            }
        });
        link
    }

    /// Returns the address that the command connects to.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Closes all connections, and each new one at once.
    pub(crate) fn cut(&self) {
        let mut line = self.line.lock().unwrap();
        line.is_cut = true;
        for side in line.connected.drain(..) {
            // It may be closed.
            let _ = side.shutdown(Shutdown::Both);
        }
    }

    /// Leaves all connections open, and new ones come about; what is sent from now on is lost.
    pub(crate) fn silence(&self) {
        self.line.lock().unwrap().is_silent.store(true, Ordering::SeqCst);
    }

    pub(crate) fn mend(&self) {
        self.line.lock().unwrap().is_cut = false;
    }
}

fn carry(from: &TcpStream, to: &TcpStream, is_silent: &Arc<AtomicBool>) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    let is_silent = Arc::clone(is_silent);
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if !is_silent.load(Ordering::SeqCst) && to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// `url` names a server that is not there.
pub(crate) fn a_store_that_is_away_is_told_from_a_lock_that_is_held(url: &str) {
    let place = Place::on(url);
    let at_once = place.output(&["run", "--no-wait", "users/alice", "--", "touch", "never"]);
    assert!(at_once.code == Some(69) && !at_once.stderr.contains("trying again"), "{at_once:?}");
    let begun = Instant::now();
    let waited = place.output(&["run", "--wait", "1500ms", "users/alice", "--", "touch", "never"]);
    assert!(waited.code == Some(69) && waited.stderr.contains("trying again"), "{waited:?}");
    assert!(begun.elapsed() >= Duration::from_millis(1400), "{:?}", begun.elapsed());
    for looks in [&["list"][..], &["inspect", "users/alice"], &["watch", "users/alice"], &["doctor"]] {
        assert_eq!(place.output(looks).code, Some(69), "{looks:?}");
    }
}

/// `url` leads over the link.
pub(crate) fn a_command_is_stopped_when_the_store_goes_away_and_the_next_one_waits_until_it_is_back(
    link: &Link,
    url: &str,
) {
    let (place, group) = (Place::on(url), group("away"));
    let lock = &format!("{group}/alice");
    let script =
        "trap 'echo > asked; exit 1' TERM; echo here > held; while [ -d $PLACE ]; do sleep 0.02; done";
    let holds = place.start(&["run", lock, "--", "sh", "-c", script]);
    place.wait_for("held");
    let mut top = Terminal::start(&place, &["top", "--every", "100ms", &group]);
    top.wait_for("1 lock");
    link.cut();
    let ended = holds.ended();
    assert!(ended.code == Some(73) && place.has("asked"), "{ended:?}");
    top.wait_for("away");

    let mut next = place.start(&["run", lock, "--", "sh", "-c", "exit 7"]);
    let mut said = String::new();
    eventually("it tries again", || {
        said.push_str(&next.complained());
        said.contains("trying again")
    });
    link.mend();
    assert_eq!(next.ended().code, Some(7));
    top.wait_until("it is back", |text| text.contains("0 locks") && !text.contains("away"));
    top.press("q");
    assert_eq!(top.ended().code, Some(0));
}
