//! A program that measures one thing after the other, and is started again by some of them.

/// Runs the arms that the arguments of this program name, all if they name none. `go` gets the name of each; or all arguments, where
/// the first argument is no arm: then this is a process that an arm has started.
///
/// # Panics
/// If there is no runtime, and as `go`.
pub fn run(arms: &[&str], go: impl AsyncFn(&[&str])) {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    if arguments.first().is_some_and(|first| !arms.contains(first)) {
        return runtime.block_on(go(&arguments));
    }
    for arm in arms.iter().filter(|arm| arguments.is_empty() || arguments.contains(arm)) {
        println!("\n## {arm}");
        runtime.block_on(go(&[arm]));
    }
}
