//! The list of all cases, which is written nowhere else: which part [decides](crate::DecidedBy) what each checks, and what it needs.

/// Calls a macro with what it wants and the list of all cases, which is written nowhere else.
#[doc(hidden)]
#[macro_export]
macro_rules! __for_all_cases {
    ([$($callback:tt)+] $arguments:tt) => {
        $($callback)+! { $arguments
            basics {
                a_lock_is_granted_shown_and_given_back store []
                a_writer_excludes_other_owners_of_its_client keeper []
                a_writer_excludes_other_clients store []
                an_owner_is_a_stranger_in_another_client engine []
                a_release_lets_exactly_one_writer_in store []
                many_tasks_of_many_clients_never_overlap store []
                dropping_a_guard_gives_back smoke []
                a_panic_gives_back keeper []
                a_guard_is_given_back_by_any_task_or_thread keeper []
                run_does_the_work_under_the_lock_and_gives_back smoke []
                work_inside_run_may_enter_again keeper []
            }
            cancel {
                a_write_is_dropped_after_any_poll store []
                a_read_is_dropped_after_any_poll engine []
                a_try_is_dropped_after_any_poll engine []
                a_limited_wait_is_dropped_after_any_poll keeper []
                a_run_is_dropped_after_any_poll keeper []
                an_unlock_is_dropped_after_any_poll engine []
                a_downgrade_is_dropped_after_any_poll engine []
            }
            cleanup {
                nothing_is_left_in_the_store store []
                idle_keys_are_forgotten keeper []
                a_fast_loop_neither_hangs_nor_leaks engine []
                aborted_tasks_leave_nothing engine []
                guards_outlive_the_handles_of_their_client keeper []
                ten_thousand_acquisitions_that_went_wrong_leave_nothing engine []
            }
            connection {
                a_lost_answer_to_an_acquisition_leaves_no_orphan engine []
                an_acquisition_that_hangs_leaves_no_orphan engine []
                a_lost_answer_to_a_release_does_no_harm engine []
                a_lost_answer_to_a_renewal_does_no_harm engine []
                closing_gives_everything_back engine []
                a_closed_client_acquires_nothing keeper []
                closing_ends_every_wait store []
                closing_in_the_middle_of_work_leaves_nothing engine []
            }
            contract {
                a_grant_repeats_its_request engine []
                a_release_may_be_repeated engine []
                the_release_of_something_unknown_changes_nothing engine []
                a_release_that_crosses_a_renewal_leaves_nothing engine []
                a_renewal_after_a_release_brings_nothing_back engine []
                a_renewal_after_the_lease_is_lost engine []
                many_grants_are_renewed_in_one_call store []
                an_acquisition_dropped_after_any_poll_is_undone_by_its_release store []
                a_contender_leaves_the_queue_by_its_release engine [SharedReads]
                a_revoked_grant_is_lost_at_its_renewal engine []
                an_acquisition_goes_on_after_its_future_was_dropped store []
                a_try_goes_on_after_its_future_was_dropped store []
                a_revocation_that_crosses_a_downgrade_is_not_lost engine []
            }
            crash {
                the_lock_of_a_dead_writer_is_free_after_its_lease store []
                one_who_waits_outlives_a_dead_holder store []
                a_dead_reader_does_not_keep_writers_out engine []
                live_readers_do_not_keep_a_dead_one_alive engine [SharedReads]
                a_dead_client_frees_all_its_locks engine []
            }
            downgrade {
                a_downgraded_writer_shares_with_readers engine [SharedReads]
                a_downgrade_keeps_waiting_writers_out engine []
                a_downgrade_lets_waiting_readers_in store [SharedReads]
                a_write_after_a_downgrade_would_deadlock keeper []
                the_downgrade_of_a_reader_changes_nothing keeper []
                the_lock_stays_exclusive_while_another_guard_writes keeper [SharedReads]
                writing_and_reading_can_alternate engine []
            }
            election {
                one_leads_and_the_next_follows_when_it_resigns smoke []
                candidates_lead_in_the_order_in_which_they_came keeper [Fair]
                terms_grow_from_leader_to_leader keeper [Fencing]
                a_leader_that_died_is_followed_after_its_lease keeper []
                a_leader_that_lost_the_lead_is_told_before_another_leads keeper []
                those_who_observe_are_told_of_each_leader engine []
                an_observer_that_is_dropped_between_two_looks_misses_nothing keeper []
                the_work_of_a_leader_is_stopped_when_the_lead_is_lost keeper []
                a_candidate_that_gives_up_leaves_nothing keeper []
            }
            fencing {
                a_token_is_given_only_where_it_is_promised store []
                tokens_grow_from_holder_to_holder store [Fencing]
                tokens_grow_with_local_hand_overs engine [Fencing]
                no_two_writers_share_a_token engine [Fencing]
                tokens_of_readers_and_writers_are_ordered engine [Fencing SharedReads]
                tokens_stay_ordered_through_a_downgrade engine [Fencing SharedReads]
                a_fenced_resource_accepts_every_holder engine [Fencing]
                a_fenced_resource_rejects_one_who_overslept engine [Fencing]
                a_token_is_verified_while_its_grant_is_held store [Fencing]
                the_late_work_of_an_owner_that_lost_the_lock_and_has_it_again_is_refused engine [Fencing]
            }
            growing {
                a_set_that_grows_in_order_runs_once keeper []
                a_lock_out_of_order_that_is_free_is_granted keeper []
                a_lock_out_of_order_that_is_held_makes_it_begin_anew smoke []
                readers_that_want_to_write_come_to_an_end keeper [SharedReads]
                an_error_of_the_closure_gives_all_back keeper []
                a_lock_that_is_lost_stops_the_closure keeper []
                sets_that_grow_in_opposite_orders_end keeper []
                a_set_that_grows_is_dropped_after_any_poll keeper []
                a_handle_that_is_kept_takes_nothing keeper []
            }
            keys {
                the_same_name_in_another_group_is_another_lock engine []
                separators_do_not_make_two_locks_one engine []
                any_text_is_a_name store []
                the_longest_names_work_and_longer_ones_are_refused engine []
                options_out_of_their_limits_are_refused engine []
                a_lease_that_may_be_attached_may_be_acquired engine []
                many_names_are_independent engine []
                a_lock_is_the_same_by_either_way keeper []
            }
            layers {
                a_layer_is_told_who_had_to_wait engine []
                a_layer_is_told_of_the_end_of_each_hold_once keeper []
                a_layer_is_told_of_renewals_and_releases keeper []
                a_layer_is_told_of_requests_to_the_store engine []
            }
            lease {
                a_lock_is_renewed_past_five_leases store []
                read_locks_are_renewed engine [SharedReads]
                a_downgraded_lock_is_renewed engine []
                nothing_is_sent_after_a_release keeper []
                a_holder_knows_of_its_loss_before_anybody_gets_in store []
                a_lock_is_over_without_any_word_from_the_store keeper []
                a_holder_that_overslept_disturbs_nobody engine []
                local_waiters_survive_the_loss_of_the_lock_before_them engine []
                a_lock_is_held_for_longer_than_a_minute engine [Fair]
                a_hold_that_lasts_too_long_ends_and_the_next_gets_in engine []
            }
            listing {
                what_is_held_is_listed_and_what_is_free_is_not store []
                what_is_waited_for_is_listed_with_its_waiters engine [Fair]
                a_lock_that_is_shared_is_listed_once_with_all_holders engine [SharedReads]
                a_listing_of_a_group_shows_no_other_group engine []
                the_longest_keys_are_listed engine []
                many_locks_are_listed_page_by_page store []
                what_is_held_all_the_time_is_listed_while_others_come_and_go store []
                what_cannot_be_listed_is_refused engine []
            }
            loss {
                a_revoked_holder_is_told engine []
                a_revoked_lock_goes_to_the_next store []
                who_lost_a_lock_competes_afresh engine []
                a_revocation_takes_the_lock_from_all_readers engine [SharedReads]
                a_revocation_of_a_free_lock_does_nothing engine []
                a_lost_lock_cannot_be_downgraded keeper []
                a_lock_that_was_given_back_is_not_lost keeper []
                run_stops_the_work_when_the_lock_is_lost keeper []
                a_revocation_hits_no_waiter engine []
            }
            many {
                a_set_is_granted_whole_and_given_back smoke []
                a_try_for_a_set_gets_all_or_none keeper []
                a_set_that_waits_holds_nothing_after_what_it_waits_for keeper []
                sets_in_opposite_orders_end keeper []
                single_locks_in_opposite_orders_wait_for_each_other keeper []
                a_set_that_loses_a_lock_while_it_waits_begins_anew keeper [Fair]
                a_lost_lock_is_told_and_the_others_stay keeper []
                a_run_under_a_set_stops_when_one_lock_is_lost keeper []
                a_set_that_comes_too_late_leaves_nothing keeper []
                a_set_is_dropped_after_any_poll keeper []
                a_limited_set_is_dropped_after_any_poll keeper []
                a_run_under_a_set_is_dropped_after_any_poll keeper []
                closing_ends_sets_and_waits_for_them keeper []
                an_owner_enters_its_set_again keeper []
                sets_of_readers_share keeper [SharedReads]
                a_set_of_a_hundred engine []
                guards_leave_a_set_and_form_one keeper []
            }
            names {
                those_who_look_see_the_names_of_clients engine [Fair]
                a_name_stays_with_its_acquisition engine []
                the_error_of_a_wait_that_is_over_says_who_was_before keeper [Fair]
            }
            next {
                a_grant_that_a_release_handed_on_counts_from_when_the_store_counts store [Fair]
                what_a_release_handed_on_is_over_after_its_lease engine []
                what_a_release_took_along_is_undone_by_its_own_release engine []
                a_release_dropped_after_any_poll_leaves_nothing_of_what_it_took_along engine []
                an_announced_waiter_that_gave_up_keeps_no_reader_out engine [SharedReads]
                an_announced_waiter_goes_with_its_grant engine [SharedReads]
                an_announced_waiter_goes_with_a_grant_that_lapses engine [SharedReads]
                an_announced_waiter_is_let_in_for_its_own_lease engine [SharedReads]
            }
            once_per {
                a_period_is_run_once store []
                of_three_replicas_exactly_one_runs_each_period store []
                a_job_that_outlasts_its_period_delays_the_next keeper []
                who_comes_while_it_is_run_is_told_so keeper []
                tasks_of_one_owner_do_not_run_it_twice keeper []
                a_clock_that_is_behind_skips_and_one_far_behind_is_told keeper []
                one_who_dies_in_the_middle_has_used_up_the_period keeper []
                work_that_is_to_be_done_is_taken_over_from_one_who_dies keeper []
                work_that_fails_is_repeated_only_where_that_is_wanted keeper []
                work_whose_lock_is_lost_is_stopped keeper []
                a_lost_answer_leads_to_no_second_run engine []
                who_has_lost_the_lock_by_the_answer_runs_nothing keeper []
                a_call_is_dropped_after_any_poll keeper []
                a_late_write_of_a_former_holder_does_not_count engine []
                each_name_is_a_job_of_its_own engine []
                a_run_outlives_its_client engine []
            }
            order {
                a_hundred_of_one_client_are_served_in_order keeper []
                the_first_poll_takes_the_place engine []
                clients_are_served_in_the_order_in_which_they_came store [Fair]
                each_clients_tasks_are_served_in_order keeper []
                strict_is_one_order_over_all_clients store [Fair]
                a_busy_client_lets_others_have_their_turn engine [Fair]
                readers_and_writers_are_served_in_turn engine [Fair]
            }
            queue {
                one_who_gives_up_in_the_middle_changes_no_order store [Fair]
                the_queue_is_shown_in_order engine [Fair]
                a_dead_client_at_the_head_is_skipped store [Fair]
                a_dead_writer_in_the_queue_does_not_keep_readers_out engine [SharedReads]
                a_reader_gets_in_when_the_writer_before_it_is_gone store [SharedReads]
                many_dead_clients_cost_one_lease_together engine [Fair]
                a_wait_may_be_longer_than_many_leases store [Fair]
                a_short_pause_does_not_cost_the_place engine [Fair]
                one_who_overslept_in_the_queue_does_not_get_in_beside_another store [Fair]
            }
            read_write {
                readers_share store [SharedReads]
                a_writer_excludes_readers engine []
                a_reader_excludes_writers engine []
                a_reader_that_leaves_does_not_end_the_others engine [SharedReads]
                readers_share_again_after_a_writer engine [SharedReads]
                waiting_readers_enter_together store [SharedReads]
                a_reader_stays_behind_a_writer_of_its_client keeper []
                a_reader_stays_behind_a_writer_of_another_client engine [Fair]
                a_reader_does_not_join_its_client_past_a_writer_of_another engine [Fair SharedReads]
                a_reader_does_not_join_its_client_when_its_time_is_over engine [Fair SharedReads]
                a_writer_is_not_starved_by_readers_of_its_client keeper []
                a_writer_is_not_starved_by_readers_of_other_clients engine [Fair]
                readers_and_writers_never_overlap store [SharedReads]
                run_read_shares keeper [SharedReads]
            }
            reentry {
                the_same_owner_enters_again_at_once smoke []
                as_many_releases_as_acquisitions_in_any_order keeper []
                a_spawned_task_does_not_inherit_the_owner keeper []
                tasks_of_one_owner_are_inside_together keeper []
                reentry_keeps_the_token_and_the_lease keeper []
                reentry_does_not_queue keeper []
                an_owner_that_waits_twice_gets_in_twice keeper []
            }
            reentry_modes {
                a_read_inside_a_write_is_granted smoke []
                a_read_that_outlives_its_write_is_shared keeper [SharedReads]
                a_reader_enters_again_although_a_writer_waits keeper []
                a_write_inside_a_read_would_deadlock keeper []
                two_readers_that_want_to_write_do_not_deadlock keeper [SharedReads]
                an_owner_that_waits_for_both_modes_does_not_hang keeper []
            }
            runtimes {
                a_client_goes_on_in_another_runtime store []
                holders_outlive_the_runtime_in_which_their_client_began engine []
                a_guard_outlives_all_runtimes_of_its_client engine []
                a_holder_whose_thread_is_blocked_keeps_its_lock store []
                a_runtime_that_is_not_driven_any_more_costs_the_others_nothing store []
                a_lock_that_goes_to_a_waiter_which_does_not_run_goes_on_to_the_others store []
                waiters_of_a_runtime_that_ended_leave_the_queue engine [Fair]
                a_runtime_ends_in_the_middle_of_everything engine []
            }
            semaphores {
                there_are_as_many_holders_as_permits smoke [SharedReads]
                a_permit_is_not_reentered keeper [SharedReads]
                never_more_are_inside_than_permits keeper [SharedReads]
                permits_go_to_those_who_came_first keeper [Fair SharedReads]
                strict_permits_go_to_those_who_came_first_over_all_tasks keeper [Fair SharedReads]
                another_number_of_permits_is_an_error keeper [SharedReads]
                a_lock_of_the_same_name_is_another_lock keeper [SharedReads]
                the_locks_of_a_semaphore_cannot_be_acquired_by_name keeper [SharedReads]
                a_try_is_refused_only_where_no_permit_is_free keeper [SharedReads]
                a_semaphore_is_listed_and_looked_at_as_one keeper [SharedReads]
                the_permit_of_a_dead_client_is_free_after_its_lease keeper [SharedReads]
                tries_get_the_permits_of_a_dead_client_after_its_lease keeper [SharedReads]
                a_revocation_takes_all_permits keeper [SharedReads]
                a_run_with_a_permit_stops_when_it_is_lost keeper [SharedReads]
                a_wait_for_a_permit_that_is_over_leaves_nothing keeper [SharedReads]
                bad_numbers_of_permits_are_refused keeper [SharedReads]
                a_wait_for_a_permit_is_dropped_after_any_poll keeper [SharedReads]
            }
            tries {
                a_try_on_a_free_lock_gets_it engine []
                a_try_on_a_held_lock_answers_none_and_leaves_nothing engine []
                a_try_does_not_overtake_those_who_wait engine [Fair]
                of_many_tries_at_once_exactly_one_wins store [Fair]
                waiting_for_no_time_is_a_try keeper []
                a_wait_ends_on_time engine []
                a_wait_of_ages_is_no_overflow keeper [Fair]
                the_wait_of_the_options_ends_in_timed_out keeper []
                a_wait_that_is_over_leaves_no_place_in_the_queue store []
                a_grant_in_the_last_moment_is_not_lost store []
                an_outer_timeout_is_as_good_as_our_own engine []
            }
            workloads {
                equal_increments_of_10_accounts engine []
                equal_increments_of_30_accounts keeper []
                a_sum_stays_zero_with_4_clients engine []
                a_sum_stays_zero_with_32_clients keeper []
            }
        }
    };
}
