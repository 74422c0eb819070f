//! Plans of all tests and of some.

use super::*;
use crate::cargo;

/// Returns the plan of what these words choose in the workspace.
fn plan(words: &[&str], servers: ServersOf) -> Plan {
    let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
    let packages = cargo::packages().unwrap();
    let chosen = Chosen::find(&words, &packages).unwrap();
    Plan::new(packages, chosen, servers, false)
}

fn of(what: What, jobs: Vec<Job>) -> Vec<Job> {
    jobs.into_iter().filter(|job| job.what == what).collect()
}

/// Returns what these jobs run, as words.
fn words(jobs: &[Job]) -> String {
    let words = |job: &Job| match &job.program {
        Of::Cargo(arguments) => arguments.join(" "),
        Of::Target(target) => format!("{} {}", target.package, target.name),
    };
    jobs.iter().map(words).collect::<Vec<_>>().join(", ")
}

#[test]
fn tests_that_break_the_servers_of_the_run_follow_those_that_use_them() {
    let jobs = plan(&[], ServersOf::Xtask).jobs();
    let mut kinds: Vec<_> = jobs.iter().map(|job| job.what).collect();
    kinds.dedup();
    let suites = What::Conformance;
    assert_eq!(kinds, [What::Tests, What::Docs, suites, What::Trouble, suites, What::OwnServers]);
    let mut after = jobs.iter().skip_while(|job| job.what != What::Trouble).skip(1);
    assert!(after.all(|job| !job.shares.contains(&"cassandra")));
}

#[test]
fn what_breaks_the_servers_of_the_run_runs_by_itself_in_the_long_run_alone() {
    for (is_long, weight) in [(false, HALF), (true, ROOM)] {
        let jobs = Plan { is_long, ..plan(&[], ServersOf::Xtask) }.jobs();
        assert!(of(What::Trouble, jobs).iter().all(|job| job.weight == weight));
    }
}

#[test]
fn a_suite_that_takes_all_cores_runs_alone_and_others_two_by_two() {
    let suites = of(What::Conformance, plan(&[], ServersOf::Xtask).jobs());
    let (alone, others): (Vec<_>, Vec<_>) = suites.into_iter().partition(|job| job.weight == ROOM);
    assert_eq!(words(&alone), "ylock-engine-cassandra conformance");
    assert!(words(&others).contains("ylock-engine-redis conformance"));
    assert!(others.iter().all(|job| job.weight == HALF));
    assert_eq!(others[0].libtest, ["--test-threads=12", "--include-ignored"]);
}

#[test]
fn what_only_computes_runs_beside_the_others() {
    let whole = plan(&[], ServersOf::Xtask);
    assert!(words(&whole.beside()).contains("ylock-simulation seeds"));
    assert_eq!(words(&of(What::Computing, whole.jobs())), "");
    assert_eq!(plan(&["redis"], ServersOf::Xtask).beside(), []);
}

#[test]
fn servers_of_the_user_are_not_broken() {
    let runs_ignored = |job: &Job| job.libtest.contains(&"--include-ignored");
    for job in plan(&["cassandra"], ServersOf::User).jobs().iter().filter(|job| job.what != What::Docs) {
        assert_eq!(runs_ignored(job), job.what != What::Trouble, "{job:?}");
    }
    assert!(!plan(&["memory"], ServersOf::Nobody).jobs().iter().any(runs_ignored));
}

#[test]
fn prometheus_is_wanted_by_its_tests_alone() {
    assert!(plan(&[], ServersOf::User).wants_prometheus());
    assert!(!plan(&["redis"], ServersOf::Xtask).wants_prometheus());
}

/// By the crates of the workspace together: each alone would have other features, and be built again with all that it depends on.
#[test]
fn the_build_names_targets_and_no_crates() {
    let build = |words: &[&str]| plan(words, ServersOf::Xtask).build().join(" ");
    assert_eq!(build(&[]), "--workspace --all-features --lib --bins --tests");
    assert_eq!(build(&["engine-redis/tests/listing.rs"]), "--workspace --all-features --test listing");
    let units =
        "--workspace --all-features --test headings --test memory_announced --test send_sync --lib --bins";
    assert_eq!(build(&["ylock-core"]), units);
}

#[test]
fn examples_are_chosen_by_their_paths() {
    let docs = |words_given: &[&str]| words(&of(What::Docs, plan(words_given, ServersOf::Xtask).jobs()));
    assert_eq!(docs(&[]), "--workspace --all-features --doc");
    assert_eq!(docs(&["engine-etcd"]), "--workspace --all-features --doc -- engine-etcd/");
    let facade = docs(&["ylock"]);
    assert!(facade.contains("--skip ylock-core/") && !facade.contains("--skip / "), "{facade}");
    assert_eq!(docs(&["tests/owner.rs"]), "");
}
