//! `ylock run --once-per`.

use rustix::process::Signal;

use crate::support::Place;

/// So long that no test runs over the end of one; it begins anew in 2026 in the night to a Thursday, and then once a year.
const PERIOD: &str = "360days";

#[test]
fn a_job_is_run_once_in_its_period() {
    let place = Place::new();
    let run =
        |code: &str| place.output(&["run", "--once-per", PERIOD, "jobs/report", "--", "sh", "-c", code]);
    let first = run("echo $YLOCK_NAME $YLOCK_TOKEN >> runs; exit 4");
    assert_eq!(first.code, Some(4), "{first:?}");
    let second = run("echo again >> runs");
    assert_eq!(second.code, Some(0), "{second:?}");
    assert!(second.stderr.contains("has run it in this period"), "{second:?}");
    assert!(place.read("runs").starts_with("report 1") && place.read("runs").lines().count() == 1);
}

#[test]
fn a_job_that_has_failed_is_run_again_until_it_is_done() {
    let place = Place::new();
    let run = |code: &str| {
        let arguments = ["run", "--once-per", PERIOD, "--until-done", "jobs/report", "--", "sh", "-c", code];
        place.output(&arguments).code
    };
    assert_eq!(run("echo >> runs; exit 4"), Some(4));
    assert_eq!(run("echo >> runs; exit 0"), Some(0));
    assert_eq!(run("echo >> runs; exit 5"), Some(0));
    assert_eq!(place.read("runs").lines().count(), 2);
}

#[test]
fn one_that_is_at_it_is_named_and_its_loss_stops_the_command() {
    let place = Place::new();
    let script =
        "trap 'echo > asked; exit 3' TERM; echo here > held; while [ -d $PLACE ]; do sleep 0.02; done";
    let job = ["run", "--once-per", PERIOD, "jobs/report", "--", "sh", "-c", script];
    let running = place.start(&job);
    place.wait_for("held");
    let other = place.output(&job);
    assert_eq!(other.code, Some(0), "{other:?}");
    assert!(other.stderr.contains("is at it"), "{other:?}");
    running.send(Signal::USR1);
    assert_eq!(running.ended().code, Some(128 + 10), "a signal is passed on");
    drop(place);

    let place = Place::new();
    let running = place.start(&job);
    place.wait_for("held");
    assert_eq!(place.output(&["revoke", "--yes", "jobs/report"]).code, Some(0));
    let ended = running.ended();
    assert_eq!(ended.code, Some(73), "{ended:?}");
    assert!(place.has("asked"), "{ended:?}");
}

#[test]
fn a_job_that_takes_too_long_is_stopped_and_is_not_done() {
    let place = Place::new();
    let arguments = ["run", "--once-per", PERIOD, "--until-done", "--max-hold", "100ms", "jobs/report", "--"];
    let run = |script: &str| place.output(&[&arguments[..], &["sh", "-c", script]].concat());
    let ended = run("trap 'echo > asked; exit 0' TERM; while [ -d $PLACE ]; do sleep 0.02; done");
    assert_eq!(ended.code, Some(73), "{ended:?}");
    assert!(ended.stderr.contains("--max-hold") && place.has("asked"), "{ended:?}");
    assert_eq!(run("exit 4").code, Some(4), "it is begun again");
}
