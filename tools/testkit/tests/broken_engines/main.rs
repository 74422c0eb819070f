//! The test of the tests: each of these engines makes one mistake, and the named cases must notice it.
//!
//! Not here, because they are mistakes inside an engine and not visible through one call: a queue that only counts
//! its rows, a token that is read and written without looking again, an entry of an old session that is taken for one's
//! own. The engines that could make them look for them in their own simulations.

#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it looks at real time and starts tasks of its own"
)]

mod broken;
mod defect;
mod listing;

use std::sync::{Arc, Once};

use broken::Broken;
use defect::Defect;
use tokio::runtime::Builder;
use ylock_testkit::{Case, run_case};

const THREAD: &str = "expected to fail";
/// The number of times that a case is played that looks for a race, and may miss it.
const PLAYS: usize = 50;

/// Runs one case against one broken engine, and fails if the case does not.
fn must_notice(defect: Defect, case: Case) {
    hush();
    let runtime =
        Builder::new_multi_thread().worker_threads(2).thread_name(THREAD).enable_all().build().unwrap();
    let how =
        (0..PLAYS).find_map(|_| runtime.block_on(run_case(Arc::new(Broken::harness(defect)), case)).err());
    runtime.shutdown_background();
    match how {
        None => panic!("{case} did not notice {defect:?}"),
        Some(how) => println!("| {defect:?} | {case} | {} |", how.lines().next().unwrap_or_default()),
    }
}

/// The failures are expected: their messages would only hide those that are not.
fn hush() {
    static HUSH: Once = Once::new();
    HUSH.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if std::thread::current().name() != Some(THREAD) {
                loud(panic);
            }
        }));
    });
}

macro_rules! noticed {
    ($($test:ident: $defect:ident by $($module:ident::$case:ident),+;)*) => {
        $(
            #[test]
            fn $test() {
                $(must_notice(Defect::$defect, Case::named(stringify!($module), stringify!($case)));)+
            }
        )*
    };
}

noticed! {
    an_engine_without_any_lock: NoLock by
        basics::a_writer_excludes_other_clients,
        basics::many_tasks_of_many_clients_never_overlap,
        tries::of_many_tries_at_once_exactly_one_wins,
        read_write::readers_and_writers_never_overlap,
        many::a_try_for_a_set_gets_all_or_none,
        many::sets_in_opposite_orders_end,
        growing::sets_that_grow_in_opposite_orders_end,
        workloads::equal_increments_of_10_accounts,
        workloads::equal_increments_of_30_accounts,
        workloads::a_sum_stays_zero_with_4_clients,
        workloads::a_sum_stays_zero_with_32_clients;
    an_engine_that_locks_only_its_own_client: LocksOnlyItsOwnClient by
        basics::a_writer_excludes_other_clients,
        basics::an_owner_is_a_stranger_in_another_client;
    an_engine_that_only_claims_to_renew: OnlyClaimsToRenew by
        lease::a_lock_is_renewed_past_five_leases,
        lease::read_locks_are_renewed;
    an_engine_that_releases_whoever_holds: ReleasesWhoeverHolds by
        lease::a_holder_that_overslept_disturbs_nobody,
        read_write::a_reader_that_leaves_does_not_end_the_others,
        contract::a_release_may_be_repeated;
    an_engine_that_renews_what_was_released: RenewsWhatWasReleased by
        contract::a_renewal_after_a_release_brings_nothing_back;
    an_engine_that_enters_after_its_place_lapsed: EntersAfterItsPlaceLapsed by
        queue::one_who_overslept_in_the_queue_does_not_get_in_beside_another;
    an_engine_that_hides_the_loss: HidesTheLoss by
        loss::a_revoked_holder_is_told,
        loss::who_lost_a_lock_competes_afresh,
        many::a_lost_lock_is_told_and_the_others_stay,
        growing::a_lock_that_is_lost_stops_the_closure,
        contract::a_renewal_after_the_lease_is_lost;
    an_engine_that_releases_all_readers: ReleasesAllReaders by
        read_write::a_reader_that_leaves_does_not_end_the_others,
        lease::read_locks_are_renewed;
    an_engine_with_one_lease_for_all_readers: OneLeaseForAllReaders by
        crash::live_readers_do_not_keep_a_dead_one_alive;
    an_engine_that_repeats_tokens: RepeatsTokens by
        fencing::tokens_grow_from_holder_to_holder,
        fencing::no_two_writers_share_a_token,
        fencing::a_fenced_resource_rejects_one_who_overslept,
        fencing::a_token_is_verified_while_its_grant_is_held,
        fencing::the_late_work_of_an_owner_that_lost_the_lock_and_has_it_again_is_refused;
    an_engine_that_stays_in_the_queue: StaysInTheQueue by
        tries::a_wait_that_is_over_leaves_no_place_in_the_queue,
        queue::one_who_gives_up_in_the_middle_changes_no_order,
        cancel::a_write_is_dropped_after_any_poll,
        many::a_set_is_dropped_after_any_poll,
        growing::a_set_that_grows_is_dropped_after_any_poll;
    an_engine_whose_tries_stay_in_the_queue: TriesStayInTheQueue by
        tries::a_try_on_a_held_lock_answers_none_and_leaves_nothing;
    an_engine_whose_tries_meet_their_own_traces: RefusesAgain by
        contract::a_try_goes_on_after_its_future_was_dropped;
    an_engine_whose_leases_end_early: LeaseEndsEarly by
        lease::a_holder_knows_of_its_loss_before_anybody_gets_in;
    an_engine_that_overtakes: Overtakes by
        order::clients_are_served_in_the_order_in_which_they_came,
        read_write::a_reader_stays_behind_a_writer_of_another_client;
    an_engine_whose_readers_overtake: ReadersOvertake by
        read_write::a_reader_stays_behind_a_writer_of_another_client,
        read_write::a_writer_is_not_starved_by_readers_of_other_clients,
        tries::a_try_does_not_overtake_those_who_wait;
    an_engine_that_downgrades_with_a_gap: DowngradesWithAGap by
        downgrade::a_downgrade_keeps_waiting_writers_out;
    an_engine_that_downgrades_in_silence: DowngradesInSilence by
        downgrade::a_downgraded_writer_shares_with_readers,
        downgrade::a_downgrade_lets_waiting_readers_in;
    an_engine_that_ignores_revocation: IgnoresRevocation by
        loss::a_revoked_holder_is_told,
        contract::a_revoked_grant_is_lost_at_its_renewal;
    an_engine_whose_handed_on_grants_count_from_the_question: CountsFromTheQuestion by
        next::a_grant_that_a_release_handed_on_counts_from_when_the_store_counts;
    an_engine_that_keeps_what_a_release_took_along: KeepsWhatAReleaseTook by
        next::what_a_release_took_along_is_undone_by_its_own_release,
        next::a_release_dropped_after_any_poll_leaves_nothing_of_what_it_took_along;
    an_engine_whose_announced_waiters_stay: AnnouncedWaitersStay by
        next::an_announced_waiter_that_gave_up_keeps_no_reader_out,
        next::an_announced_waiter_goes_with_its_grant;
    an_engine_that_lends_a_holders_lease_to_who_waits_behind_it: LendsTheHoldersLease by
        next::an_announced_waiter_is_let_in_for_its_own_lease;
    an_engine_that_downgrades_away_a_revocation: DowngradesAwayARevocation by
        contract::a_revocation_that_crosses_a_downgrade_is_not_lost;
    an_engine_that_revokes_waiters: RevokesWaiters by
        loss::a_revocation_hits_no_waiter;
    an_engine_that_dies_with_its_runtime: DiesWithItsRuntime by
        runtimes::a_client_goes_on_in_another_runtime,
        runtimes::holders_outlive_the_runtime_in_which_their_client_began,
        runtimes::a_guard_outlives_all_runtimes_of_its_client,
        runtimes::waiters_of_a_runtime_that_ended_leave_the_queue;
    an_engine_that_takes_sleep_for_an_outage: TakesSleepForAnOutage by
        queue::one_who_overslept_in_the_queue_does_not_get_in_beside_another;
    an_engine_that_forgets_names: ForgetsNames by
        names::those_who_look_see_the_names_of_clients,
        names::a_name_stays_with_its_acquisition,
        names::the_error_of_a_wait_that_is_over_says_who_was_before;
    an_engine_that_refuses_a_lease_late: RefusesLate by
        keys::a_lease_that_may_be_attached_may_be_acquired;
    an_engine_that_forgets_runs: ForgetsRuns by
        once_per::a_period_is_run_once,
        once_per::of_three_replicas_exactly_one_runs_each_period,
        once_per::a_run_outlives_its_client;
    an_engine_whose_late_runs_count: LateRunsCount by
        once_per::a_late_write_of_a_former_holder_does_not_count;
    an_engine_with_one_run_for_all_names: OneRunForAllNames by
        once_per::each_name_is_a_job_of_its_own;
    an_engine_that_stores_runs_later: StoresRunsLater by
        once_per::a_period_is_run_once;
    an_engine_for_which_no_run_is_done: NoRunIsDone by
        once_per::work_that_is_to_be_done_is_taken_over_from_one_who_dies;
    an_engine_that_lists_one_page: ListsOnePage by
        listing::many_locks_are_listed_page_by_page;
    an_engine_that_lists_by_prefix: ListsByPrefix by
        listing::a_listing_of_a_group_shows_no_other_group;
    an_engine_that_counts_what_it_listed: CountsWhatItListed by
        listing::what_is_held_all_the_time_is_listed_while_others_come_and_go;
    an_engine_that_lists_after_anything: ListsAfterAnything by
        listing::what_cannot_be_listed_is_refused;
    an_engine_that_lists_no_long_names: ListsNoLongNames by
        listing::the_longest_keys_are_listed;
    an_engine_that_remembers_refusals: RemembersRefusals by
        cleanup::ten_thousand_acquisitions_that_went_wrong_leave_nothing;
}
