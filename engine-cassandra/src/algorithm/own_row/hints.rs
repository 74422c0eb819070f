//! Hints: what is sent for one own row, and how a waiter pauses where it may be told of its turn.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select;
use ylock_core::Mode;

use super::seen::Seen;
use super::{Inner, OwnRow};
use crate::algorithm::judge;
use crate::algorithm::line::{Before, Line};
use crate::algorithm::store::{Partition, State};
use crate::algorithm::told::{AskedBy, Turn};
use crate::hints::{Endpoint, Exchange, Hint, Inbox, Key};

/// How much later than without hints a waiter looks where they work, and the part of the lease that this is at most. A lost hint costs this much.
const LATER: (Duration, u32) = (Duration::from_millis(500), 6);
/// The looks in which the first in line looks, enters and says so: as long does the second one wait.
const LOOKS_OF_THE_FIRST: u32 = 4;
/// The time in which a caller has been granted what its client has entered with.
const UNTIL_GRANTED: Duration = Duration::from_millis(2);

impl OwnRow {
    /// Returns the ways to and from other clients, if there are any.
    fn hints(&self) -> Option<(&Exchange, &Arc<Inbox>)> {
        Some((self.client.hints.as_deref()?, self.inbox.as_ref()?))
    }

    /// Makes hints come for the acquisition that the row shows, and for no other.
    pub(super) fn receive_for(&self, inner: &Inner) {
        if let Some((exchange, inbox)) = self.hints() {
            let row = inner.last_write.row();
            let (key, lease) =
                row.map_or((None, Duration::ZERO), |row| (row.hints.map(|to| to.key), row.lease));
            exchange.receive_under(inbox, key, lease);
        }
    }

    /// Notes which waiters a look shows.
    pub(super) fn note_line(&self, inner: &mut Inner, look: &Partition) {
        let Some((_, inbox)) = self.hints() else { return };
        inner.line = Line::of(look, self.client.slot);
        let inside = inner.last_write.row().filter(|_| inner.last_write.is_inside());
        // The first waiter is news to readers only: a writer lets no waiter of its own client in by what it knows of others.
        let is_news = inside.is_some_and(|row| {
            row.mode == Mode::Read && !judge::is_contended(look, self.client.slot, row.mode)
        });
        inbox.seems_alone(is_news);
    }

    /// Notes that the client is inside for reading, by a look that showed no writer: the first one that says that it waits is news. One that has said
    /// so already is, too; it may have come after that look.
    pub(super) fn expect_writers(self: &Arc<Self>) {
        let Some((_, inbox)) = self.hints() else { return };
        if !inbox.expect_writers(self.client.now()) {
            return;
        }
        let own_row = Arc::clone(self);
        self.client.environment.spawn(Box::pin(async move {
            // Only what the caller has been granted can be renewed.
            own_row.client.environment.sleep(UNTIL_GRANTED).await;
            if let Some((exchange, inbox)) = own_row.hints() {
                exchange.renew(inbox);
            }
        }));
    }

    /// Pauses, but only until a hint asks for a look. Returns the kind of that hint, if one has.
    pub(crate) async fn pause(&self, pause: Duration) -> Option<AskedBy> {
        let environment = &self.client.environment;
        let Some((_, inbox)) = self.hints() else {
            if !pause.is_zero() {
                environment.sleep(pause).await;
            }
            return None;
        };
        let end = environment.now().plus(pause);
        loop {
            let (now, asked) = (environment.now(), inbox.look_at());
            if asked.is_some_and(|asked| asked <= now) {
                return Some(asked_by_hint(inbox));
            }
            if end <= now {
                return None;
            }
            let next = asked.map_or(end, |asked| asked.min(end));
            drop(select(pin!(inbox.changed()), environment.sleep(next.since(now))).await);
        }
    }

    /// Notes that a look is about to begin. What hints asked for until now, it shows; for what they ask for from now on there is another one.
    /// Returns what has asked for it: also a hint that has come since the pause ended, while the row was shown again.
    pub(crate) fn look_begins(&self, asked_by: AskedBy) -> AskedBy {
        let Some((_, inbox)) = self.hints() else { return asked_by };
        let now = self.client.now();
        let asked_by = match inbox.look_at() {
            Some(_) if asked_by != asked_by.unless_missed() => asked_by_hint(inbox),
            _ => asked_by,
        };
        let mut inner = self.inner.lock();
        inbox.look_begins(asked_by.is_hint(), inner.seen.estimates.look() * LOOKS_OF_THE_FIRST, now);
        if inbox.was_told() {
            inner.seen.told.heard(now);
        }
        asked_by
    }

    /// Notes that this client's turn has come, to claim or to enter, as a look has found of which these should have told.
    pub(crate) fn turn_has_come(&self, turn: Turn, asked_by: AskedBy, tellers: &[SocketAddr]) {
        let Some((exchange, inbox)) = self.hints() else { return };
        if asked_by.is_hint() {
            inbox.was_right();
        }
        let now = self.client.now();
        // A hint has come during the look, which found the turn before: nothing was missed.
        let asked_by = if inbox.look_at().is_some() { asked_by.unless_missed() } else { asked_by };
        let Seen { told, mute, .. } = &mut self.inner.lock().seen;
        let worked = told.works();
        if told.turn(turn, asked_by, now) | (asked_by == AskedBy::FirstPause) {
            exchange.count_missed();
            let was_mute = mute.includes(tellers, now);
            mute.missed(tellers, now);
            if !was_mute && mute.includes(tellers, now) {
                tracing::debug!(lock = %self.key, clients = ?tellers, "no hints come of these clients");
            }
        } else if let AskedBy::Hint(from) = asked_by {
            mute.heard(from);
        }
        if worked && !told.works() {
            tracing::debug!(lock = %self.key, "hints do not come any more: waiters look by themselves for a while");
        }
    }

    /// Returns how long a waiter may pause because those before it will tell; nothing if they do not, or hints do not work here. Without hints it would
    /// look as `often` as this.
    pub(crate) fn pause_until_told(
        &self,
        lease: Duration,
        ahead: usize,
        often: Duration,
        before: &Before,
    ) -> Option<Duration> {
        self.hints()?;
        let later = LATER.0.min(lease / LATER.1);
        let seen = &self.inner.lock().seen;
        let works =
            before.tells && seen.told.works() && !seen.mute.includes(&before.tellers, self.client.now());
        // Far behind, a pause is rather less than what the turns before take.
        works.then(|| if ahead <= 1 { later } else { often.saturating_mul(5) / 4 + later })
    }

    /// Tells those before a waiter that it waits, unless `told` are just those.
    pub(crate) fn tell_of_waiting(&self, mode: Mode, before: &Before, told: &mut Option<Vec<Key>>) {
        let Some((exchange, _)) = self.hints() else { return };
        let Some(from) = self.own_endpoint() else { return };
        let keys: Vec<_> = before.endpoints.iter().map(|to| to.key).collect();
        if told.as_ref() == Some(&keys) {
            return;
        }
        let hint = Hint::Wait { from: from.key, reads: mode == Mode::Read };
        before.endpoints.iter().for_each(|to| exchange.send(hint, *to));
        *told = Some(keys);
    }

    /// Tells those that the last look has shown that this client waits behind them, without another look.
    pub(crate) fn tell_line_of_waiting(&self, mode: Mode) {
        let Some((exchange, _)) = self.hints() else { return };
        let Some(from) = self.own_endpoint() else { return };
        let ends: Vec<_> = self.inner.lock().line.ends().collect();
        let hint = Hint::Wait { from: from.key, reads: mode == Mode::Read };
        ends.into_iter().for_each(|to| exchange.send(hint, to));
    }

    /// Tells the first in line that this client has entered, or goes on in another mode, if its row says so by now and that is news.
    pub(super) fn tell_of_entry(&self) {
        let Some((exchange, inbox)) = self.hints() else { return };
        let front = {
            let mut inner = self.inner.lock();
            let is_held = inner.last_write.row().is_some_and(|row| row.state == State::Held);
            // A row that does not say so yet would be taken for one that is about to enter.
            if !(is_held && inner.last_write.is_acknowledged() && inner.is_entry_untold) {
                return;
            }
            inner.is_entry_untold = false;
            let now = self.client.now();
            let mut front = inner.line.front(&inbox.waiters(now));
            front.retain(|(_, second)| !second);
            inbox.is_shown_inside(front.iter().map(|(to, _)| to.key).collect(), now);
            front
        };
        front.into_iter().for_each(|(to, _)| exchange.send(Hint::Next, to));
    }

    /// Tells the first in line, and the second, that this client has left, if a quorum has the write which says so: a look that begins before
    /// that may not show it.
    pub(super) fn tell_of_leaving(&self) {
        let Some((exchange, inbox)) = self.hints() else { return };
        let (behind, late) = {
            let mut inner = self.inner.lock();
            if !inner.last_write.is_acknowledged() {
                return;
            }
            // Under the lock: another acquisition that begins meanwhile has not gone.
            (std::mem::take(&mut inner.behind), inbox.has_gone())
        };
        late.into_iter()
            .take(2)
            .for_each(|waiter| exchange.send(Hint::Free { second: false }, waiter.endpoint()));
        behind.into_iter().for_each(|(to, second)| exchange.send(Hint::Free { second }, to));
    }

    /// Returns whom to tell when the row that is being left is gone: those behind it, if it stood in their way. To be asked before the row is
    /// overwritten, since what others have said to this acquisition is forgotten with it.
    pub(super) fn behind(&self, inner: &Inner) -> Vec<(Endpoint, bool)> {
        let Some((_, inbox)) = self.hints() else { return Vec::new() };
        let stood =
            inner.last_write.row().is_some_and(|row| matches!(row.state, State::Claimed | State::Held));
        if stood { inner.line.front(&inbox.waiters(self.client.now())) } else { Vec::new() }
    }

    fn own_endpoint(&self) -> Option<Endpoint> {
        self.inner.lock().last_write.row().and_then(|row| row.hints)
    }
}

/// Returns the hint that asks for a look.
fn asked_by_hint(inbox: &Inbox) -> AskedBy {
    inbox.told_by().map_or(AskedBy::SecondHint, AskedBy::Hint)
}

impl Drop for OwnRow {
    fn drop(&mut self) {
        if let Some((exchange, inbox)) = self.hints() {
            exchange.forget(inbox);
        }
    }
}
