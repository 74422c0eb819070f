//! A model of the scripts: two lists, without time.

/// Shared or exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    Write,
}

/// The way in which a waiter learns that it was let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hears {
    Told,
    Asks,
    /// Its connection is gone.
    Nothing,
}

/// The answer to an acquisition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Granted { token: u64, contended: bool },
    Queued { ticket: i64 },
    Busy,
}

/// The answer to a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewal {
    Renewed { contended: bool },
    Gone,
    Revoked,
}

/// Another acquisition that comes along with a release or a renewal.
pub(crate) type Other<'a> = Option<(&'a str, Mode, Hears)>;

#[derive(Debug)]
struct Holder {
    id: String,
    mode: Mode,
    revoked: bool,
    behind: Option<String>,
}

#[derive(Debug)]
struct Waiter {
    id: String,
    mode: Mode,
    ticket: i64,
    hears: Hears,
    /// The holder that it stands behind.
    behind: Option<String>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Reference {
    holders: Vec<Holder>,
    queue: Vec<Waiter>,
}

/// Holders in any order, and the queue: id and mode.
pub(crate) type Shown = (Vec<(String, Mode)>, Vec<(String, Mode)>);

impl Reference {
    pub(crate) fn show(&self) -> Shown {
        let mut holders: Vec<_> = self.holders.iter().map(|held| (held.id.clone(), held.mode)).collect();
        holders.sort_by(|one, other| one.0.cmp(&other.0));
        (holders, self.queue.iter().map(|waits| (waits.id.clone(), waits.mode)).collect())
    }

    pub(crate) fn mode_of(&self, id: &str) -> Option<Mode> {
        self.holders.iter().find(|held| held.id == id).map(|held| held.mode)
    }

    pub(crate) fn tickets(&self) -> Vec<i64> {
        self.queue.iter().map(|waits| waits.ticket).collect()
    }

    pub(crate) fn take_over(&mut self, tickets: &[i64]) {
        self.queue.iter_mut().zip(tickets).for_each(|(waits, ticket)| waits.ticket = *ticket);
    }

    pub(crate) fn acquire(
        &mut self,
        id: &str,
        mode: Mode,
        tries: bool,
        unfair: bool,
        ticket: Option<i64>,
        hears: Hears,
    ) -> Reply {
        let waited = self.waiter(id).map(|waits| (waits.behind, waits.hears) = (None, hears)).is_some();
        self.settle(id);
        if !waited && self.mode_of(id).is_none() {
            if self.is_free(mode) && (self.queue.is_empty() || unfair) {
                self.enter(id, mode);
            } else if tries {
                return Reply::Busy;
            } else {
                self.join(id, mode, ticket, hears, None);
                self.settle(id);
            }
        }
        if let Some(mode) = self.mode_of(id) {
            return Reply::Granted { token: 0, contended: self.is_contended(mode, None) };
        }
        if tries {
            self.leave(id);
            return Reply::Busy;
        }
        Reply::Queued { ticket: 0 }
    }

    pub(crate) fn release(&mut self, id: &str, next: Other<'_>) -> bool {
        if let Some((next, ..)) = next
            && self.holders.iter().any(|held| held.id == id && held.behind.as_deref() == Some(next))
            && let Some(waits) = self.waiter(next)
        {
            waits.behind = None;
        }
        let was_there = self.leave(id);
        if let Some((next, mode, hears)) = next
            && self.mode_of(next).is_none()
        {
            match self.waiter(next) {
                Some(waits) => waits.behind = None,
                None => self.join(next, mode, None, hears, None),
            }
        }
        self.settle(next.map_or("", |(next, ..)| next));
        was_there
    }

    pub(crate) fn renew(&mut self, id: &str, mode: Mode, behind: Other<'_>) -> Renewal {
        let Some(held) = self.holders.iter_mut().find(|held| held.id == id) else { return Renewal::Gone };
        if held.revoked {
            return Renewal::Revoked;
        }
        let downgraded = std::mem::replace(&mut held.mode, mode) != mode;
        let before = held.behind.clone().filter(|before| Some(before.as_str()) != behind.map(|(id, ..)| id));
        if let Some(before) = before {
            held.behind = None;
            self.remove_stander(id, &before);
        }
        if let Some((behind, mode, hears)) = behind
            && self.waiter(behind).is_none()
        {
            self.join(behind, mode, None, hears, Some(id));
            if let Some(held) = self.holders.iter_mut().find(|held| held.id == id) {
                held.behind = Some(behind.to_owned());
            }
        }
        if downgraded {
            self.settle("");
        }
        Renewal::Renewed { contended: self.is_contended(mode, behind.map(|(id, ..)| id)) }
    }

    pub(crate) fn revoke(&mut self, id: &str) -> bool {
        let held = self.holders.iter_mut().find(|held| held.id == id);
        held.map(|held| held.revoked = true).is_some()
    }

    fn waiter(&mut self, id: &str) -> Option<&mut Waiter> {
        self.queue.iter_mut().find(|waits| waits.id == id)
    }

    fn is_free(&self, mode: Mode) -> bool {
        match mode {
            Mode::Write => self.holders.is_empty(),
            Mode::Read => self.holders.iter().all(|held| held.mode == Mode::Read),
        }
    }

    fn enter(&mut self, id: &str, mode: Mode) {
        self.holders.push(Holder { id: id.to_owned(), mode, revoked: false, behind: None });
    }

    /// Adds a waiter. Without a ticket it gets the last place: the tickets that the server gives out are the largest.
    fn join(&mut self, id: &str, mode: Mode, ticket: Option<i64>, hears: Hears, behind: Option<&str>) {
        let last = self.queue.last().map_or(i64::MIN, |last| last.ticket);
        let ticket = ticket.unwrap_or(last);
        let place = self.queue.iter().rposition(|waits| waits.ticket <= ticket).map_or(0, |place| place + 1);
        let behind = behind.map(str::to_owned);
        self.queue.insert(place, Waiter { id: id.to_owned(), mode, ticket, hears, behind });
    }

    fn settle(&mut self, own: &str) {
        let mut place = 0;
        while let Some(waits) = self.queue.get(place) {
            let hears = if waits.id == own { Hears::Told } else { waits.hears };
            if !self.is_free(waits.mode) || (waits.behind.is_none() && hears == Hears::Asks) {
                return;
            }
            if waits.behind.is_some() || hears == Hears::Nothing {
                place += 1;
            } else {
                let waits = self.queue.remove(place);
                self.enter(&waits.id, waits.mode);
            }
        }
    }

    fn leave(&mut self, id: &str) -> bool {
        let holder =
            self.holders.iter().position(|held| held.id == id).map(|place| self.holders.remove(place));
        if let Some(behind) = holder.as_ref().and_then(|held| held.behind.clone()) {
            self.remove_stander(id, &behind);
        }
        let waited = self.queue.len();
        self.queue.retain(|waits| waits.id != id);
        holder.is_some() || self.queue.len() < waited
    }

    /// Removes the waiter that stands behind a holder, unless it stands on its own by now.
    fn remove_stander(&mut self, holder: &str, id: &str) {
        self.queue.retain(|waits| waits.id != id || waits.behind.as_deref() != Some(holder));
    }

    fn is_contended(&self, mode: Mode, own: Option<&str>) -> bool {
        self.queue
            .iter()
            .any(|waits| Some(waits.id.as_str()) != own && (mode == Mode::Write || waits.mode == Mode::Write))
    }
}
