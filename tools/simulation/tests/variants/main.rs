//! The simulation must be able to lose: each of these makes one mistake, and must be found.
//!
//! Each begins with the seed that found it last, which stands beside it. Only when that seed finds it no more, as the simulation or the engine has
//! changed, the search goes on, and says which seed to write down: `cargo test -p ylock-simulation --test variants -- --nocapture`.

mod attempts;
mod built;
mod engine;
mod etcd;
mod etcd_turns;
mod hints;
mod keeper;
mod listing6;
mod observed;
mod redis;
mod store;
#[path = "../support/mod.rs"]
mod support;
mod zookeeper;

use std::sync::Arc;
use std::time::Duration;

use ylock_core::engine::Engine;
use ylock_engine_cassandra::CassandraOptions;
use ylock_simulation::clocks::Clocks;
use ylock_simulation::store::Connection;
use ylock_simulation::zookeeper::Mistakes;
use ylock_simulation::{Fault, Sets, Setting, Subject, run};
use ylock_testkit::short_or_long;

use support::must_be_found;

/// More seeds than any of them needs.
const SEEDS: u64 = 3_000;
/// The seeds between the places from which a mistake is looked for that most seeds find.
const APART: u64 = 10_000;

/// Returns the seeds from which a mistake is looked for that most seeds find: from the one that found it last, and in the long run from ten places, as
/// one lucky seed proves little.
fn places(at: u64) -> Vec<u64> {
    short_or_long(vec![at], (0..10).map(|place| place * APART).collect())
}

const LOST_UPDATE: &str = "a lost update";

/// Fails unless a seed breaks an engine made like this.
fn must_break(
    variant: &str,
    wrong: &str,
    at: u64,
    trusting: bool,
    make: impl Fn(Arc<Connection>, &Arc<Clocks>, &CassandraOptions) -> Arc<dyn Engine> + 'static,
) {
    must_find(variant, wrong, at, Setting { trusting, make: &make, ..Setting::default() });
}

/// Fails unless a seed breaks the keeper over engines that are wrapped like this.
fn must_break_above(
    of: Subject,
    variant: &str,
    wrong: &str,
    at: u64,
    wrap: impl Fn(Arc<dyn Engine>) -> Arc<dyn Engine> + 'static,
) {
    must_find(variant, wrong, at, Setting { of, wrap: &wrap, ..Setting::default() });
}

/// Fails unless a seed from `at` on finds this to be wrong.
fn must_find(variant: &str, wrong: &str, at: u64, setting: Setting<'_>) {
    // A clock that stood still excuses whatever its owner believes, but no lost update: the token is for that.
    let allows = |fault: &Fault| *fault != Fault::StandStill || wrong == LOST_UPDATE;
    let allowed: Vec<_> = Fault::borne().into_iter().filter(allows).collect();
    must_find_there(variant, wrong, at, &Setting { allowed, ..setting });
}

/// Fails unless a seed finds that those who ask for the strict order do not enter in it, where nothing else goes wrong.
fn must_find_out_of_order(variant: &str, at: u64, setting: Setting<'_>) {
    must_find_there(variant, "came earlier", at, &Setting { allowed: vec![], strict: true, ..setting });
}

fn must_find_there(variant: &str, wrong: &str, at: u64, setting: &Setting<'_>) {
    must_be_found(variant, at, SEEDS, |seed| {
        run(seed, setting).wrong.into_iter().find(|what| what.contains(wrong))
    });
}

/// Fails unless this is found from each of the places among the seeds.
fn must_find_everywhere<'a>(variant: &str, wrong: &str, at: u64, setting: impl Fn() -> Setting<'a>) {
    for place in places(at) {
        must_find(variant, wrong, place, setting());
    }
}

macro_rules! broken {
    ($($test:ident: $make:expr, $wrong:expr, at $at:literal $(, $trusting:ident)?;)*) => {
        $(
            #[test]
            fn $test() {
                must_break(stringify!($test), $wrong, $at, broken!(@ $($trusting)?), $make);
            }
        )*
    };
    (@ trusting) => { true };
    (@) => { false };
}

use engine::{Defect as E, broken_engine, one_slot};
use store::{Defect as S, broken_store};

broken! {
    the_main_row_is_counted_not_compared: broken_store(S::CountsOnly), "two valid holders", at 4;
    the_own_row_is_not_looked_at_again: broken_store(S::TrustsItselfInDoubt), "two valid holders", at 5;
    two_writes_have_one_timestamp: broken_store(S::OneStampForTwo), "two valid holders", at 57;
    a_write_in_doubt_is_forgotten: broken_store(S::ForgetsDoubt), "two valid holders", at 430;
    the_ttl_is_the_lease: broken_store(S::TtlIsLease), "two valid holders", at 0;
    a_heartbeat_is_stamped_after_the_claim: broken_store(S::LateHeartbeat), "two valid holders", at 104;
    a_place_is_taken_by_the_own_clock_only: broken_store(S::OwnTimeOnly), "takes place", at 0;
    validity_counts_from_the_answer: broken_engine(E::ValidFromAnswer), "two valid holders", at 756;
    a_late_renewal_is_believed: broken_engine(E::RenewsLate), "two valid holders", at 107, trusting;
    the_token_is_taken_after_entry: broken_engine(E::TokenAfterEntry), LOST_UPDATE, at 966;
    a_loss_is_given_away_before_it_is_told: broken_engine(E::GivesAwayBeforeTelling), "two valid holders", at 107;
    two_clients_have_one_slot: one_slot, "two valid holders", at 1;
    listing_6_exactly_as_printed: listing6::make, "two valid holders", at 0;
}

macro_rules! broken_below_the_keeper {
    ($($test:ident: $of:ident $defect:expr, $wrong:expr, at $at:literal;)*) => {
        $(
            #[test]
            fn $test() {
                must_break_above(Subject::$of, stringify!($test), $wrong, $at, keeper::broken($defect));
            }
        )*
    };
}

use keeper::Defect as K;

broken_below_the_keeper! {
    the_keeper_counts_from_the_answer: KeeperOverMemory K::ValidFromAnswer, "two valid holders", at 168;
    the_keeper_is_not_told_of_a_loss: KeeperOverMemory K::HidesTheLoss, "two valid holders", at 0;
    the_keeper_is_given_what_another_has: KeeperOverMemory K::GrantsToTwo, "two valid holders", at 3;
    the_keeper_gets_half_a_lease: KeeperOverMemory K::LeaseEndsEarly, "two valid holders", at 3;
    the_keeper_gets_no_new_tokens: KeeperOverMemory K::RepeatsTokens, "the token of", at 0;
    the_keeper_gets_no_answer: KeeperOverMemory K::NeverAnswers, "still wait", at 12;
    the_keeper_counts_from_an_answer_at_once: KeeperAtOnce K::ValidFromAnswer, "two valid holders", at 869;
    the_keeper_is_not_told_of_a_loss_where_it_is_answered_at_once: KeeperAtOnce K::HidesTheLoss, "two valid holders", at 0;
    the_keeper_is_given_at_once_what_another_has: KeeperAtOnce K::GrantsToTwo, "two valid holders", at 0;
    the_keeper_gets_half_a_lease_at_once: KeeperAtOnce K::LeaseEndsEarly, "two valid holders", at 7;
    the_keeper_gets_no_new_tokens_at_once: KeeperAtOnce K::RepeatsTokens, "the token of", at 0;
    // Behind a cluster this is found once in some thousand seeds.
    the_keeper_counts_from_the_answer_of_a_cluster: KeeperOverCassandra K::ValidFromAnswer, "two valid holders", at 22_100;
    the_keeper_is_not_told_of_a_loss_by_a_cluster: KeeperOverCassandra K::HidesTheLoss, "two valid holders", at 1;
    the_zookeeper_engine_counts_from_the_answer: ZookeeperEngine K::ValidFromAnswer, "two valid holders", at 0;
    the_redis_engine_counts_from_the_answer: RedisEngine K::ValidFromAnswer, "two valid holders", at 69;
    the_keeper_is_not_told_of_a_loss_by_a_server: KeeperOverRedis K::HidesTheLoss, "two valid holders", at 1;
    the_keeper_is_not_told_of_a_loss_by_an_ensemble: KeeperOverZookeeper K::HidesTheLoss, "two valid holders", at 4;
    the_keeper_is_not_told_of_a_loss_by_etcd: KeeperOverEtcd K::HidesTheLoss, "two valid holders", at 4;
}

macro_rules! broken_ensemble {
    ($($test:ident: $defect:expr, $wrong:expr, at $at:literal;)*) => {
        $(
            #[test]
            fn $test() {
                let broken = zookeeper::broken($defect);
                let of = Subject::ZookeeperEngine;
                must_find(stringify!($test), $wrong, $at, Setting { of, wrap_ensemble: &broken, ..Setting::default() });
            }
        )*
    };
}

use zookeeper::Defect as Z;

broken_ensemble! {
    a_contender_in_doubt_is_forgotten: Z::ForgetsContenders, "still wait", at 91;
    a_contender_is_made_late: Z::MakesLate, "still wait", at 14;
    a_removal_in_doubt_is_forgotten: Z::ForgetsRemovals, "still wait", at 9;
    a_search_begins_without_catching_up: Z::SearchesBehind, "still wait", at 1_901;
    a_search_begins_behind_a_sync: Z::SearchesBehindSync, "still wait", at 1_980;
    a_heartbeat_is_a_read: Z::BeatsByReading, "two valid holders", at 72;
    // Once in some thousand seeds.
    a_heartbeat_after_a_silence_counts: Z::IgnoresSilence, "two valid holders", at 23_034;
    a_writer_becomes_a_reader_at_the_end: Z::DowngradesToTheEnd, "two valid holders", at 2;
    a_write_is_taken_for_a_removal: Z::TakesWritesForRemovals, "two valid holders", at 2;
    the_token_is_the_place: Z::TokenIsPlace, "the token of", at 0;
}

macro_rules! broken_etcd {
    ($($test:ident: $defect:expr, $wrong:expr, at $at:literal;)*) => {
        $(
            #[test]
            fn $test() {
                let broken = etcd::broken($defect);
                must_find_everywhere(stringify!($test), $wrong, $at, || Setting {
                    of: Subject::EtcdEngine,
                    wrap_etcd: &broken,
                    ..Setting::default()
                });
            }
        )*
    };
}

use etcd::Defect as D;

/// What a client has in the store is known to it.
const FORGOTTEN: &str = "keys in the store and knows of";

broken_etcd! {
    a_late_request_takes_a_key_back_to_an_older_lease: D::MovesWhatHasChanged, "two valid holders", at 153;
    a_renewal_that_was_refused_counts: D::BelievesRefusedMoves, "two valid holders", at 4;
    a_contender_enters_after_the_second_before_it: D::EntersAfterTheSecond, "two valid holders", at 0;
    what_is_undone_leaves_no_mark: D::LeavesNoMark, FORGOTTEN, at 355;
    a_key_in_doubt_is_forgotten: D::ForgetsContenders, FORGOTTEN, at 6;
    the_deletion_of_a_key_in_doubt_is_forgotten: D::ForgetsRemovals, FORGOTTEN, at 5;
    a_change_is_taken_for_a_deletion: D::TakesChangesForDeletions, "two valid holders", at 4;
    the_end_of_a_watch_is_taken_for_a_deletion: D::TakesSilenceForDeletion, "two valid holders", at 1;
    the_token_has_no_floor: D::TokenIsPlace, "the token of", at 0;
    the_etcd_lease_lives_for_half_of_its_time: D::LeaseIsShorter, "two valid holders", at 12;
}

#[test]
fn the_etcd_engine_counts_from_the_answer() {
    let broken = keeper::broken(K::ValidFromAnswer);
    must_find_everywhere("the_etcd_engine_counts_from_the_answer", "two valid holders", 22, || Setting {
        of: Subject::EtcdEngine,
        wrap: &broken,
        ..Setting::default()
    });
}

/// A leader that was deposed while it stood still ends such a lease, whatever its successor has prolonged.
#[test]
fn the_etcd_engine_prolongs_leases() {
    let etcd_mistakes = ylock_simulation::etcd::Mistakes { prolongs_leases: true };
    let setting = || Setting { of: Subject::EtcdEngine, etcd_mistakes, ..Setting::default() };
    must_find_everywhere("the_etcd_engine_prolongs_leases", "two valid holders", 10, setting);
}

/// Between the two requests a contender that came later enters.
#[test]
fn a_contender_gives_way_on_etcd_by_two_requests() {
    let broken = etcd::broken(D::GivesWayInTwo);
    let setting = Setting { of: Subject::EtcdEngine, wrap_etcd: &broken, ..Setting::default() };
    must_find_out_of_order("a_contender_gives_way_on_etcd_by_two_requests", 58, setting);
}

#[test]
fn a_contender_gives_way_on_zookeeper_by_two_requests() {
    let broken = zookeeper::broken(Z::GivesWayInTwo);
    let setting = Setting { of: Subject::ZookeeperEngine, wrap_ensemble: &broken, ..Setting::default() };
    must_find_out_of_order("a_contender_gives_way_on_zookeeper_by_two_requests", 40, setting);
}

#[test]
fn a_contender_joins_the_queue_of_redis_in_front() {
    let (right, wrong) = ("if last > ticket then found = before(ticket, number) end", "found = before(0, 0)");
    let setting =
        Setting { of: Subject::RedisEngine, script_mistake: Some((right, wrong)), ..Setting::default() };
    must_find_out_of_order("a_contender_joins_the_queue_of_redis_in_front", 0, setting);
}

macro_rules! broken_scripts {
    ($($test:ident: $of:ident $right:literal => $wrong:literal, $found:expr, at $at:literal;)*) => {
        $(
            #[test]
            fn $test() {
                redis::must_break(Subject::$of, stringify!($test), $found, $at, ($right, $wrong));
            }
        )*
    };
}

// What stands in the scripts, and what stands there in its place.
broken_scripts! {
    a_question_prolongs_nothing: RedisEngine "  prolong(id, held, lease)\n  return finish({ 'granted'" => "  return finish({ 'granted'", "two valid holders", at 133;
    a_renewal_prolongs_nothing: RedisEngine "prolong(id, held, lease)\nforget_undone()" => "forget_undone()", "two valid holders", at 0;
    what_is_undone_is_not_remembered: RedisEngine "if late > 0 then undo(id, late) end" => "", "was undone", at 5;
    what_was_undone_may_be_taken_along: KeeperOverRedis "if next and not is_undone(next) and" => "if next and", "was undone", at 10;
    readers_enter_beside_a_writer: RedisEngine "if mode == 'r' then return not get('w') end" => "if mode == 'r' then return true end", "two valid holders", at 0;
    a_writer_enters_beside_a_reader: RedisEngine "  return num('hn') == 0\nend" => "  return not get('w')\nend", "two valid holders", at 0;
    the_token_is_the_time: RedisEngine "local token = whole(math.max(num('t') + 1, micros))" => "local token = whole(micros)", "the token of", at 16;
    a_lease_ends_early: RedisEngine "local expires = now + lease\n  write_holder(id, {" => "local expires = now + lease / 2\n  write_holder(id, {", "two valid holders", at 55;
    leases_never_end: RedisEngine "    if held and held.expires <= now then\n      remove_holder(id)" => "    if false then", "still wait", at 0;
    a_dead_waiter_keeps_its_place: RedisEngine "    if waits.alive <= now then\n      forget_waiter(id, waits)\n    else" => "    if false then\n    else", "still wait", at 2;
    the_quick_way_does_not_look_for_waiters: RedisEngine "if not (seen[1] or seen[2] or seen[3]) and" => "if not (seen[1] or seen[3]) and", "still wait", at 221;
    the_quick_way_does_not_look_for_what_was_undone: RedisEngine "if not (seen[1] or seen[2] or seen[3]) and" => "if not (seen[1] or seen[2]) and", "was undone", at 104;
}

/// Tasks wait for single locks in any order, and hold those that they have.
#[test]
fn sets_are_not_sorted() {
    must_find_everywhere("sets_are_not_sorted", "still wait", 0, || Setting {
        of: Subject::KeeperOverMemory,
        sets: Sets::Unsorted,
        ..Setting::default()
    });
}

/// Tasks wait for one lock of a set, and do not look after those that they have.
#[test]
fn a_set_ignores_a_loss_while_it_waits() {
    must_find_everywhere("a_set_ignores_a_loss_while_it_waits", "that is not whole", 6, || Setting {
        of: Subject::KeeperOverMemory,
        sets: Sets::Heedless,
        ..Setting::default()
    });
}

/// Requests ask for more than the session allows, and get it.
#[test]
fn the_lease_is_longer_than_the_session() {
    let (of, broken) = (Subject::ZookeeperEngine, zookeeper::broken(Z::LeaseIsLonger));
    let leases = [5, 20].map(Duration::from_secs).to_vec();
    let setting = Setting { of, leases, wrap_ensemble: &broken, ..Setting::default() };
    must_find("the_lease_is_longer_than_the_session", "two valid holders", 26, setting);
}

#[test]
fn what_happened_without_a_connection_is_believed() {
    let (of, mistakes) = (Subject::ZookeeperEngine, Mistakes { believes_outcomes: true });
    let setting = Setting { of, mistakes, ..Setting::default() };
    must_find("what_happened_without_a_connection_is_believed", "two valid holders", 90, setting);
}
