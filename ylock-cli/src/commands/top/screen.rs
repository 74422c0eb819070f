//! Draws the state.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table};

use super::row::{self, short};
use super::state::{Details, State};
use crate::output::time_of_day;

const COLUMNS: [&str; 6] = ["lock", "mode", "holder", "held for", "waiting", "longest wait"];
const WIDTHS: [Constraint; 6] = [
    Constraint::Fill(3),
    Constraint::Length(9),
    Constraint::Fill(2),
    Constraint::Length(10),
    Constraint::Length(7),
    Constraint::Length(12),
];
const KEYS: &str = "↑ ↓ select   Enter holders and waiters   / filter   r revoke   q quit";
const KEYS_OF_DETAILS: &str = "↑ ↓ scroll   Esc back   r revoke   q quit";

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, state: &mut State) {
    let one = Constraint::Length(1);
    let [header, told, body, footer] =
        Layout::vertical([one, one, Constraint::Fill(1), one]).areas(frame.area());
    draw_header(frame, header, state);
    frame.render_widget(told_line(state), told);
    if let Some(details) = &state.details {
        state.page = usize::from(body.height);
        draw_details(frame, body, details);
    } else {
        draw_table(frame, body, state);
    }
    frame.render_widget(footer_line(state), footer);
}

/// The store gives way where the line is short: the numbers change, and it does not.
fn draw_header(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let numbers = Line::from(numbers(state));
    let width = u16::try_from(numbers.width()).unwrap_or(u16::MAX);
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Length(width)]).areas(area);
    frame.render_widget(Line::from(state.store.as_str()).bold(), left);
    frame.render_widget(numbers, right);
}

fn numbers(state: &State) -> String {
    let Some(look) = &state.look else { return "  not looked at yet".to_owned() };
    let count = look.rows.len();
    let locks = if count == 1 { "lock" } else { "locks" };
    let more = if look.has_more { ", and there are more" } else { "" };
    let at = time_of_day(look.at);
    format!("  {count} {locks}{more} at {at}, in {} ms", look.took.as_millis())
}

fn told_line(state: &State) -> Line<'_> {
    match (&state.away, &state.note) {
        (Some(why), _) => Line::from(format!("the store is away, trying again: {why}")).fg(Color::Red),
        (None, Some(note)) => Line::from(note.as_str()).fg(Color::Yellow),
        (None, None) => Line::default(),
    }
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, state: &mut State) {
    // One line is that of the titles.
    let shown = state.shown(usize::from(area.height.saturating_sub(1)));
    let rows = state.rows();
    let lines = shown.clone().zip(&rows[shown]).map(|(place, row)| {
        let style = if place == state.place { Modifier::REVERSED } else { Modifier::empty() };
        line(row).style(Style::new().add_modifier(style))
    });
    let titles = Row::new(COLUMNS).style(Modifier::BOLD);
    frame.render_widget(Table::new(lines, WIDTHS).header(titles).column_spacing(2), area);
}

fn line(row: &row::Row) -> Row<'_> {
    let waiting = if row.waiting == 0 { "-".to_owned() } else { row.waiting.to_string() };
    let wait = Cell::from(short(row.longest_wait));
    Row::new([
        Cell::from(row.lock.as_str()),
        Cell::from(row.mode.as_str()),
        Cell::from(row.holder.as_str()),
        Cell::from(short(row.held)),
        Cell::from(waiting),
        wait,
    ])
}

fn draw_details(frame: &mut Frame<'_>, area: Rect, details: &Details) {
    let lines = details.lines.iter().skip(details.first).take(usize::from(area.height));
    let lines: Vec<Line<'_>> = lines.map(|line| Line::from(line.as_str())).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn footer_line(state: &State) -> Line<'_> {
    if let Some(question) = &state.question {
        return Line::from(question.text.as_str()).bold().fg(Color::Red);
    }
    if state.is_typing {
        return Line::from(format!("/{}_   Enter keeps the filter   Esc clears it", state.filter));
    }
    if state.details.is_some() {
        return Line::from(KEYS_OF_DETAILS).dim();
    }
    if state.filter.is_empty() {
        return Line::from(KEYS).dim();
    }
    Line::from(format!("only /{}   Esc clears the filter", state.filter))
}
