//! The events of this client, told to the observers that were added to it, and the part of it that they may see.

use std::collections::HashMap;
use std::sync::Arc;

use super::entry::{Entry, Phase};
use super::{EventBus, Keeper};
use crate::client_name::ClientName;
use crate::engine::Requests;
use crate::environment::{Environment, Moment};
use crate::error::ErrorKind;
use crate::events::{ClientEvent, Events, GroupUsage, Observer, Viewed};

impl Keeper {
    /// Adds an observer, for example a layer that was added to a clone of the client.
    pub(crate) fn watch(self: &Arc<Self>, observer: &Arc<dyn Observer>) {
        let keeper: Arc<dyn Requests> = Arc::<Self>::clone(self);
        self.engine.meter().report_to(&keeper);
        self.observers.add(observer, &self.view);
    }

    /// Returns a stream of what this client does from now on; see [`Ylock::events`](crate::Ylock::events).
    pub(crate) fn events(self: &Arc<Self>) -> Events {
        let mut fresh = None;
        let hub = self.hub.get_or_init(|| {
            let hub = Arc::new(EventBus::new());
            fresh = Some(Arc::clone(&hub));
            hub
        });
        let events = hub.events();
        if let Some(hub) = fresh {
            let observer: Arc<dyn Observer> = Arc::new(Arc::downgrade(&hub));
            self.watch(&observer);
        }
        events
    }

    /// Returns where the events of users' acquisitions go to, if a stream is open.
    pub(crate) fn event_bus(&self) -> Option<Arc<EventBus>> {
        self.hub.get().filter(|hub| hub.is_heard()).cloned()
    }

    pub(super) fn tell(&self, event: &ClientEvent) {
        self.observers.tell(&self.view, event);
    }

    /// Returns whether any observer hears what is told.
    pub(super) fn is_watched(&self) -> bool {
        self.observers.any()
    }

    /// Returns what this client holds and waits for now; see [`Ylock::usage`](crate::Ylock::usage).
    pub(crate) fn usage(&self) -> Vec<GroupUsage> {
        let now = self.environment.now();
        let mut groups: HashMap<Arc<str>, GroupUsage> = HashMap::new();
        for shard in &self.shards {
            for (key, entry) in &*shard.lock() {
                match groups.get_mut(key.group()) {
                    Some(usage) => entry.add_to(usage, now),
                    None => {
                        let group: Arc<str> = key.group().into();
                        entry.add_to(groups.entry(Arc::clone(&group)).or_insert(GroupUsage::of(group)), now);
                    }
                }
            }
        }
        let mut groups: Vec<GroupUsage> = groups.into_values().collect();
        groups.sort_unstable_by(|one, other| one.group.cmp(&other.group));
        groups
    }
}

impl Entry {
    fn add_to(&self, usage: &mut GroupUsage, now: Moment) {
        for holder in &self.holders {
            usage.add_hold(holder.mode(), now.since(holder.since));
        }
        for waiter in &self.queue {
            usage.add_waiter(waiter.mode, now.since(waiter.arrived));
        }
        let is_tried_again = matches!(&self.phase, Phase::Releasing(releasing) if releasing.attempts > 0);
        usage.releases_pending += usize::from(is_tried_again);
    }
}

impl Viewed for Keeper {
    fn name(&self) -> ClientName {
        self.name.get()
    }

    fn address(&self) -> Option<String> {
        self.engine.meter().address().map(str::to_owned)
    }

    fn usage(&self) -> Vec<GroupUsage> {
        Self::usage(self)
    }

    fn environment(&self) -> Arc<dyn Environment> {
        Arc::clone(&self.environment)
    }
}

impl Requests for Keeper {
    fn ended(&self, operation: &'static str, took: std::time::Duration, error: Option<ErrorKind>) {
        self.tell(&ClientEvent::Requested { operation, took, error });
    }
}
