//! The benchmark of the thesis, which asks a simulated cluster, too.

use crate::engine::Bench;

pub(super) const BENCH: Bench = Bench {
    name: "thesis",
    help: Some("The old lock of the thesis against its queue lock (`-- --help` for its options)"),
    command: "run --release -p ylock-benchmark",
    wants_servers: wants_real_points,
    of_all: false,
    wants_peers: |_| false,
};

/// Returns whether the benchmark will ask real servers, by its own options.
fn wants_real_points(arguments: &[String]) -> bool {
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    let is_without = ["--render-only", "--help", "-h"].into_iter().any(has);
    !is_without && (has("--real") || !has("--simulated"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_started_only_for_real_points() {
        let wants =
            |line: &str| wants_real_points(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert!(wants("") && wants("--quick") && wants("--real --simulated"));
        assert!(!wants("--simulated --quick") && !wants("--real --render-only") && !wants("--help"));
    }
}
