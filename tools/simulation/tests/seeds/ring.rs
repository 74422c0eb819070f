//! Clusters of other sizes, nodes that join and are replaced, and clients whose leases differ.

use crate::support;
use std::time::Duration;

use ylock_simulation::{Fault, Setting, run};

fn none_breaks(what: &str, setting: &Setting<'_>) {
    let (allowed, replicas, leases) = (setting.allowed.clone(), setting.replicas, setting.leases.clone());
    support::none_fails(&format!("engine, {what}"), |seed| {
        let setting =
            Setting { allowed: allowed.clone(), replicas, leases: leases.clone(), ..Setting::default() };
        let wrong = run(seed, &setting).wrong;
        (!wrong.is_empty()).then(|| format!("{replicas} replicas, seed {seed}: {}", wrong.join("; ")))
    });
}

fn everything_and(one: Fault) -> Vec<Fault> {
    Fault::borne().into_iter().chain([one]).collect()
}

#[test]
fn any_number_of_replicas_will_do() {
    for replicas in [1, 2, 4, 5] {
        none_breaks(&format!("{replicas} replicas"), &Setting { replicas, ..Setting::default() });
    }
}

/// Leases from 1.2 to 20 s at one name.
#[test]
fn clients_may_have_different_leases() {
    let leases = [5_000, 1_200, 20_000].map(Duration::from_millis).to_vec();
    none_breaks("three leases", &Setting { leases, ..Setting::default() });
}

/// As long as coordinators hear of it at once: a write needs one acknowledgement more while a node is pending.
#[test]
fn a_node_that_takes_the_place_of_another_one_breaks_nothing() {
    for replicas in [2, 3, 5] {
        let setting = Setting { replicas, allowed: everything_and(Fault::Join), ..Setting::default() };
        none_breaks(&format!("{replicas} replicas and a node joins"), &setting);
    }
}

/// What `engine-cassandra/guarantees.md` says of it: until all know of the change two quorums need not overlap.
#[test]
fn coordinators_that_hear_of_a_new_node_one_after_the_other_let_two_in() {
    use Fault::{Delay, Down, Gossip, Loss, NoHints, NoRepair};
    let setting =
        Setting { allowed: vec![Gossip, Delay, Down, Loss, NoHints, NoRepair], ..Setting::default() };
    // One of some thousand. With `Join` in place of `Gossip` none of 10 000 does.
    support::must_be_found("coordinators hear of a node one after the other", 16_476, 3_000, |seed| {
        run(seed, &setting).wrong.into_iter().find(|what| what.contains("two valid holders"))
    });
}
