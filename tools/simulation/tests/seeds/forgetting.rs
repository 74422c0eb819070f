//! A replica that forgets what it has acknowledged: what that breaks, and what not.

use ylock_simulation::{Fault, Setting, run};

use crate::support;

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
    support::none_fails("engine, and a replica forgets", |seed| {
        let wrong = wrong(seed, &[Fault::Forget]);
        (!wrong.is_empty()).then(|| format!("seed {seed}: {}", wrong.join("; ")))
    });
}

/// Two of three may not have what was acknowledged.
#[test]
fn a_replica_that_forgets_breaks_only_what_is_said_where_others_have_missed_writes() {
    let everything: Vec<_> = Fault::borne().into_iter().chain([Fault::Forget]).collect();
    support::none_fails("engine, and a replica forgets where others miss writes", |seed| {
        let is_expected = |what: &String| EXPECTED.iter().any(|expected| what.contains(expected));
        let unexpected = wrong(seed, &everything).into_iter().find(|what| !is_expected(what))?;
        Some(format!("seed {seed}: {unexpected}"))
    });
    support::must_be_found("a replica forgets", 5_798, 1_000, |seed| wrong(seed, &everything).pop());
}
