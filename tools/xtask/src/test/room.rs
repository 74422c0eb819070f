//! Lets programs start in their order, as many at a time as there is room for. One whose servers are in use lets those behind it start.

use std::{
    collections::VecDeque,
    ptr,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use super::plan::{Job, ROOM, What};

/// The programs that run.
#[derive(Debug, Default)]
pub(crate) struct Room<'a> {
    running: Mutex<Vec<&'a Job>>,
    changed: Condvar,
}

/// The place of a program in the room. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place<'a, 'r> {
    room: &'r Room<'a>,
    pub(crate) job: &'a Job,
}

impl<'a> Room<'a> {
    /// Waits until there is room for the first of these jobs whose servers are not needed otherwise, and takes it; nothing if there are none.
    pub(crate) fn enter(&self, jobs: &mut VecDeque<&'a Job>) -> Option<Place<'a, '_>> {
        let mut running = self.running();
        while !jobs.is_empty() {
            // A small job that took the room which a large one waits for would go before it.
            let next = jobs.iter().position(|job| may_meet(job, &running));
            let next = next.filter(|next| has_room(jobs[*next], &running));
            if let Some(job) = next.and_then(|next| jobs.remove(next)) {
                running.push(job);
                return Some(Place { room: self, job });
            }
            running = self.changed.wait(running).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    fn running(&self) -> MutexGuard<'_, Vec<&'a Job>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_, '_> {
    fn drop(&mut self) {
        self.room.running().retain(|job| !ptr::eq(*job, self.job));
        self.room.changed.notify_all();
    }
}

fn has_room(job: &Job, running: &[&Job]) -> bool {
    let taken: usize = running.iter().map(|job| job.weight).sum();
    taken + job.weight <= ROOM
}

/// What breaks servers runs beside none that uses them.
fn may_meet(job: &Job, running: &[&Job]) -> bool {
    let shares = |other: &Job| other.shares.iter().any(|name| job.shares.contains(name));
    let breaks = |other: &Job| job.what == What::Trouble || other.what == What::Trouble;
    !running.iter().any(|other| breaks(other) && shares(other))
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc::channel, thread};

    use super::*;
    use crate::test::plan::Of;

    fn job(what: What, weight: usize) -> Job {
        using(what, weight, &[])
    }

    fn using(what: What, weight: usize, shares: &[&'static str]) -> Job {
        Job { what, program: Of::Cargo(vec![]), libtest: vec![], weight, shares: shares.to_vec() }
    }

    #[test]
    fn jobs_run_side_by_side_as_long_as_there_is_room() {
        let (half, whole) = (job(What::Tests, ROOM / 2), job(What::Conformance, ROOM));
        assert!(has_room(&half, &[&half]) && !has_room(&half, &[&half, &half]));
        assert!(has_room(&whole, &[]) && !has_room(&whole, &[&half]) && !has_room(&half, &[&whole]));
    }

    #[test]
    fn what_breaks_servers_runs_beside_none_that_uses_them() {
        let trouble = using(What::Trouble, 1, &["cassandra"]);
        for what in [What::Tests, What::Conformance, What::Trouble] {
            let (same, other) = (using(what, 1, &["redis", "cassandra"]), using(what, 1, &["redis"]));
            assert!(!may_meet(&trouble, &[&same]) && !may_meet(&same, &[&trouble]), "{what}");
            assert!(may_meet(&trouble, &[&other]) && may_meet(&other, &[&trouble]), "{what}");
        }
    }

    #[test]
    fn a_job_that_waits_for_its_servers_lets_others_start() {
        let (uses, breaks) = (using(What::Tests, 1, &["redis"]), using(What::Trouble, 1, &["redis"]));
        let other = job(What::Tests, 1);
        let (room, mut jobs) = (Room::default(), VecDeque::from([&uses, &breaks, &other]));
        let first = room.enter(&mut jobs).unwrap();
        let second = room.enter(&mut jobs).unwrap();
        assert!(ptr::eq(first.job, &uses) && ptr::eq(second.job, &other));
        drop(first);
        assert!(ptr::eq(room.enter(&mut jobs).unwrap().job, &breaks));
        assert!(room.enter(&mut jobs).is_none());
    }

    #[test]
    fn a_job_that_waits_for_room_is_the_next() {
        let (small, large) = (job(What::Tests, 1), job(What::Conformance, ROOM));
        let (room, behind) = (Room::default(), job(What::OwnServers, 1));
        let mut jobs = VecDeque::from([&small, &large, &behind]);
        let place = room.enter(&mut jobs).unwrap();
        let (say, said) = channel();
        thread::scope(|threads| {
            threads.spawn(|| {
                let next = room.enter(&mut jobs).unwrap();
                say.send(ptr::eq(next.job, &large)).expect("it is listened to");
            });
            assert!(said.try_recv().is_err(), "there is room for the small one behind it alone");
            drop(place);
            assert!(said.recv().expect("it has entered"), "the large one is next");
        });
    }

    #[test]
    fn a_place_that_is_left_lets_the_next_job_in() {
        let (first, second) = (job(What::Tests, ROOM), job(What::Tests, ROOM));
        let room = Room::default();
        let place = room.enter(&mut VecDeque::from([&first]));
        let (say, said) = channel();
        thread::scope(|threads| {
            threads.spawn(|| {
                let _place = room.enter(&mut VecDeque::from([&second]));
                say.send(()).expect("it is listened to");
            });
            assert!(said.try_recv().is_err(), "the second one waits");
            drop(place);
            said.recv().expect("the second one has entered");
        });
    }
}
