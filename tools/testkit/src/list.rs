//! The list of all cases, which is written nowhere else, and what each needs.

/// Calls a macro with what it wants and the list of all cases, which is written nowhere else.
#[doc(hidden)]
#[macro_export]
macro_rules! __for_all_cases {
    ([$($callback:tt)+] $arguments:tt) => {
        $($callback)+! { $arguments
            basics {
                a_lock_is_granted_shown_and_given_back []
                a_writer_excludes_other_owners_of_its_client []
                a_writer_excludes_other_clients []
                an_owner_is_a_stranger_in_another_client []
                a_release_lets_exactly_one_writer_in []
                many_tasks_of_many_clients_never_overlap []
                dropping_a_guard_gives_back []
                a_panic_gives_back []
                a_guard_is_given_back_by_any_task_or_thread []
                run_does_the_work_under_the_lock_and_gives_back []
                work_inside_run_may_enter_again []
            }
            cancel {
                a_write_is_dropped_after_any_poll []
                a_read_is_dropped_after_any_poll []
                a_try_is_dropped_after_any_poll []
                a_limited_wait_is_dropped_after_any_poll []
                a_run_is_dropped_after_any_poll []
                an_unlock_is_dropped_after_any_poll []
                a_downgrade_is_dropped_after_any_poll []
            }
            cleanup {
                nothing_is_left_in_the_store []
                idle_keys_are_forgotten []
                a_fast_loop_neither_hangs_nor_leaks []
                aborted_tasks_leave_nothing []
                guards_outlive_the_handles_of_their_client []
                ten_thousand_acquisitions_that_went_wrong_leave_nothing []
            }
            connection {
                a_lost_answer_to_an_acquisition_leaves_no_orphan []
                an_acquisition_that_hangs_leaves_no_orphan []
                a_lost_answer_to_a_release_does_no_harm []
                a_lost_answer_to_a_renewal_does_no_harm []
                closing_gives_everything_back []
                a_closed_client_acquires_nothing []
                closing_ends_every_wait []
                closing_in_the_middle_of_work_leaves_nothing []
            }
            contract {
                a_grant_repeats_its_request []
                a_release_may_be_repeated []
                the_release_of_something_unknown_changes_nothing []
                a_release_that_crosses_a_renewal_leaves_nothing []
                a_renewal_after_a_release_brings_nothing_back []
                a_renewal_after_the_lease_is_lost []
                many_grants_are_renewed_in_one_call []
                an_acquisition_dropped_after_any_poll_is_undone_by_its_release []
                a_contender_leaves_the_queue_by_its_release [SharedReads]
                a_revoked_grant_is_lost_at_its_renewal []
                an_acquisition_goes_on_after_its_future_was_dropped []
                a_try_goes_on_after_its_future_was_dropped []
                a_revocation_that_crosses_a_downgrade_is_not_lost []
            }
            crash {
                the_lock_of_a_dead_writer_is_free_after_its_lease []
                one_who_waits_outlives_a_dead_holder []
                a_dead_reader_does_not_keep_writers_out []
                live_readers_do_not_keep_a_dead_one_alive [SharedReads]
                a_dead_client_frees_all_its_locks []
            }
            downgrade {
                a_downgraded_writer_shares_with_readers [SharedReads]
                a_downgrade_keeps_waiting_writers_out []
                a_downgrade_lets_waiting_readers_in [SharedReads]
                a_write_after_a_downgrade_would_deadlock []
                the_downgrade_of_a_reader_changes_nothing []
                the_lock_stays_exclusive_while_another_guard_writes [SharedReads]
                writing_and_reading_can_alternate []
            }
            election {
                one_leads_and_the_next_follows_when_it_resigns []
                candidates_lead_in_the_order_in_which_they_came [Fair]
                terms_grow_from_leader_to_leader [Fencing]
                a_leader_that_died_is_followed_after_its_lease []
                a_leader_that_lost_the_lead_is_told_before_another_leads []
                those_who_observe_are_told_of_each_leader []
                an_observer_that_is_dropped_between_two_looks_misses_nothing []
                the_work_of_a_leader_is_stopped_when_the_lead_is_lost []
                a_candidate_that_gives_up_leaves_nothing []
            }
            fencing {
                a_token_is_given_only_where_it_is_promised []
                tokens_grow_from_holder_to_holder [Fencing]
                tokens_grow_with_local_hand_overs [Fencing]
                no_two_writers_share_a_token [Fencing]
                tokens_of_readers_and_writers_are_ordered [Fencing SharedReads]
                tokens_stay_ordered_through_a_downgrade [Fencing SharedReads]
                a_fenced_resource_accepts_every_holder [Fencing]
                a_fenced_resource_rejects_one_who_overslept [Fencing]
                a_token_is_verified_while_its_grant_is_held [Fencing]
                the_late_work_of_an_owner_that_lost_the_lock_and_has_it_again_is_refused [Fencing]
            }
            growing {
                a_set_that_grows_in_order_runs_once []
                a_lock_out_of_order_that_is_free_is_granted []
                a_lock_out_of_order_that_is_held_makes_it_begin_anew []
                readers_that_want_to_write_come_to_an_end [SharedReads]
                an_error_of_the_closure_gives_all_back []
                a_lock_that_is_lost_stops_the_closure []
                sets_that_grow_in_opposite_orders_end []
                a_set_that_grows_is_dropped_after_any_poll []
                a_handle_that_is_kept_takes_nothing []
            }
            keys {
                the_same_name_in_another_group_is_another_lock []
                separators_do_not_make_two_locks_one []
                any_text_is_a_name []
                the_longest_names_work_and_longer_ones_are_refused []
                options_out_of_their_limits_are_refused []
                a_lease_that_may_be_attached_may_be_acquired []
                many_names_are_independent []
                a_lock_is_the_same_by_either_way []
            }
            layers {
                a_layer_is_told_who_had_to_wait []
                a_layer_is_told_of_the_end_of_each_hold_once []
                a_layer_is_told_of_renewals_and_releases []
                a_layer_is_told_of_requests_to_the_store []
            }
            lease {
                a_lock_is_renewed_past_five_leases []
                read_locks_are_renewed [SharedReads]
                a_downgraded_lock_is_renewed []
                nothing_is_sent_after_a_release []
                a_holder_knows_of_its_loss_before_anybody_gets_in []
                a_lock_is_over_without_any_word_from_the_store []
                a_holder_that_overslept_disturbs_nobody []
                local_waiters_survive_the_loss_of_the_lock_before_them []
                a_lock_is_held_for_longer_than_a_minute [Fair]
            }
            listing {
                what_is_held_is_listed_and_what_is_free_is_not []
                what_is_waited_for_is_listed_with_its_waiters [Fair]
                a_lock_that_is_shared_is_listed_once_with_all_holders [SharedReads]
                a_listing_of_a_group_shows_no_other_group []
                the_longest_keys_are_listed []
                many_locks_are_listed_page_by_page []
                what_is_held_all_the_time_is_listed_while_others_come_and_go []
                what_cannot_be_listed_is_refused []
            }
            loss {
                a_revoked_holder_is_told []
                a_revoked_lock_goes_to_the_next []
                who_lost_a_lock_competes_afresh []
                a_revocation_takes_the_lock_from_all_readers [SharedReads]
                a_revocation_of_a_free_lock_does_nothing []
                a_lost_lock_cannot_be_downgraded []
                a_lock_that_was_given_back_is_not_lost []
                run_stops_the_work_when_the_lock_is_lost []
                a_revocation_hits_no_waiter []
            }
            many {
                a_set_is_granted_whole_and_given_back []
                a_try_for_a_set_gets_all_or_none []
                a_set_that_waits_holds_nothing_after_what_it_waits_for []
                sets_in_opposite_orders_end []
                single_locks_in_opposite_orders_wait_for_each_other []
                a_set_that_loses_a_lock_while_it_waits_begins_anew [Fair]
                a_lost_lock_is_told_and_the_others_stay []
                a_run_under_a_set_stops_when_one_lock_is_lost []
                a_set_that_comes_too_late_leaves_nothing []
                a_set_is_dropped_after_any_poll []
                a_limited_set_is_dropped_after_any_poll []
                a_run_under_a_set_is_dropped_after_any_poll []
                closing_ends_sets_and_waits_for_them []
                an_owner_enters_its_set_again []
                sets_of_readers_share [SharedReads]
                a_set_of_a_hundred []
                guards_leave_a_set_and_form_one []
            }
            names {
                those_who_look_see_the_names_of_clients [Fair]
                a_name_stays_with_its_acquisition []
                the_error_of_a_wait_that_is_over_says_who_was_before [Fair]
            }
            next {
                a_grant_that_a_release_handed_on_counts_from_when_the_store_counts [Fair]
                what_a_release_handed_on_is_over_after_its_lease []
                what_a_release_took_along_is_undone_by_its_own_release []
                a_release_dropped_after_any_poll_leaves_nothing_of_what_it_took_along []
                an_announced_waiter_that_gave_up_keeps_no_reader_out [SharedReads]
                an_announced_waiter_goes_with_its_grant [SharedReads]
                an_announced_waiter_goes_with_a_grant_that_lapses [SharedReads]
                an_announced_waiter_is_let_in_for_its_own_lease [SharedReads]
            }
            once_per {
                a_period_is_run_once []
                of_three_replicas_exactly_one_runs_each_period []
                a_job_that_outlasts_its_period_delays_the_next []
                who_comes_while_it_is_run_is_told_so []
                tasks_of_one_owner_do_not_run_it_twice []
                a_clock_that_is_behind_skips_and_one_far_behind_is_told []
                one_who_dies_in_the_middle_has_used_up_the_period []
                work_that_is_to_be_done_is_taken_over_from_one_who_dies []
                work_that_fails_is_repeated_only_where_that_is_wanted []
                work_whose_lock_is_lost_is_stopped []
                a_lost_answer_leads_to_no_second_run []
                who_has_lost_the_lock_by_the_answer_runs_nothing []
                a_call_is_dropped_after_any_poll []
                a_late_write_of_a_former_holder_does_not_count []
                each_name_is_a_job_of_its_own []
                a_run_outlives_its_client []
            }
            order {
                a_hundred_of_one_client_are_served_in_order []
                the_first_poll_takes_the_place []
                clients_are_served_in_the_order_in_which_they_came [Fair]
                each_clients_tasks_are_served_in_order []
                strict_is_one_order_over_all_clients [Fair]
                a_busy_client_lets_others_have_their_turn [Fair]
                readers_and_writers_are_served_in_turn [Fair]
            }
            queue {
                one_who_gives_up_in_the_middle_changes_no_order [Fair]
                the_queue_is_shown_in_order [Fair]
                a_dead_client_at_the_head_is_skipped [Fair]
                a_dead_writer_in_the_queue_does_not_keep_readers_out [SharedReads]
                a_reader_gets_in_when_the_writer_before_it_is_gone [SharedReads]
                many_dead_clients_cost_one_lease_together [Fair]
                a_wait_may_be_longer_than_many_leases [Fair]
                a_short_pause_does_not_cost_the_place [Fair]
                one_who_overslept_in_the_queue_does_not_get_in_beside_another [Fair]
            }
            read_write {
                readers_share [SharedReads]
                a_writer_excludes_readers []
                a_reader_excludes_writers []
                a_reader_that_leaves_does_not_end_the_others [SharedReads]
                readers_share_again_after_a_writer [SharedReads]
                waiting_readers_enter_together [SharedReads]
                a_reader_stays_behind_a_writer_of_its_client []
                a_reader_stays_behind_a_writer_of_another_client [Fair]
                a_reader_does_not_join_its_client_past_a_writer_of_another [Fair SharedReads]
                a_reader_does_not_join_its_client_when_its_time_is_over [Fair SharedReads]
                a_writer_is_not_starved_by_readers_of_its_client []
                a_writer_is_not_starved_by_readers_of_other_clients [Fair]
                readers_and_writers_never_overlap [SharedReads]
                run_read_shares [SharedReads]
            }
            reentry {
                the_same_owner_enters_again_at_once []
                as_many_releases_as_acquisitions_in_any_order []
                a_spawned_task_does_not_inherit_the_owner []
                tasks_of_one_owner_are_inside_together []
                reentry_keeps_the_token_and_the_lease []
                reentry_does_not_queue []
                an_owner_that_waits_twice_gets_in_twice []
            }
            reentry_modes {
                a_read_inside_a_write_is_granted []
                a_read_that_outlives_its_write_is_shared [SharedReads]
                a_reader_enters_again_although_a_writer_waits []
                a_write_inside_a_read_would_deadlock []
                two_readers_that_want_to_write_do_not_deadlock [SharedReads]
                an_owner_that_waits_for_both_modes_does_not_hang []
            }
            runtimes {
                a_client_goes_on_in_another_runtime []
                holders_outlive_the_runtime_in_which_their_client_began []
                a_guard_outlives_all_runtimes_of_its_client []
                waiters_of_a_runtime_that_ended_leave_the_queue [Fair]
                a_runtime_ends_in_the_middle_of_everything []
            }
            semaphores {
                there_are_as_many_holders_as_permits [SharedReads]
                a_permit_is_not_reentered [SharedReads]
                never_more_are_inside_than_permits [SharedReads]
                permits_go_to_those_who_came_first [Fair SharedReads]
                strict_permits_go_to_those_who_came_first_over_all_tasks [Fair SharedReads]
                another_number_of_permits_is_an_error [SharedReads]
                a_name_is_a_lock_or_a_semaphore [SharedReads]
                a_lock_on_the_name_of_a_semaphore_is_an_error [SharedReads]
                all_that_wait_for_a_semaphore_as_for_a_lock_are_told [SharedReads]
                the_permit_of_a_dead_client_is_free_after_its_lease [SharedReads]
                a_revocation_takes_all_permits [SharedReads]
                a_run_with_a_permit_stops_when_it_is_lost [SharedReads]
                a_wait_for_a_permit_that_is_over_leaves_nothing [SharedReads]
                bad_numbers_of_permits_are_refused [SharedReads]
                a_wait_for_a_permit_is_dropped_after_any_poll [SharedReads]
            }
            tries {
                a_try_on_a_free_lock_gets_it []
                a_try_on_a_held_lock_answers_none_and_leaves_nothing []
                a_try_does_not_overtake_those_who_wait [Fair]
                of_many_tries_at_once_exactly_one_wins [Fair]
                waiting_for_no_time_is_a_try []
                a_wait_ends_on_time []
                a_wait_of_ages_is_no_overflow [Fair]
                the_wait_of_the_options_ends_in_timed_out []
                a_wait_that_is_over_leaves_no_place_in_the_queue []
                a_grant_in_the_last_moment_is_not_lost []
                an_outer_timeout_is_as_good_as_our_own []
            }
            workloads {
                equal_increments_of_10_accounts []
                equal_increments_of_30_accounts []
                a_sum_stays_zero_with_4_clients []
                a_sum_stays_zero_with_32_clients []
            }
        }
    };
}
