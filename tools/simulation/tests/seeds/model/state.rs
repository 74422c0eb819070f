//! The state of the model: what each client knows, what of its writes has arrived, and what others know of it.

/// The most clients.
pub(crate) const MOST: usize = 3;

/// What a client does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Phase {
    /// Nothing yet.
    #[default]
    Out,
    /// Its last write is on its way, or arrived unheard.
    Sending,
    /// Its claim was acknowledged.
    Claimed,
    /// A look has begun; nothing is read yet.
    Looking,
    /// A look has read, and not ended.
    Read,
    /// Dead rows are being buried.
    Burying,
    /// Given up or lost: its row stays until others bury it, unless it is set idle.
    Gone,
}

/// One client, and its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Client {
    pub(crate) phase: Phase,
    /// Its place among those that entered; zero until it does.
    pub(crate) entered: u8,
    /// For how long the holder still relies on the lock.
    pub(crate) valid: u8,
    /// The stamp of its last write, and for how long that is valid, counted from before it was sent.
    pub(crate) stamp: u8,
    pub(crate) lasts: u8,
    /// The stamps that may still arrive: one bit each.
    pub(crate) on_the_way: u8,
    /// The burials of its row that may still arrive: one bit for each stamp.
    pub(crate) burials: u8,
    /// The largest stamps that have arrived: of its writes, and of burials.
    pub(crate) written: u8,
    pub(crate) buried: u8,
    /// The stamp of the write that sets the row idle; zero if there is none.
    pub(crate) idle: u8,
    /// What it has noted of each other client: the stamp, and for how long.
    pub(crate) noted: [(u8, u8); MOST],
    /// What the present look shows: the stamp of each row that is there.
    pub(crate) seen: [u8; MOST],
    /// The entries that were old enough when the present look began: one bit each; and for how long it has been going on.
    pub(crate) ripe: u8,
    pub(crate) looking: u8,
    /// What is to be buried.
    pub(crate) dead: [u8; MOST],
}

/// All clients, how many have entered, and the last of these that has given the lock back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct State {
    pub(crate) clients: [Client; MOST],
    pub(crate) entries: u8,
    pub(crate) used: u8,
}

impl Client {
    /// Returns the stamp of the row that a look shows now; zero if it shows none, or an idle one.
    pub(crate) fn row(&self) -> u8 {
        let is_there = self.written > self.buried && (self.idle == 0 || self.written < self.idle);
        if is_there { self.written } else { 0 }
    }

    pub(crate) fn is_inside(&self) -> bool {
        self.entered > 0 && self.valid > 0
    }

    /// Sends the next write, with a stamp of its own unless `again`.
    pub(crate) fn send(&mut self, lease: u8, again: bool) {
        self.stamp += u8::from(!again);
        (self.lasts, self.phase) = (lease, Phase::Sending);
        self.on_the_way |= 1 << self.stamp;
    }

    /// Forgets the look that has ended.
    pub(crate) fn ends_look(&mut self) {
        (self.seen, self.ripe, self.looking) = ([0; MOST], 0, 0);
    }

    /// Forgets what decides nothing any more, so that states which go on alike are one.
    fn tidy(&mut self) {
        let newest = if self.phase == Phase::Sending { self.stamp } else { 0 };
        let stale = (0..8).filter(|bit| *bit <= self.written.max(self.buried) && *bit != newest);
        self.on_the_way &= !stale.map(|bit| 1 << bit).sum::<u8>();
        self.burials &= !((2 << self.buried) - 1);
        // Only a client that is not inside buries.
        if self.entered > 0 || self.phase == Phase::Gone {
            (self.noted, self.ripe) = ([(0, 0); MOST], 0);
        }
        if self.phase == Phase::Gone || (self.entered > 0 && self.phase != Phase::Sending) {
            self.lasts = 0;
        }
    }

    /// Returns the client as others know it whose places have changed.
    fn moved(&self, places: [usize; MOST]) -> Self {
        let mut moved = Self { ripe: 0, ..*self };
        for (old, new) in places.into_iter().enumerate() {
            moved.noted[new] = self.noted[old];
            moved.seen[new] = self.seen[old];
            moved.dead[new] = self.dead[old];
            moved.ripe |= ((self.ripe >> old) & 1) << new;
        }
        moved
    }

    /// Lets a tick pass. What is older than a lease is not told apart.
    pub(crate) fn tick(&mut self, lease: u8) {
        (self.valid, self.lasts) = (self.valid.saturating_sub(1), self.lasts.saturating_sub(1));
        for (stamp, age) in &mut self.noted {
            *age = if *stamp > 0 { (*age + 1).min(lease) } else { 0 };
        }
        if matches!(self.phase, Phase::Looking | Phase::Read) {
            self.looking = (self.looking + 1).min(lease);
        }
    }
}

impl State {
    /// Returns the one state that stands for all which differ only in what decides nothing.
    pub(crate) fn tidied(mut self) -> Self {
        self.clients.iter_mut().for_each(Client::tidy);
        self
    }

    /// Returns the one state that stands for all which differ only in which of two clients is which.
    pub(crate) fn with_either(self, one: usize, other: usize) -> Self {
        let mut places = [0, 1, 2];
        places.swap(one, other);
        let mut moved = Self { clients: self.clients.map(|client| client.moved(places)), ..self };
        moved.clients.swap(one, other);
        moved.min(self)
    }

    /// Returns whether two clients rely on the lock at once.
    pub(crate) fn is_broken(&self) -> bool {
        self.clients.iter().filter(|client| client.is_inside()).count() > 1
    }
}
