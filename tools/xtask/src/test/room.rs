//! Lets programs start in their order, as many at a time as there is room for.

use std::{
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
    job: &'a Job,
}

impl<'a> Room<'a> {
    /// Waits until the job may start.
    pub(crate) fn enter(&self, job: &'a Job) -> Place<'a, '_> {
        let mut running = self.running();
        while !fits(job, &running) {
            running = self.changed.wait(running).unwrap_or_else(PoisonError::into_inner);
        }
        running.push(job);
        Place { room: self, job }
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

/// What breaks servers runs beside none that uses them.
fn fits(job: &Job, running: &[&Job]) -> bool {
    let taken: usize = running.iter().map(|job| job.weight).sum();
    let is_left_alone = || running.iter().all(|job| job.what == What::OwnServers);
    taken + job.weight <= ROOM && (job.what != What::Trouble || is_left_alone())
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc::channel, thread};

    use super::*;
    use crate::test::plan::Of;

    fn job(what: What, weight: usize) -> Job {
        Job { what, program: Of::Cargo(vec![]), libtest: vec![], weight }
    }

    #[test]
    fn a_job_fits_if_there_is_room() {
        let (half, whole) = (job(What::Tests, ROOM / 2), job(What::Conformance, ROOM));
        assert!(fits(&half, &[&half]) && !fits(&half, &[&half, &half]));
        assert!(fits(&whole, &[]) && !fits(&whole, &[&half]) && !fits(&half, &[&whole]));
    }

    #[test]
    fn what_breaks_servers_runs_beside_tests_with_servers_of_their_own_alone() {
        let trouble = job(What::Trouble, 1);
        assert!(fits(&trouble, &[&job(What::OwnServers, 1)]));
        for what in [What::Docs, What::Tests, What::Conformance, What::Trouble] {
            assert!(!fits(&trouble, &[&job(what, 1)]), "{what}");
        }
    }

    #[test]
    fn a_place_that_is_left_lets_the_next_job_in() {
        let (first, second) = (job(What::Tests, ROOM), job(What::Tests, ROOM));
        let room = Room::default();
        let place = room.enter(&first);
        let (say, said) = channel();
        thread::scope(|threads| {
            threads.spawn(|| {
                let _place = room.enter(&second);
                say.send(()).expect("it is listened to");
            });
            assert!(said.try_recv().is_err(), "the second one waits");
            drop(place);
            said.recv().expect("the second one has entered");
        });
    }
}
