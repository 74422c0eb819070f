//! A program that measures one thing after the other, and is started again by some of them.

use tokio::runtime::{Builder, Runtime};

use super::awake::{self, Awake};

/// One of the things that a program measures.
#[derive(Clone, Copy, Debug)]
pub struct Arm {
    name: &'static str,
    both_ways: bool,
}

impl Arm {
    /// Creates an arm that is measured once.
    pub const fn once(name: &'static str) -> Self {
        Self { name, both_ways: false }
    }

    /// Creates an arm that is measured with cores that are kept awake, and with cores that may sleep between two requests.
    pub const fn both_ways(name: &'static str) -> Self {
        Self { name, both_ways: true }
    }

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

/// Runs the arms that the arguments of this program name, all if they name none; with `--awake` none with cores that may sleep. `go` gets the
/// name of each; or all arguments, where the first argument is no arm: then this is a process that an arm has started.
///
/// # Panics
/// If there is no runtime, and as `go`.
pub fn run(arms: &[Arm], go: impl AsyncFn(&[&str])) {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if arguments == [awake::ROLE] {
        return awake::keep_awake();
    }
    let awake_only = arguments.contains(&"--awake");
    arguments.retain(|argument| *argument != "--awake");
    let runtime = Builder::new_multi_thread().enable_all().build().expect("a runtime");
    if arguments.first().is_some_and(|first| !arms.iter().any(|arm| arm.name == *first)) {
        return runtime.block_on(go(&arguments));
    }
    for arm in arms.iter().filter(|arm| arguments.is_empty() || arguments.contains(&arm.name)) {
        run_arm(&runtime, *arm, awake_only, &go);
    }
}

fn run_arm(runtime: &Runtime, arm: Arm, awake_only: bool, go: &impl AsyncFn(&[&str])) {
    let Arm { name, both_ways } = arm;
    if both_ways {
        println!("\n## {name}, cores awake");
        let _awake = Awake::start();
        runtime.block_on(go(&[name]));
    }
    if !both_ways || !awake_only {
        let how = if both_ways { ", cores that may sleep" } else { "" };
        println!("\n## {name}{how}");
        runtime.block_on(go(&[name]));
    }
}
