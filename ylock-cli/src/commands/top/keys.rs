//! What the keys do.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::state::{Question, State};

/// What a key asks of the loop.
#[derive(Debug)]
pub(super) enum Action {
    Quit,
    Revoke(Question),
}

impl State {
    /// Does what a key says.
    pub(super) fn key(&mut self, key: KeyEvent) -> Option<Action> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if with_control {
            return (key.code == KeyCode::Char('c')).then_some(Action::Quit);
        }
        if self.question.is_some() {
            return self.answer(key.code);
        }
        self.note = None;
        if self.is_typing {
            self.type_key(key.code);
            return None;
        }
        match key.code {
            KeyCode::Char('q') => return Some(Action::Quit),
            KeyCode::Char('r') => self.ask(),
            code if self.details.is_some() => self.key_in_details(code),
            code => self.key_in_table(code),
        }
        None
    }

    /// Only `y` revokes; another key but `n` and Esc is no answer.
    fn answer(&mut self, code: KeyCode) -> Option<Action> {
        match code {
            KeyCode::Char('y' | 'Y') => self.question.take().map(Action::Revoke),
            KeyCode::Char('n' | 'N') | KeyCode::Esc => {
                self.question = None;
                self.note = Some("nothing was revoked".to_owned());
                None
            }
            _ => None,
        }
    }

    fn type_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char(letter) => self.filter.push(letter),
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => self.clear_filter(),
            code => return self.select(code),
        }
        self.follow();
    }

    fn key_in_table(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Enter => self.open(),
            KeyCode::Esc => self.clear_filter(),
            code => self.select(code),
        }
    }

    fn clear_filter(&mut self) {
        self.filter.clear();
        self.is_typing = false;
        self.follow();
    }

    fn select(&mut self, code: KeyCode) {
        if let Some(lines) = distance(code, self.page) {
            self.move_by(lines);
        }
    }

    fn key_in_details(&mut self, code: KeyCode) {
        let page = self.page;
        let Some(details) = &mut self.details else { return };
        if let KeyCode::Esc | KeyCode::Enter = code {
            self.details = None;
        } else if let Some(lines) = distance(code, page) {
            let last = details.lines.len().saturating_sub(page);
            details.first = details.first.saturating_add_signed(lines).min(last);
        }
    }
}

/// Returns how many lines a key goes down.
fn distance(code: KeyCode, page: usize) -> Option<isize> {
    let page = isize::try_from(page).unwrap_or(isize::MAX);
    match code {
        KeyCode::Up => Some(-1),
        KeyCode::Down => Some(1),
        KeyCode::PageUp => Some(-page),
        KeyCode::PageDown => Some(page),
        _ => None,
    }
}
