//! Runs the tests: `cargo xtask test` builds, starts the servers that are needed, runs everything, and sums it up.

mod chosen;
mod machine;
mod needs;
mod output;
mod parts;
mod plan;
mod printer;
mod report;
mod room;
mod run;
mod said;
mod skips;
mod slow;
mod times;

use std::{
    collections::VecDeque,
    env,
    io::stdout,
    panic::resume_unwind,
    process::ExitCode,
    thread::{self, ScopedJoinHandle},
    time::{Instant, UNIX_EPOCH},
};

use anyhow::{Context, Result, ensure};

pub(crate) use self::parts::Part;
use self::{
    chosen::Chosen,
    machine::Watch,
    output::Reader,
    plan::{Job, Plan, ServersOf, What},
    printer::Printer,
    report::Report,
    room::Room,
    run::Program,
    skips::SkipsFile,
};
use crate::{
    both::both,
    cargo::{self, Package},
    cli::Test,
    engine::Engine,
    interrupt,
    places::Places,
    progress, prometheus,
    servers::Servers,
    store::Variable,
};

pub(crate) fn test(places: &Places, options: &Test) -> Result<ExitCode> {
    let limit = Instant::now() + options.timeout;
    let machine = Watch::begin();
    let plan = plan(places, options)?;
    progress::beside_others();
    // Servers are fetched and start while the programs are built, which leaves a core idle now and then.
    let build = || run::build(&plan, limit);
    let (started, programs) = both(|| Started::start(places, &plan), build, interrupt::give_up)?;
    let reader = Reader::new(programs.iter().filter_map(Program::named).collect());
    let printer = Printer::new(Box::new(stdout()), reader);
    let skips = SkipsFile::create(places.skips_file())?;
    let (extent, part) = extent(options.long)?;
    let more = vec![skips.variable(), extent];
    let problems = Run { plan: &plan, programs: &programs, limit, printer: &printer }.all(started, more)?;
    let deny_skips = options.deny_skips || env::var("CI").is_ok_and(|ci| ci == "true" || ci == "1");
    let left_out = skips.read()?;
    let machine = machine.seen();
    let report = Report { rows: printer.rows(), left_out, part, problems, deny_skips, machine };
    report.print();
    Ok(match (interrupt::happened(), report.succeeded()) {
        (true, _) => ExitCode::from(interrupt::EXIT_CODE),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    })
}

/// Returns what tells the tests how much they are to do, as `long.rs` of the test kit reads it; and of a short run which part of the long one it takes
/// along: another one each time, unless the user names one.
fn extent(is_long: bool) -> Result<(Variable, Option<u64>)> {
    if is_long {
        return Ok((("YLOCK_LONG", "1".to_owned()), None));
    }
    let part = match env::var(PART) {
        Ok(named) => named.parse().with_context(|| format!("{PART} is a number, not {named:?}"))?,
        // Anything that differs: runs that a clock starts begin at the same second.
        Err(_) => UNIX_EPOCH.elapsed().map_or(0, |time| u64::from(time.subsec_micros())),
    };
    Ok(((PART, part.to_string()), Some(part)))
}

const PART: &str = "YLOCK_PART";

fn plan(places: &Places, options: &Test) -> Result<Plan> {
    let packages = cargo::packages()?;
    let mut chosen = Chosen::find(&options.places, &packages)?;
    if let Some(part) = options.part {
        chosen = chosen.only(part, &packages, options.long);
    }
    chosen.engines.retain(|engine| engine.has_servers());
    let servers = whose(&chosen.engines, &packages, places);
    ensure!(!chosen.targets.is_empty(), "there is nothing to run: fewer targets than parts");
    Ok(Plan::new(packages, chosen, servers, options.long))
}

/// Returns whose servers the tests use, some of which break servers.
fn whose(wanted: &[&'static Engine], packages: &[Package], places: &Places) -> ServersOf {
    let has_trouble = |engine: &Engine| {
        packages.iter().any(|package| package.is_of(engine) && plan::makes_trouble(package))
    };
    if wanted.is_empty() {
        ServersOf::Nobody
    } else if wanted.iter().any(|engine| has_trouble(engine) && engine.stores(places).has_given()) {
        ServersOf::User
    } else {
        ServersOf::Xtask
    }
}

/// The servers that the tests use, and what tells tests of the programs that they start themselves.
struct Started {
    servers: Option<Servers>,
    variables: Vec<Variable>,
}

impl Started {
    fn start(places: &Places, plan: &Plan) -> Result<Self> {
        let engines = plan.engines();
        let servers = if engines.is_empty() { None } else { Some(Servers::start(places, engines)?) };
        let prometheus = if plan.wants_prometheus() { prometheus::variable(places)? } else { None };
        Ok(Self { servers, variables: prometheus.into_iter().collect() })
    }

    /// Returns the variables that tell tests of the servers as they are now.
    fn told(&self) -> Result<Vec<Variable>> {
        let servers = self.servers.as_ref().map(Servers::environment).transpose()?.unwrap_or_default();
        Ok([servers, self.variables.clone()].concat())
    }

    /// Waits until no other run uses the servers, and returns what is told then.
    fn alone(&mut self) -> Result<Vec<Variable>> {
        self.servers.as_mut().map_or(Ok(()), Servers::alone)?;
        self.told()
    }
}

/// What all jobs of a run share.
#[derive(Clone, Copy)]
struct Run<'a> {
    plan: &'a Plan,
    programs: &'a [Program],
    limit: Instant,
    printer: &'a Printer,
}

impl Run<'_> {
    /// Runs all jobs, and returns what went wrong apart from tests. The servers are stopped before the sums are printed, which shall
    /// come last.
    fn all(self, mut started: Started, more: Vec<Variable>) -> Result<Vec<String>> {
        started.variables.extend(more);
        let mut told = started.told()?;
        let (beside, jobs, room) = (self.plan.beside(), self.plan.jobs(), Room::default());
        Ok(thread::scope(|threads| {
            let variables = told.clone();
            let computing = move || beside.iter().flat_map(|job| self.job(job, &variables)).collect();
            let mut running = vec![threads.spawn(computing)];
            let mut waiting: VecDeque<_> = jobs.iter().collect();
            while let Some(place) = room.enter(&mut waiting) {
                let job = place.job;
                if job.what == What::Trouble && self.is_worth_waiting() {
                    match started.alone() {
                        Ok(variables) => told = variables,
                        Err(error) => {
                            running.push(threads.spawn(move || vec![format!("{}: {error:#}", job.what)]));
                            continue;
                        }
                    }
                }
                let variables = told.clone();
                running.push(threads.spawn(move || {
                    let _place = place;
                    self.job(job, &variables)
                }));
            }
            running.into_iter().flat_map(joined).collect()
        }))
    }

    /// Returns whether there is time for another run to end. Nothing begins any more after Ctrl-C and at the limit.
    fn is_worth_waiting(self) -> bool {
        !interrupt::happened() && Instant::now() < self.limit
    }

    /// Runs a job, and returns what went wrong.
    fn job(self, job: &Job, variables: &[Variable]) -> Vec<String> {
        run::run(job, self.programs, variables, self.limit, self.printer)
    }
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}
