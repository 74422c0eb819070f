//! Which store the command takes, and what it does when that is away.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Place, bare, end};

#[test]
fn the_command_line_wins_over_the_variable_and_that_over_the_file() {
    let place = Place::new();
    let file = place.path().join("ylock.toml");
    fs::write(&file, format!("url = \"file://{0}/of-file\"\nlease = \"3s\"\n", place.path().display()))
        .unwrap();
    fs::create_dir(place.path().join(".config")).unwrap();
    fs::copy(&file, place.path().join(".config/ylock.toml")).unwrap();
    let doctor = |arguments: &[&str], variable: Option<String>| {
        let mut command = bare(&[arguments, &["doctor"]].concat());
        command.env("HOME", place.path());
        command.envs(variable.map(|url| ("YLOCK_STORE", url)));
        end(command).stdout
    };
    let of_home = doctor(&[], None);
    assert!(
        of_home.contains("/of-file")
            && of_home.contains(".config/ylock.toml")
            && of_home.contains("lease: 3s"),
        "{of_home}"
    );
    let of_variable = doctor(&[], Some(place.store()));
    assert!(of_variable.contains("/locks") && of_variable.contains("YLOCK_STORE"), "{of_variable}");
    let url = format!("file://{}/of-line", place.path().display());
    let of_line = doctor(&["--store", &url], Some(place.store()));
    assert!(of_line.contains("/of-line") && of_line.contains("named by --store"), "{of_line}");
    let named = doctor(&["--config", file.to_str().unwrap()], None);
    assert!(named.contains("/of-file") && named.contains(file.to_str().unwrap()), "{named}");
}

#[test]
fn without_a_store_it_is_a_folder_of_this_user_alone() {
    let mut command = bare(&["run", "ylock tests/default folder", "--", "true"]);
    command.env("HOME", "/nonexistent");
    let ended = end(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let folder = format!("/tmp/ylock-{}", rustix::process::getuid().as_raw());
    assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_password_is_not_shown() {
    let place = Place::new();
    let ended =
        place.output(&["--store", "redis://me:secret%20word@127.0.0.1:1/0?connect_timeout=1s", "doctor"]);
    assert!(!format!("{ended:?}").contains("secret"), "{ended:?}");
    assert!(ended.stdout.starts_with("store: redis://me@127.0.0.1:1/0?connect_timeout=1s\n"), "{ended:?}");
}

#[test]
fn completions_and_pages_are_written() {
    let place = Place::new();
    let bash = place.output(&["completions", "bash"]);
    assert!(bash.code == Some(0) && bash.stdout.contains("inspect"), "{bash:?}");
    let page = place.output(&["man"]);
    for part in [".TH ylock 1", "YLOCK_TOKEN", "runs on WITHOUT the lock"] {
        assert!(page.stdout.contains(part), "{part}: {}", page.stdout);
    }
    // A help is wrapped, at the width of the terminal.
    let words =
        |arguments: &[&str]| place.output(arguments).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&["--help"]).contains("75 the lock is not free"));
    assert!(words(&["run", "--help"]).contains("runs on WITHOUT the lock"));
}
