//! Mistakes in the functions, one at a time: the comparison must notice each.
//!
//! What it does not see is the time: no lease ends, and the clock is not set. Those lines have tests of their own, on servers whose clock is set. And
//! the quick way out may leave readers behind: without waiters the long one does no more then.

use ylock_core::Owner;
use ylock_engine_postgres::functions::layout;
use ylock_testkit::model;

use super::functions::Functions;
use super::server;

/// By the latest of them the last mistake is noticed.
const SEEDS: u64 = 100;

/// Plays with the functions, in a schema of their own, with one text in the place of another. Returns the first of so many seeds, from `at` on, whose
/// operations make a difference.
async fn noticed(right: &str, wrong: &str, at: u64, seeds: u64) -> Option<u64> {
    // Another run may use the same server.
    let schema = format!("mistake_{}", Owner::new()).replace('-', "");
    let in_schema = |text: &str| text.replace("ylock.", &format!("\"{schema}\"."));
    let (text, right) = (layout(&schema), in_schema(right));
    assert_eq!(text.matches(&right).count(), 1, "the functions say {right:?}");
    let server = server::raw().await;
    let make = text.replace(&right, &in_schema(wrong));
    server.batch_execute(&make).await.expect("the functions are made");
    let mut functions = Functions::of(schema.clone()).await;
    let seed = model::first_difference(&mut functions, at..at + seeds).await;
    drop(functions);
    server.batch_execute(&format!("drop schema {schema} cascade")).await.expect("they are removed");
    seed
}

/// Begins with the seed that noticed the mistake last, so that one play is enough until something changes.
async fn must_be_noticed(mistake: &str, right: &str, wrong: &str, at: u64) {
    match noticed(right, wrong, at, SEEDS).await {
        Some(seed) if seed == at => println!("| {mistake} | seed {seed} |"),
        Some(seed) => println!("| {mistake} | seed {seed}: write it down for {at} |"),
        None => panic!("{mistake}: {SEEDS} seeds from {at} on made no difference"),
    }
}

/// What is noticed is the mistake, and not the other schema.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn functions_without_a_mistake_make_no_difference() {
    assert_eq!(noticed("if r.revoked then", "if r.revoked then", 0, 10).await, None);
}

macro_rules! mistakes {
    ($($name:ident at $at:literal: $right:literal => $wrong:literal;)*) => {
        $(
            #[tokio::test]
            #[ignore = "needs postgres: run `cargo xtask test`"]
            async fn $name() {
                must_be_noticed(stringify!($name), $right, $wrong, $at).await;
            }
        )*
    };
}

mistakes! {
    the_quick_way_in_does_not_look_for_waiters at 1:
        "where x.key = k and x.id is null and not x.shared and not x.waiting and x.undone is null"
        => "where x.key = k and x.id is null and not x.shared and x.undone is null";
    the_quick_way_in_does_not_look_for_readers at 7:
        "where x.key = k and x.id is null and not x.shared and not x.waiting and x.undone is null"
        => "where x.key = k and x.id is null and not x.waiting and x.undone is null";
    the_quick_way_in_does_not_look_for_what_was_undone at 0:
        "where x.key = k and x.id is null and not x.shared and not x.waiting and x.undone is null"
        => "where x.key = k and x.id is null and not x.shared and not x.waiting";
    what_was_undone_is_not_refused at 0:
        "if ylock.is_undone(l, i, now) then\n    return 'undone';" => "if false then\n    return 'undone';";
    what_was_undone_is_not_remembered at 0: "if late > 0 then" => "if false then";
    a_fair_one_goes_before_those_that_wait at 0:
        "and (not fair or not l.waiting or not exists" => "and (true or not l.waiting or not exists";
    a_reader_that_asks_again_is_not_found at 4:
        "is_there := is_there or l.id = i or l.shared and exists (select from ylock.reader x where x.key = k and x.id = i);"
        => "is_there := is_there or l.id = i;";
    a_waiter_that_asks_again_is_not_found at 0: "    is_there := found;" => "    is_there := false;";
    a_try_that_had_a_place_keeps_it at 0: "    l := (ylock.leave(l, i, now)).l;\n" => "";
    one_that_asks_is_not_let_in at 7: "l := ylock.settle(l, now, i, tell);\n  end if;\n  is_there" => "end if;\n  is_there";
    the_quick_way_out_does_not_look_for_waiters at 1:
        "if l.id = i and not l.waiting and not l.shared and l.behind is null and late = 0 and n is null then"
        => "if l.id = i and not l.shared and l.behind is null and late = 0 and n is null then";
    the_quick_way_out_forgets_what_may_come_late at 12:
        "if l.id = i and not l.waiting and not l.shared and l.behind is null and late = 0 and n is null then"
        => "if l.id = i and not l.waiting and not l.shared and l.behind is null and n is null then";
    the_quick_way_out_forgets_the_next_one at 1:
        "if l.id = i and not l.waiting and not l.shared and l.behind is null and late = 0 and n is null then"
        => "if l.id = i and not l.waiting and not l.shared and l.behind is null and late = 0 then";
    a_release_lets_no_waiter_in at 0: "l := ylock.settle(l, now, n, tell);" => "";
    the_next_one_leaves_with_the_holder_it_stood_behind at 3:
        "update ylock.waiter w set behind = null where w.key = k and w.id = n and w.behind = i;" => "";
    a_next_one_that_was_undone_joins at 0:
        "if ylock.is_undone(l, n, now) or l.id is not distinct from n or exists" => "if l.id is not distinct from n or exists";
    a_next_one_that_is_inside_joins at 0:
        "or l.id is not distinct from n or exists (select from ylock.reader x where x.key = l.key and x.id = n) then" => "then";
    a_next_one_goes_on_standing_behind_another at 2: "set alive = until, behind = null where" => "set alive = until where";
    a_revoked_grant_is_renewed at 1: "if r.revoked then" => "if false then";
    a_reader_that_has_joined_is_not_revoked at 12:
        "update ylock.reader set revoked = true where" => "update ylock.reader set revoked = false where";
    a_writer_that_becomes_a_reader_lets_none_in at 41: "l := ylock.settle(l, now, null, tell);" => "";
    a_reader_becomes_a_writer at 2: "if l.mode = 'w' and m = 'r' then\n      l.mode := 'r';" => "if true then\n      l.mode := m;";
    the_quick_renewal_forgets_what_stands_behind at 7:
        "if is_first and b is null and l.behind is null and l.undone is null and l.mode = m then"
        => "if is_first and b is null and l.undone is null and l.mode = m then";
    the_quick_renewal_does_not_look_at_the_mode at 3:
        "if is_first and b is null and l.behind is null and l.undone is null and l.mode = m then"
        => "if is_first and b is null and l.behind is null and l.undone is null then";
    one_that_stood_behind_stays_when_it_is_not_named at 2: "if stander is distinct from b then" => "if false then";
    one_that_was_undone_stands_behind at 12: "if b is not null and not ylock.is_undone(l, b, now) then" => "if b is not null then";
    one_that_is_inside_stands_behind at 7:
        "elsif not found and l.id is distinct from b and not exists (select from ylock.reader x where x.key = k and x.id = b) then"
        => "elsif not found then";
    readers_enter_beside_a_writer at 0: "then l.id is null or l.mode = 'r' else" => "then true else";
    a_writer_enters_beside_readers at 4: "else l.id is null and not l.shared end" => "else l.id is null end";
    a_reader_passes_a_writer_that_waits at 1: "exit when not ylock.is_free(l, w.mode);" => "continue when not ylock.is_free(l, w.mode);";
    one_that_stands_behind_is_let_in at 20: "continue when w.behind is not null;" => "";
    one_that_asks_is_passed at 0: "exit when heard = 'asks';" => "continue when heard = 'asks';";
    one_that_asks_is_let_in_unheard at 0: "exit when heard = 'asks';" => "";
    one_that_hears_nothing_is_in_the_way at 1: "continue when heard = 'deaf';" => "exit when heard = 'deaf';";
    one_that_hears_nothing_is_let_in at 1: "continue when heard = 'deaf';" => "";
    a_ticket_is_no_place at 3: "order by x.ticket, x.number loop" => "order by x.number, x.ticket loop";
    a_ticket_that_was_brought_is_not_taken at 0: "least(coalesce(ticket, now), now)" => "now";
    the_waiter_itself_is_contention at 7: "and w.id is distinct from own and" => "and";
    readers_that_wait_are_contention_for_readers at 8: "and (m = 'w' or w.mode = 'w')" => "";
    waiters_are_no_contention at 0: "begin\n  if not l.waiting then\n    return 0;" => "begin\n  if true then\n    return 0;";
    what_stands_behind_stays_when_the_holder_goes at 3:
        "begin\n  perform ylock.remove_stander(l.key, l.id, l.behind);" => "begin";
    what_asks_by_itself_goes_with_the_holder at 2: "and w.id = stander and w.behind = holder" => "and w.id = stander";
    the_last_reader_leaves_readers_behind at 2: "l.shared := exists (select from ylock.reader x where x.key = l.key);" => "";
    tokens_are_repeated at 0: "l.token := greatest(l.token + 1, now);" => "";
}
