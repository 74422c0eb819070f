//! A store that is well.

use rustix::process::Signal;

use super::support::{Place, Running, eventually};
use super::terminal::Terminal;
use super::{group, json};

/// Holds until the file `go` is made, and says that it was asked to end.
const HOLDS: &str = "trap 'echo > asked; exit 1' TERM; echo ${YLOCK_TOKEN:-none} > held; \
                     while [ -d $PLACE ] && [ ! -e go ]; do sleep 0.02; done";

fn holder(place: &Place, arguments: &[&str]) -> Running {
    let running = place.start(&[&["run"], arguments, &["--", "sh", "-c", HOLDS]].concat());
    place.wait_for("held");
    running
}

/// Returns how many hold a lock, and how many wait for it; none if a busy machine has not answered in time.
fn counts(place: &Place, lock: &str) -> Option<(usize, usize)> {
    let looked = place.output(&["inspect", "--json", lock]);
    if looked.code == Some(69) {
        return None;
    }
    let seen = json(&looked.stdout);
    let count = |what: &str| seen[what].as_array().unwrap().len();
    Some((count("holders"), count("queue")))
}

pub(crate) fn a_lock_goes_from_one_command_to_the_next(url: &str) {
    let (place, group) = (Place::on(url), group("next"));
    let lock = &format!("{group}/alice");
    let mut watch = place.start(&["watch", "--json", "--every", "50ms", lock]);
    let mut watched = String::new();
    let mut shows = |count: usize, watch: &mut Running| {
        eventually("it is shown", || {
            watched.push_str(&watch.said());
            let last = watched.lines().last().filter(|_| watched.ends_with('\n'));
            last.is_some_and(|line| json(line)["holders"].as_array().unwrap().len() == count)
        });
    };
    shows(0, &mut watch);
    let first = holder(&place, &[lock]);
    shows(1, &mut watch);
    assert_eq!(place.output(&["run", "-n", lock, "--", "touch", "never"]).code, Some(75));

    let waits = place.start(&["run", lock, "--", "touch", "never"]);
    eventually("it waits", || counts(&place, lock) == Some((1, 1)));
    let listed = place.output(&["list", &group]);
    assert!(
        listed.stdout.starts_with(&format!("{lock}: write by ")) && listed.stdout.contains(", 1 wait"),
        "{listed:?}"
    );
    waits.send(Signal::TERM);
    assert_eq!(waits.ended().code, Some(128 + 15));
    eventually("its place is given back", || counts(&place, lock) == Some((1, 0)));

    let second = place.start(&["run", lock, "--", "sh", "-c", "echo ${YLOCK_TOKEN:-none} > second"]);
    eventually("it waits", || counts(&place, lock) == Some((1, 1)));
    assert!(!place.has("second"));
    place.make("go");
    assert_eq!((first.ended().code, second.ended().code), (Some(0), Some(0)));
    let token = |file: &str| place.read(file).trim().parse::<i64>().ok();
    assert!(token("held") < token("second") || token("held").is_none() && token("second").is_none());
    shows(0, &mut watch);
    watch.send(Signal::INT);
    assert!(!place.has("never"));
}

pub(crate) fn a_lock_that_is_revoked_stops_its_command(url: &str) {
    let (place, group) = (Place::on(url), group("revoked"));
    let lock = &format!("{group}/alice");
    let holds = holder(&place, &[lock]);
    let mut top = Terminal::start(&place, &["top", "--every", "100ms", &group]);
    top.wait_for("1 lock");
    let revoked = place.output(&["revoke", "--yes", lock]);
    assert!(revoked.stdout.contains("revoked from 1 holder"), "{revoked:?}");
    let ended = holds.ended();
    assert!(ended.code == Some(73) && place.has("asked"), "{ended:?}");
    top.wait_for("0 locks");
    top.press("q");
    assert_eq!(top.ended().code, Some(0));
}

pub(crate) fn permits_and_periods_are_counted(url: &str) {
    let (place, group) = (Place::on(url), group("counted"));
    let lock = &format!("{group}/render");
    let holds = holder(&place, &["--permits", "2", lock]);
    let permit = |permits: &str| {
        place.output(&["run", "-n", "--permits", permits, lock, "--", "sh", "-c", "exit 7"]).code
    };
    assert_eq!((permit("2"), permit("3")), (Some(7), Some(64)));
    place.make("go");
    assert_eq!(holds.ended().code, Some(0));

    let once = |code: &str| {
        place.output(&["run", "--once-per", "7days", &format!("{group}/job"), "--", "sh", "-c", code])
    };
    assert_eq!(once("exit 4").code, Some(4));
    let again = once("exit 5");
    assert!(again.code == Some(0) && again.stderr.contains("has run it in this period"), "{again:?}");
}

/// `parts` are what the doctor says of the servers.
pub(crate) fn the_doctor_finds_it_well(url: &str, parts: &[&str]) {
    let place = Place::on(url);
    let well = place.output(&["doctor"]);
    assert_eq!(well.code, Some(0), "{well:?}");
    for part in parts.iter().chain(&[
        ": version ",
        "answers within ",
        "clock within ",
        "acquire and release: take ",
        "a listing: ",
    ]) {
        assert!(well.stdout.contains(part), "{part}: {}", well.stdout);
    }
    let found = json(&place.output(&["doctor", "--json"]).stdout);
    assert_eq!(found["well"], true, "{found}");
    let server = found["found"].as_array().unwrap().iter().find(|found| found["what"] == "server").unwrap();
    assert!(
        server["is"]["version"].is_string() && server["is"]["round_trip"].as_f64().unwrap() > 0.0,
        "{server}"
    );
    assert_eq!(place.output(&["list", "ylock doctor"]).stdout, "", "it leaves nothing behind");
}
