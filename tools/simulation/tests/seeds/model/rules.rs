//! What may happen next: the rules of `engine-cassandra/guarantees.md`, one step at a time, with at most one of them broken.

use super::state::{Client, MOST, Phase, State};

/// The rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    Nothing,
    /// A write in doubt is sent again with its stamp.
    OneStampForTwo,
    /// The lease counts from when the first look began.
    CountsFromTheBeginning,
    /// The lease counts to when the second look ended.
    CountsToTheEnd,
    /// Another heartbeat of the same client is taken for the same.
    ComparesClients,
    /// A burial deletes the next heartbeat too.
    BuriesTheNext,
    /// A renewal that is heard too late is believed.
    BelievesLateRenewals,
    /// A claim that is too old is entered with.
    EntersLate,
    /// Dead rows are buried after the entry.
    EntersBeforeTheBurial,
    /// Both.
    EntersBeforeTheBurialAndCountsToTheEnd,
}

/// Clients, and the rule that is broken.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    /// How often each client may write: its claim, and then claims that were too old, or renewals.
    pub(crate) writes: [u8; MOST],
    /// The lease, in ticks; the validity of a heartbeat is as long. Clocks are right: what they may be wrong by is arithmetic.
    pub(crate) lease: u8,
    /// A look ends when it reads, and takes no time after that.
    pub(crate) ends_with_its_read: bool,
    pub(crate) broken: Broken,
}

impl Rules {
    /// Adds every state that may follow.
    pub(crate) fn next(self, state: &State, next: &mut Vec<State>) {
        let mut ticked = *state;
        ticked.clients.iter_mut().for_each(|client| client.tick(self.lease));
        next.push(ticked);
        for me in 0..MOST {
            arrivals(state, me, next);
            self.step(state, me, next);
        }
    }

    /// A client goes on.
    fn step(self, state: &State, me: usize, next: &mut Vec<State>) {
        let client = state.clients[me];
        let mut push = |change: &dyn Fn(&mut State)| {
            let mut after = *state;
            change(&mut after);
            next.push(after);
        };
        match client.phase {
            Phase::Out if self.writes[me] == 0 => {}
            Phase::Out => push(&|after| after.clients[me].send(self.lease, false)),
            Phase::Sending => {
                if client.on_the_way & (1 << client.stamp) == 0 {
                    push(&|after| self.is_heard(&mut after.clients[me]));
                }
                // No answer came in time: what was sent may still arrive.
                if self.broken == Broken::OneStampForTwo {
                    push(&|after| after.clients[me].send(self.lease, true));
                } else if client.stamp < self.writes[me] {
                    push(&|after| after.clients[me].send(self.lease, false));
                }
            }
            Phase::Claimed => {
                push(&|after| {
                    let client = &mut after.clients[me];
                    client.phase = Phase::Looking;
                    client.ripe = self.ripe(client);
                });
                push(&|after| leave(after, me));
            }
            Phase::Looking => push(&|after| {
                let rows = after.clients.map(|client| client.row());
                let client = &mut after.clients[me];
                (client.seen, client.phase) = (rows, Phase::Read);
                if self.ends_with_its_read {
                    self.look_ends(after, me);
                }
            }),
            Phase::Read => push(&|after| self.look_ends(after, me)),
            Phase::Burying => {
                let is_done = |other: usize| state.clients[other].buried >= client.dead[other];
                if (0..MOST).all(is_done) {
                    push(&|after| {
                        let client = &mut after.clients[me];
                        // What was buried is watched anew.
                        (0..MOST)
                            .filter(|other| client.dead[*other] > 0)
                            .for_each(|other| client.noted[other] = (0, 0));
                        (client.phase, client.dead) = (Phase::Claimed, [0; MOST]);
                    });
                }
            }
            Phase::Gone => {}
        }
    }

    /// The last write was acknowledged: the claim, or a renewal, which counts if it is heard in time.
    fn is_heard(self, client: &mut Client) {
        client.phase = Phase::Claimed;
        if client.entered == 0 {
            return;
        }
        if client.valid > 0 || self.broken == Broken::BelievesLateRenewals {
            client.valid = client.lasts;
        } else {
            client.phase = Phase::Gone;
        }
    }

    fn look_ends(self, after: &mut State, me: usize) {
        let used = after.used;
        let client = &mut after.clients[me];
        if matches!(self.broken, Broken::CountsToTheEnd | Broken::EntersBeforeTheBurialAndCountsToTheEnd) {
            client.ripe = self.ripe(client);
        }
        let (own, dead) = (client.seen[me], self.dead(client, me));
        self.note(client, me);
        let is_alone = (0..MOST).all(|other| other == me || client.seen[other] == 0 || dead[other] > 0);
        let buries = dead.iter().any(|stamp| *stamp > 0);
        let skips = matches!(
            self.broken,
            Broken::EntersBeforeTheBurial | Broken::EntersBeforeTheBurialAndCountsToTheEnd
        );
        client.ends_look();
        if client.entered > 0 {
            // A renewal: lost, or written.
            let is_lost = own != client.stamp || used > client.entered || client.valid == 0;
            if is_lost {
                (client.phase, client.valid) = (Phase::Gone, 0);
            } else if client.stamp == self.writes[me] {
                client.phase = Phase::Gone;
            } else {
                client.send(self.lease, false);
            }
        } else if buries && !skips {
            (client.phase, client.dead) = (Phase::Burying, dead);
            self.bury(after, &dead);
        } else if own != client.stamp || (client.lasts == 0 && self.broken != Broken::EntersLate) {
            // Not as it was written, or too old.
            if client.stamp < self.writes[me] {
                client.send(self.lease, false)
            } else {
                client.phase = Phase::Gone
            }
        } else if is_alone {
            (client.phase, client.valid) =
                (Phase::Claimed, client.lasts.max(u8::from(self.broken == Broken::EntersLate)));
            after.entries += 1;
            after.clients[me].entered = after.entries;
            if buries {
                self.bury(after, &dead);
            }
        } else {
            client.phase = Phase::Claimed;
        }
    }

    fn bury(self, after: &mut State, dead: &[u8; MOST]) {
        let more = u8::from(self.broken == Broken::BuriesTheNext);
        for (victim, stamp) in after.clients.iter_mut().zip(dead) {
            if *stamp > 0 {
                victim.burials |= 1 << (stamp + more);
            }
        }
    }

    /// Returns the stamps that the look which ends shows to be dead.
    fn dead(self, client: &Client, me: usize) -> [u8; MOST] {
        let mut dead = [0; MOST];
        for other in (0..MOST).filter(|other| *other != me && client.seen[*other] > 0) {
            let is_same =
                client.noted[other].0 == client.seen[other] || self.broken == Broken::ComparesClients;
            if client.ripe & (1 << other) != 0 && is_same {
                dead[other] = client.seen[other];
            }
        }
        dead
    }

    /// Returns what is noted for a lease.
    fn ripe(self, client: &Client) -> u8 {
        let old =
            (0..MOST).filter(|other| client.noted[*other].0 > 0 && client.noted[*other].1 >= self.lease);
        old.map(|other| 1 << other).sum()
    }

    fn note(self, client: &mut Client, me: usize) {
        let age = if self.broken == Broken::CountsFromTheBeginning { client.looking } else { 0 };
        for other in (0..MOST).filter(|other| *other != me) {
            let is_same = self.broken == Broken::ComparesClients && client.noted[other].0 > 0;
            if client.seen[other] > client.noted[other].0 && !is_same {
                client.noted[other] = (client.seen[other], age);
            }
        }
    }
}

/// A write or a burial arrives, however late.
fn arrivals(state: &State, me: usize, next: &mut Vec<State>) {
    for stamp in 1..8 {
        let mut after = *state;
        let client = &mut after.clients[me];
        if client.on_the_way & (1 << stamp) != 0 {
            client.on_the_way &= !(1 << stamp);
            client.written = client.written.max(stamp);
            next.push(after);
        }
        let mut after = *state;
        let client = &mut after.clients[me];
        if client.burials & (1 << stamp) != 0 {
            client.burials &= !(1 << stamp);
            client.buried = client.buried.max(stamp);
            next.push(after);
        }
    }
}

/// The lock is given back: its holder stops relying on it first.
fn leave(after: &mut State, me: usize) {
    let client = &mut after.clients[me];
    (client.valid, client.phase, client.idle) = (0, Phase::Gone, client.stamp + 1);
    client.on_the_way |= 1 << client.idle;
    after.used = after.used.max(client.entered);
}
