//! Errands for several locks at once: sets, and sets that grow.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use ylock_core::environment::Environment;
use ylock_core::{Error, Guard, Guards, Lease, Mode, Result, TwoPhaseLocking, Ylock};

use super::errand::Manner;
use super::inside::Inside;
use super::visitor::Visitor;

/// Whether tasks take several locks at once, and with which mistake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "as many as there are variants of the tests")]
pub enum Sets {
    /// They do not.
    #[default]
    None,
    /// They do, as the keeper's users do.
    Right,
    /// They wait for single locks one after the other, in any order.
    Unsorted,
    /// They wait for single locks in order, and do not look after those that they have.
    Heedless,
}

/// One lock of a set.
type Member = (String, Mode);

impl Visitor {
    /// Takes several locks at once, works under all of them, and gives them back.
    pub(super) async fn visit_set(&mut self, client: &Ylock) {
        match self.chance.below(5) {
            0 => self.grow(client).await,
            1 => self.run_set(client).await,
            _ => self.hold_set(client).await,
        }
    }

    /// Returns some of the locks, in any order, and each in any mode; some of them twice.
    fn members(&mut self) -> Vec<Member> {
        let count = 1 + self.chance.below(4);
        let mode = |chance: &mut crate::chance::Chance| {
            [Mode::Read, Mode::Write, Mode::Write][chance.below(3) as usize]
        };
        (0..count).map(|_| (self.name(), mode(&mut self.chance))).collect()
    }

    async fn hold_set(&mut self, client: &Ylock) {
        let (members, manner) = (self.members(), self.manner());
        let guards = match self.process.shared.sets {
            Sets::Right | Sets::None => self.acquire_set(client, &members, manner).await,
            mistaken => self.acquire_wrongly(client, members, mistaken).await.map(Some),
        };
        let guards = match guards {
            Ok(Some(guards)) => guards,
            Ok(None) => return,
            Err(error) => return self.process.excuse(&error),
        };
        if let Err(error) = guards.check() {
            self.process.shared.oracle.complain(format!("a set was granted that is not whole: {error}"));
        }
        let time = self.stay();
        let mut inside: Vec<_> =
            guards.iter().filter_map(|lease| Inside::enter(&self.process, lease)).collect();
        work(&mut inside, time).await;
        drop(inside);
        self.let_go_of_set(guards).await;
    }

    pub(super) fn manner(&mut self) -> Manner {
        let time = self.chance.between(Duration::ZERO, self.process.shared.lease);
        match self.chance.below(10) {
            0 => Manner::Try,
            1 | 2 => Manner::Within(time),
            3 | 4 => Manner::Dropped(time),
            _ => Manner::Wait,
        }
    }

    async fn acquire_set(
        &mut self,
        client: &Ylock,
        members: &[Member],
        manner: Manner,
    ) -> Result<Option<Guards>> {
        let many = members.iter().fold(client.multi_lock(), |many, (name, mode)| match mode {
            Mode::Read => many.read("group", name),
            Mode::Write => many.write("group", name),
        });
        let many = match self.chance.below(10) {
            0 => many,
            1 => many.owned_by(&self.process.owner),
            _ => many.owned_by(&self.owner),
        };
        match manner {
            Manner::Wait => many.acquire().await.map(Some),
            Manner::Try => many.acquire().now().await,
            Manner::Within(time) => many.acquire().within(time).await,
            Manner::Dropped(time) => {
                let acquiring = Box::pin(many.acquire());
                match select(acquiring, self.process.clocks.sleep(time)).await {
                    Either::Left((answer, _)) => answer.map(Some),
                    Either::Right(_) => Ok(None),
                }
            }
        }
    }

    /// Takes the locks one after the other, for one owner, with a mistake.
    async fn acquire_wrongly(
        &mut self,
        client: &Ylock,
        mut members: Vec<Member>,
        mistake: Sets,
    ) -> Result<Guards> {
        members.sort_by(|one, other| (&one.0, one.1 == Mode::Read).cmp(&(&other.0, other.1 == Mode::Read)));
        members.dedup_by(|later, first| later.0 == first.0);
        if mistake == Sets::Unsorted {
            let first = self.chance.below(members.len() as u64) as usize;
            members.rotate_left(first);
        }
        let (locks, mut guards) = (client.locks("group").owned_by(&self.owner), Vec::<Guard>::new());
        for (name, mode) in members {
            guards.push(match mode {
                Mode::Read => locks.read(name).await?,
                Mode::Write => locks.write(name).await?,
            });
        }
        Ok(guards.into_iter().collect())
    }

    /// Runs work under a set, which is stopped when one of its locks is lost.
    async fn run_set(&mut self, client: &Ylock) {
        let many = self.members().into_iter().fold(client.multi_lock(), |many, (name, mode)| match mode {
            Mode::Read => many.read("group", name),
            Mode::Write => many.write("group", name),
        });
        let (process, time) = (Arc::clone(&self.process), self.stay());
        let run = many.owned_by(&self.owner).acquire().run(|leases| async move {
            let mut inside: Vec<_> =
                leases.iter().filter_map(|lease| Inside::enter(&process, lease)).collect();
            work(&mut inside, time).await;
        });
        if let Err(error) = run.await {
            self.process.excuse(&error);
        }
    }

    /// Takes several locks one after the other, each when it is known that it is needed.
    async fn grow(&mut self, client: &Ylock) {
        let (members, time) = (self.members(), self.stay());
        let (process, pause) = (&self.process, time / 8);
        let grown = client.two_phase_locking(|taking: TwoPhaseLocking| {
            let members = members.clone();
            async move {
                let mut leases: Vec<Lease> = Vec::new();
                for (name, mode) in members {
                    let lease = match mode {
                        Mode::Read => taking.read("group", name).await?,
                        Mode::Write => taking.write("group", name).await?,
                    };
                    // Of a lock that was taken twice the later lease has the stronger mode.
                    leases.retain(|earlier| earlier.key() != lease.key());
                    leases.push(lease);
                    process.clocks.sleep(pause).await;
                }
                let mut inside: Vec<_> =
                    leases.iter().filter_map(|lease| Inside::enter(process, lease)).collect();
                work(&mut inside, time).await;
                Ok::<_, Error>(())
            }
        });
        if let Err(error) = self.owner.scope(grown).await {
            self.process.excuse(&error);
        }
    }

    async fn let_go_of_set(&mut self, guards: Guards) {
        match self.chance.below(4) {
            0 => drop(guards),
            1 => {
                let mut guards = guards.into_guards();
                while !guards.is_empty() {
                    let any = self.chance.below(guards.len() as u64) as usize;
                    drop(guards.remove(any));
                    self.process.clocks.sleep(Duration::from_millis(10)).await;
                }
            }
            _ => {
                if let Err(error) = guards.unlock().await {
                    self.process.excuse(&error);
                }
            }
        }
    }
}

/// Works for a while, or until one of the locks is lost, and then writes what those protect that are held to write.
async fn work(inside: &mut [Inside], time: Duration) {
    join_all(inside.iter().map(|one| one.work(time))).await;
    inside.iter_mut().for_each(Inside::write);
}
