//! Signals to `ylock run` while the store is away: it ends, and says what it leaves behind.

use std::net::TcpListener;
use std::path::Path;

use rustix::process::Signal;

use super::away::Link;
use super::group;
use super::support::{Ended, Place, Running, eventually};

/// The forms of the command, each with what it leaves behind.
const FORMS: [(&[&str], &str); 4] = [
    (&[], "the lock may stay held"),
    (&["--read", "--wait", "1h"], "the lock may stay held"),
    (&["--permits", "2"], "the permit may stay held"),
    (&["--once-per", "360days"], "the lock may stay held"),
];

/// A command whose store goes away while it runs.
struct Scene {
    place: Place,
    running: Running,
    link: Link,
}

impl Scene {
    /// Starts `ylock run` in this form.
    fn set(server: &str, form: &[&str], script: &str) -> Self {
        let link = Link::before(server);
        let place = Place::on(&format!("redis://{}/0?lease=1h", link.address()));
        let lock = format!("{}/alice", group("signals"));
        let running = place.start(&[&["run"], form, &[&lock, "--", "sh", "-c", script]].concat());
        place.wait_for("held");
        Self { place, running, link }
    }

    /// The same, with a command that has ended behind the store, with exit code 7.
    fn after_its_command(server: &str, form: &[&str]) -> Self {
        let script = "echo $$ > held; while [ -d $PLACE ] && [ ! -e go ]; do sleep 0.02; done; exit 7";
        let scene = Self::set(server, form, script);
        scene.link.silence();
        scene.place.make("go");
        let process = format!("/proc/{}", scene.place.read("held").trim());
        eventually("it was waited for", || !Path::new(&process).exists());
        scene
    }

    fn waits_for(&mut self, what: &str) {
        let mut said = String::new();
        eventually(what, || {
            said.push_str(&self.running.complained());
            said.contains(what)
        });
    }
}

fn leaves(ended: &Ended, what: &str) {
    let said = format!("{what} until its lease of 1h is over, at ");
    assert!(ended.stderr.contains(&said) && ended.stderr.ends_with(" UTC\n"), "{ended:?}");
}

pub(crate) fn a_second_signal_ends_the_release(server: &str) {
    for (form, left) in FORMS {
        let mut scene = Scene::after_its_command(server, form);
        scene.running.send(Signal::INT);
        scene.waits_for("another signal");
        scene.running.send(Signal::TERM);
        let ended = scene.running.ended();
        assert_eq!(ended.code, Some(128 + 15), "{form:?}: {ended:?}");
        leaves(&ended, left);
    }
}

pub(crate) fn a_first_signal_bounds_the_release(server: &str) {
    for (form, left) in FORMS {
        let scene = Scene::after_its_command(server, form);
        scene.running.send(Signal::TERM);
        let ended = scene.running.ended();
        assert_eq!(ended.code, Some(7), "{form:?}: {ended:?}");
        leaves(&ended, left);
    }
}

/// The store refuses connections, where it is silent in the others.
pub(crate) fn a_second_signal_ends_a_command_that_goes_on_while_the_store_is_away(server: &str) {
    let script = "trap 'echo >> asked' TERM; echo here > held; while [ -d $PLACE ]; do sleep 0.02; done";
    for (form, left) in FORMS {
        let scene = Scene::set(server, form, script);
        scene.link.cut();
        scene.running.send(Signal::TERM);
        scene.place.wait_for("asked");
        scene.running.send(Signal::TERM);
        let ended = scene.running.ended();
        assert_eq!(ended.code, Some(128 + 15), "{form:?}: {ended:?}");
        leaves(&ended, left);
    }
}

pub(crate) fn signals_end_a_wait_while_the_store_is_away(server: &str) {
    for (form, _) in FORMS {
        let form = if form.contains(&"--permits") { &["--permits", "1"][..] } else { form };
        // A run that another client is at is not waited for.
        if form.contains(&"--once-per") {
            continue;
        }
        let holder = Place::on(&format!("redis://{server}/0?lease=6s"));
        let lock = &format!("{}/alice", group("signals"));
        // A reader waits for a writer.
        let held_as: &[&str] = if form.contains(&"--permits") { form } else { &[] };
        let script = holder.until("held", "go");
        let holds = holder.start(&[&["run"], held_as, &[lock, "--", "sh", "-c", &script]].concat());
        holder.wait_for("held");
        let link = Link::before(server);
        let place = Place::on(&format!("redis://{}/0?lease=1h", link.address()));
        let waits = place.start(&[&["run"], form, &[lock, "--", "touch", "never"]].concat());
        let shown = if form.contains(&"--permits") { format!("semaphore:{lock}") } else { lock.clone() };
        eventually("it waits", || holder.output(&["inspect", &shown]).stdout.contains("1. waits"));
        link.silence();
        // Two of the same kind would be one, until the first is read.
        waits.send(Signal::INT);
        waits.send(Signal::TERM);
        let ended = waits.ended();
        assert_eq!(ended.code, Some(128 + 15), "{form:?}: {ended:?}");
        leaves(&ended, "its place in the queue may stay");
        holder.make("go");
        assert_eq!(holds.ended().code, Some(0));
        assert!(!place.has("never"));
    }
}

/// It accepts the connection, and never answers.
pub(crate) fn a_signal_ends_the_wait_for_a_connection() {
    for form in [&[][..], &["--no-wait"], &["--wait", "1day"], &["--permits", "2"]] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let place = Place::on(&format!("redis://127.0.0.1:{port}/0?connect_timeout=1h"));
        let waits = place.start(&[&["run"], form, &["users/alice", "--", "touch", "never"]].concat());
        let connection = listener.accept().unwrap();
        waits.send(Signal::TERM);
        let ended = waits.ended();
        assert!(ended.code == Some(128 + 15) && ended.stderr.is_empty(), "{form:?}: {ended:?}");
        drop(connection);
    }
}
