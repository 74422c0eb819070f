//! A replica that forgets what it has acknowledged: what that breaks, and what not.

use ylock_simulation::{Fault, Setting, run};

/// What `engine-cassandra/guarantees.md` says of it: a lock that was granted may be granted again, and a token may not grow. So the
/// former holder is not told, a resource that is told such tokens loses an update, and a place may be taken before one that was
/// forgotten.
const EXPECTED: [&str; 5] =
    ["two valid holders", "the token of", "was not told before", "a lost update", "takes place"];

fn wrong(seed: u64, allowed: &[Fault]) -> Vec<String> {
    run(seed, &Setting { allowed: allowed.to_vec(), ..Setting::default() }).wrong
}

/// The other replicas have all that was written.
#[test]
fn a_replica_that_forgets_breaks_nothing_where_the_others_miss_nothing() {
    for seed in 0..1_000 {
        assert_eq!(wrong(seed, &[Fault::Forget]), [""; 0], "seed {seed}");
    }
}

/// Two of three may not have what was acknowledged.
#[test]
fn a_replica_that_forgets_breaks_only_what_is_said_where_others_have_missed_writes() {
    let everything: Vec<_> = Fault::borne().into_iter().chain([Fault::Forget]).collect();
    let mut broken = 0;
    for seed in 0..1_000 {
        let wrong = wrong(seed, &everything);
        let unexpected = wrong.iter().find(|what| !EXPECTED.iter().any(|expected| what.contains(expected)));
        assert_eq!(unexpected, None, "seed {seed}");
        broken += usize::from(!wrong.is_empty());
    }
    println!("{broken} of 1000 seeds");
    assert!(broken > 0, "the simulation cannot lose what a replica forgets");
}
