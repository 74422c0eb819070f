//! The state and its screen, without a store and without a terminal.

use std::time::{Duration, SystemTime};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ylock::engine::{AcquisitionId, Holder, Inspection, Waiter};
use ylock::{ClientName, Key, Mode, Owner};

use super::keys::Action;
use super::row::Row;
use super::screen;
use super::state::{Look, State};
use crate::name::{Named, Seen};

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000)
}

fn waiter(number: u128, seconds: u64) -> Waiter {
    let client = ClientName::new(format!("client-{number}")).unwrap();
    let since = now() - Duration::from_secs(seconds);
    Waiter::new(AcquisitionId::from_u128(number), Owner::new(), client, Mode::Write, since)
}

fn named(name: &str) -> Named {
    Named { key: Key::new("users", name).unwrap(), is_semaphore: false }
}

/// Returns a lock that is held for so many seconds, and waited for by one waiter for each further time.
fn row(name: &str, held: u64, waits: &[u64]) -> Row {
    let mut seen = Inspection::default();
    seen.holders = vec![Holder::of(waiter(1, held), None)];
    seen.queue = waits.iter().map(|seconds| waiter(2, *seconds)).collect();
    Row::new(named(name), Seen { contenders: seen, permits: None }, now())
}

fn look(rows: Vec<Row>) -> Look {
    Look { rows, has_more: false, at: now(), took: Duration::from_millis(7), single: None }
}

fn state() -> State {
    let mut state = State::new("file:///locks".to_owned());
    state.looked(look(vec![row("a", 5, &[]), row("b", 9, &[]), row("c", 1, &[1]), row("d", 1, &[3, 2])]));
    state
}

fn press(state: &mut State, code: KeyCode) -> Option<Action> {
    state.key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn names(state: &State) -> String {
    state.rows().iter().map(|row| row.named.key.name()).collect()
}

fn selected(state: &State) -> String {
    state.row().unwrap().named.key.name().to_owned()
}

/// Returns the screen as lines.
fn drawn(state: &mut State, lines: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(90, lines)).unwrap();
    terminal.draw(|frame| screen::draw(frame, state)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn waits_come_first_and_then_holds() {
    assert_eq!(names(&state()), "dcba");
}

#[test]
fn the_selected_lock_stays_selected_and_its_place_when_it_is_gone() {
    let mut state = state();
    press(&mut state, KeyCode::Down);
    assert_eq!(selected(&state), "c");
    state.looked(look(vec![row("a", 5, &[9]), row("c", 1, &[]), row("d", 1, &[3])]));
    assert_eq!((&*names(&state), &*selected(&state)), ("adc", "c"));
    state.looked(look(vec![row("a", 5, &[9]), row("d", 1, &[3])]));
    assert_eq!(selected(&state), "d");
    state.looked(look(vec![]));
    assert!(state.row().is_none() && press(&mut state, KeyCode::Enter).is_none());
}

#[test]
fn the_selected_lock_is_always_among_those_that_are_shown() {
    let mut state = state();
    assert_eq!(state.shown(2), 0..2);
    press(&mut state, KeyCode::PageDown);
    assert_eq!((state.shown(2), &*selected(&state)), (1..3, "b"));
    press(&mut state, KeyCode::PageUp);
    assert_eq!((state.shown(2), &*selected(&state)), (0..2, "d"));
    assert_eq!(state.shown(0), 0..1);
}

#[test]
fn a_filter_is_of_locks_and_clients_and_takes_every_letter() {
    let mut state = state();
    for letter in "/CLIENT-2q".chars() {
        assert!(press(&mut state, KeyCode::Char(letter)).is_none());
    }
    assert_eq!(names(&state), "");
    press(&mut state, KeyCode::Backspace);
    assert_eq!(names(&state), "dc");
    press(&mut state, KeyCode::Enter);
    assert!(drawn(&mut state, 9).contains("only /CLIENT-2 "));
    press(&mut state, KeyCode::Esc);
    assert_eq!(names(&state), "dcba");
    assert!(matches!(press(&mut state, KeyCode::Char('q')), Some(Action::Quit)));
}

#[test]
fn only_yes_revokes_and_the_lock_is_the_one_of_the_question() {
    let mut state = state();
    press(&mut state, KeyCode::Char('r'));
    assert!(drawn(&mut state, 9).contains("(y/n) Revoke users/d from client-1?"));
    for code in [KeyCode::Enter, KeyCode::Char('q'), KeyCode::Down, KeyCode::Char('n')] {
        assert!(press(&mut state, code).is_none());
    }
    assert!(press(&mut state, KeyCode::Char('y')).is_none(), "it was answered");
    press(&mut state, KeyCode::Char('r'));
    state.looked(look(vec![row("a", 5, &[9])]));
    let action = press(&mut state, KeyCode::Char('y'));
    let Some(Action::Revoke(question)) = action else { panic!("{action:?}") };
    assert_eq!((question.named.key.name(), question.holders.len()), ("d", 1));
}

#[test]
fn details_follow_the_lock_also_when_it_is_not_among_those_that_were_read() {
    let mut state = state();
    press(&mut state, KeyCode::Enter);
    let text = drawn(&mut state, 9);
    assert!(text.contains("held to write by client-1") && text.contains("2. waits to write by client-2"));
    let single = Row::new(named("d"), Seen::default(), now());
    state.looked(Look { single: Some(single), ..look(vec![row("a", 1, &[])]) });
    assert!(drawn(&mut state, 9).contains("users/d") && drawn(&mut state, 9).contains("  free"));
    press(&mut state, KeyCode::Esc);
    assert_eq!(selected(&state), "a");
}

#[test]
fn a_store_that_is_away_is_named_beside_what_it_showed_last() {
    let mut state = state();
    state.away = Some("no answer".to_owned());
    let text = drawn(&mut state, 9);
    for part in ["file:///locks", "4 locks at 13:46:40 UTC, in 7 ms", "trying again: no answer", "users/a "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    state.looked(Look { has_more: true, ..look(vec![row("a", 90_061, &[61])]) });
    let text = drawn(&mut state, 9);
    assert!(text.contains("1 lock, and there are more") && !text.contains("no answer"), "{text}");
    let line = text.lines().find(|line| line.contains("users/a")).unwrap();
    let cells: Vec<_> = line.trim_matches('"').split("  ").map(str::trim).filter(|c| !c.is_empty()).collect();
    assert_eq!(cells, ["users/a", "write", "client-1", "1day 1h", "1", "1m 1s"]);
}

#[test]
fn what_a_terminal_would_obey_is_not_drawn() {
    let mut state = state();
    state.looked(look(vec![row("a\u{1b}[2J\u{7}", 5, &[])]));
    for _ in 0..2 {
        let text = drawn(&mut state, 9);
        assert!(text.contains("a\\u{1b}[2J\\u{7}") && !text.contains('\u{1b}'), "{text}");
        press(&mut state, KeyCode::Enter);
    }
}

#[test]
fn a_screen_of_no_size_is_drawn() {
    for lines in 0..4 {
        drawn(&mut state(), lines);
    }
}
