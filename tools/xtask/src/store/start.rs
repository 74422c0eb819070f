//! Starts stores, all at the same time, so that in the end either all of them work or none was started.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow};

use super::{Store, names, stop_processes, until_within};
use crate::{daemon::ProcessState, interrupt, progress::Step};

pub(super) fn start(stores: &[Box<dyn Store>], prepare: impl Fn() -> Result<()>) -> Result<()> {
    let (mut working, mut broken) = (Vec::new(), Vec::new());
    for store in stores.iter().map(|store| &**store) {
        if works(store)? { working.push(store) } else { broken.push(store) }
    }
    if !working.is_empty() {
        eprintln!("found {} running and ready", names(&working));
    }
    if broken.is_empty() {
        return Ok(());
    }
    prepare()?;
    let step = Step::begin(format!("starting {}", names(&broken)));
    let started: Vec<_> = broken.iter().flat_map(|store| store.to_start()).collect();
    if let Err(error) = start_all(&broken, &step) {
        // The logs stay.
        stop_processes(&started)?;
        return Err(error);
    }
    step.done(&format!("started {}", names(&broken)));
    Ok(())
}

/// Returns whether a store works. A store whose processes all run is given time: a test may just have made it choose another master.
fn works(store: &dyn Store) -> Result<bool> {
    let runs = || store.processes().iter().all(|process| process.state() == ProcessState::Running);
    if !runs() || store.check().is_ok() {
        return Ok(runs());
    }
    let step = Step::begin(format!("waiting for {}, which runs but does not work", store.name()));
    let began = Instant::now();
    while runs() && began.elapsed() < SETTLING {
        interrupt::pause(Duration::from_millis(50))?;
        match store.check() {
            Ok(()) => return Ok(true),
            Err(error) => step.detail(format!("{error:#}")),
        }
    }
    Ok(false)
}

fn start_all(stores: &[&dyn Store], step: &Step) -> Result<()> {
    thread::scope(|scope| {
        let threads: Vec<_> =
            stores.iter().map(|&store| scope.spawn(move || start_one(store, step))).collect();
        // All threads are waited for, so that no server is started while the caller cleans up.
        let results: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        results.into_iter().try_for_each(|result| result.map_err(|_| anyhow!("a start panicked"))?)
    })
}

fn start_one(store: &dyn Store, step: &Step) -> Result<()> {
    let check = || store.check().inspect_err(|error| step.detail(format!("{}: {error:#}", store.name())));
    let mut attempts = 0;
    loop {
        stop_processes(&store.to_start())?;
        let processes = store.processes();
        let started = store.start().and_then(|()| until_within(store.patience(), &processes, check));
        attempts += 1;
        // Between asking for a free port and using it, another process may have taken it. Then a process of the store ends.
        let has_ended = processes.iter().any(|process| process.state().is_over());
        if started.is_ok() || !has_ended || attempts == ATTEMPTS || interrupt::check().is_err() {
            return started.with_context(|| format!("cannot start {}", store.name()));
        }
    }
}

const ATTEMPTS: u32 = 3;

/// The time that a store has to settle. After a failover Sentinels leave the old master a master for about 11 s, until they tell it
/// which server to follow.
const SETTLING: Duration = Duration::from_secs(25);
