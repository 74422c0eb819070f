//! Clusters of other sizes, nodes that join and are replaced, and clients whose leases differ.

use crate::support;
use std::time::Duration;

use ylock_simulation::{Fault, Setting, run};

fn none_breaks(setting: &Setting<'_>, seeds: u64) {
    let (allowed, replicas, leases) = (setting.allowed.clone(), setting.replicas, setting.leases.clone());
    support::none_fails(seeds, |seed| {
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
        none_breaks(&Setting { replicas, ..Setting::default() }, 200);
    }
}

/// Leases from 1.2 to 20 s at one name.
#[test]
fn clients_may_have_different_leases() {
    let leases = [5_000, 1_200, 20_000].map(Duration::from_millis).to_vec();
    none_breaks(&Setting { leases, ..Setting::default() }, 300);
}

/// As long as coordinators hear of it at once: a write needs one acknowledgement more while a node is pending.
#[test]
fn a_node_that_takes_the_place_of_another_one_breaks_nothing() {
    for replicas in [2, 3, 5] {
        none_breaks(&Setting { replicas, allowed: everything_and(Fault::Join), ..Setting::default() }, 300);
    }
}

/// What `engine-cassandra/guarantees.md` says of it: until all know of the change two quorums need not overlap.
#[test]
fn coordinators_that_hear_of_a_new_node_one_after_the_other_let_two_in() {
    use Fault::{Delay, Down, Gossip, Loss, NoHints, NoRepair};
    let setting =
        Setting { allowed: vec![Gossip, Delay, Down, Loss, NoHints, NoRepair], ..Setting::default() };
    let lets_two_in = |seed| run(seed, &setting).wrong.iter().any(|what| what.contains("two valid holders"));
    // One of some thousand: so the search begins shortly before one. With `Join` in place of `Gossip` none of 10 000 does.
    assert!((6_400..7_000).any(lets_two_in), "the simulation cannot lose what a quorum has");
}
