//! The documentation of each method that acquires has what CONTRIBUTING.md demands of it.

const HEADINGS: [&str; 6] =
    ["Fairness", "Reentrancy", "Cancel safety", "If the lock is lost", "Errors", "Examples"];

/// Each type with methods that acquire, and how many it has.
const SOURCES: [(&str, &str, usize); 7] = [
    ("Locks", include_str!("../src/locks.rs"), 3),
    ("Lock", include_str!("../src/lock.rs"), 3),
    ("Election", include_str!("../src/election/mod.rs"), 1),
    ("Semaphore", include_str!("../src/semaphore/mod.rs"), 1),
    ("MultiLock", include_str!("../src/multi_lock/mod.rs"), 1),
    ("TwoPhaseLocking", include_str!("../src/multi_lock/two_phase_locking.rs"), 2),
    ("Ylock", include_str!("../src/client.rs"), 1),
];

/// Returns the documentation of `Acquire`, where what holds for each acquisition is said.
fn of_acquire() -> String {
    let (before, _) =
        include_str!("../src/acquire/mod.rs").split_once("pub struct Acquire<").expect("it is there");
    let lines = before.lines().rev().skip_while(|line| !line.starts_with("///"));
    let mut lines: Vec<_> = lines.map_while(|line| line.strip_prefix("///")).map(str::trim_start).collect();
    lines.reverse();
    lines.join("\n")
}

/// Returns whether this documentation leaves to another place what holds for each acquisition.
fn refers(documentation: &str) -> bool {
    documentation.contains("[`Acquire`]") || documentation.contains("see [`Locks::")
}

/// Returns each method that acquires, with its documentation: only these are `#[track_caller]`.
fn acquiring(source: &str) -> Vec<(&str, String)> {
    let (mut found, mut documentation, mut acquires) = (Vec::new(), String::new(), false);
    for line in source.lines().map(str::trim_start) {
        if let Some(said) = line.strip_prefix("///") {
            documentation.push_str(said.strip_prefix(' ').unwrap_or(said));
            documentation.push('\n');
        } else if let Some(method) = line.strip_prefix("pub fn ").filter(|_| acquires) {
            let end = method.find(['(', '<']).expect("a method has parameters");
            found.push((&method[..end], std::mem::take(&mut documentation)));
            acquires = false;
        } else if line.starts_with("#[") {
            acquires |= line == "#[track_caller]";
        } else {
            (documentation, acquires) = (String::new(), false);
        }
    }
    found
}

#[test]
fn each_method_that_acquires_has_all_headings_in_order_and_an_example_or_says_where_they_are() {
    let mut all = vec![("Acquire".to_owned(), of_acquire())];
    for (of, source, count) in SOURCES {
        let methods = acquiring(source);
        let names: Vec<_> = methods.iter().map(|(name, _)| name).collect();
        assert_eq!(methods.len(), count, "{of}: {names:?}");
        all.extend(methods.into_iter().map(|(name, documentation)| (format!("{of}::{name}"), documentation)));
    }
    for (of, documentation) in all {
        if of != "Acquire" && refers(&documentation) {
            continue;
        }
        let headings = documentation.lines().filter_map(|line| line.strip_prefix("# "));
        let headings: Vec<_> = headings.filter(|line| HEADINGS.contains(line)).collect();
        assert_eq!(headings, HEADINGS, "{of}");
        let fences = documentation.lines().filter(|line| line.starts_with("```")).count();
        assert_eq!(fences, 2, "{of} has one example");
        // A task that acquires what it holds under another owner is the easiest mistake to make.
        let (_, reentrancy) = documentation.split_once("# Reentrancy\n").expect("a heading");
        let reentrancy = reentrancy.split("\n# ").next().unwrap_or_default().replace('\n', " ");
        assert!(reentrancy.contains("for itself"), "{of}: {reentrancy}");
    }
}
