//! The documentation of each method that acquires has what CONTRIBUTING.md demands of it.

const HEADINGS: [&str; 6] =
    ["Fairness", "Reentrancy", "Cancel safety", "If the lock is lost", "Errors", "Examples"];

/// Each type with methods that acquire, and how many it has.
const SOURCES: [(&str, &str, usize); 7] = [
    ("Locks", include_str!("../src/locks.rs"), 11),
    ("Lock", include_str!("../src/lock.rs"), 11),
    ("Election", include_str!("../src/election/mod.rs"), 2),
    ("Semaphore", include_str!("../src/semaphore/mod.rs"), 4),
    ("Many", include_str!("../src/many/mod.rs"), 4),
    ("Growing", include_str!("../src/many/growing.rs"), 2),
    ("Ylock", include_str!("../src/client.rs"), 1),
];

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
fn each_method_that_acquires_has_all_headings_in_order_and_one_example() {
    for (of, source, count) in SOURCES {
        let methods = acquiring(source);
        assert_eq!(
            methods.len(),
            count,
            "{of}: {:?}",
            methods.iter().map(|(name, _)| name).collect::<Vec<_>>()
        );
        for (name, documentation) in methods {
            let headings = documentation.lines().filter_map(|line| line.strip_prefix("# "));
            let headings: Vec<_> = headings.filter(|line| HEADINGS.contains(line)).collect();
            assert_eq!(headings, HEADINGS, "{of}::{name}");
            let fences = documentation.lines().filter(|line| line.starts_with("```")).count();
            assert_eq!(fences, 2, "{of}::{name} has one example");
        }
    }
}

/// A task that acquires what it holds under another owner is the easiest mistake to make with these locks.
#[test]
fn each_method_that_acquires_says_what_becomes_of_a_task_that_waits_for_itself() {
    for (of, source, _) in SOURCES {
        for (name, documentation) in acquiring(source) {
            let (_, reentrancy) = documentation.split_once("# Reentrancy\n").expect("a heading");
            let reentrancy = reentrancy.split("\n# ").next().unwrap_or_default().replace('\n', " ");
            assert!(reentrancy.contains("for itself"), "{of}::{name}: {reentrancy}");
        }
    }
}
