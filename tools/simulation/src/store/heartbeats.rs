//! What clients have sent as their heartbeats, and whether a burial meets one that its client still relies on.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use ylock_core::engine::valid_until;
use ylock_core::environment::{Environment, Moment};
use ylock_engine_cassandra::algorithm::store::{Slot, State, Write};

use crate::clocks::Clocks;
use crate::world::World;

/// The heartbeats of all clients; see the [module](self).
#[derive(Debug, Default)]
pub struct Heartbeats {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    sent: BTreeMap<(Slot, i64), Sent>,
    burials: u64,
    wrong: Vec<String>,
}

/// One heartbeat.
#[derive(Debug)]
struct Sent {
    clocks: Arc<Clocks>,
    /// True if its client may be inside by it.
    in_main: bool,
    /// The end of the validity that it gives, by its client's own clock.
    until: Moment,
}

impl Heartbeats {
    /// Notes that a client is about to send a row.
    pub(super) fn sends(&self, clocks: &Arc<Clocks>, slot: Slot, write: &Write) {
        let in_main = matches!(write.row.state, State::Claimed | State::Held);
        let until = valid_until(clocks.now(), write.row.lease);
        // Of two that are sent with one stamp, the later one is relied on for longer.
        self.inner
            .lock()
            .sent
            .insert((slot, write.stamp), Sent { clocks: Arc::clone(clocks), in_main, until });
    }

    /// Asks the victim of a burial whether it still relies on this heartbeat.
    pub(super) fn is_buried(&self, world: &World, by: &Clocks, slot: Slot, heartbeat: i64) {
        let mut inner = self.inner.lock();
        inner.burials += 1;
        let Some(sent) = inner.sent.get(&(slot, heartbeat)) else {
            let wrong = format!("{:?} buries {heartbeat} of {slot:?}, which was never sent", by.actor());
            return inner.wrong.push(wrong);
        };
        let victim = &sent.clocks;
        let relies = sent.in_main
            && victim.now() < sent.until
            && world.is_alive(victim.actor())
            && !victim.stood_still();
        if relies {
            let wrong = format!(
                "{:?} buries {heartbeat} of {:?}, which may rely on it for another {:?}",
                by.actor(),
                victim.actor(),
                sent.until.since(victim.now())
            );
            inner.wrong.push(wrong);
        }
    }

    /// Returns how many burials there were.
    pub fn burials(&self) -> u64 {
        self.inner.lock().burials
    }

    /// Returns what was wrong.
    pub fn wrong(&self) -> Vec<String> {
        self.inner.lock().wrong.clone()
    }
}
