//! Runs the tests: `cargo xtask test` builds, starts the servers that are needed, runs everything, and sums it up.

mod output;
mod plan;
mod printer;
mod report;
mod run;
mod said;
mod skips;

use std::{
    env,
    io::stdout,
    panic::resume_unwind,
    process::ExitCode,
    thread::{self, ScopedJoinHandle},
    time::Instant,
};

use anyhow::Result;

use self::{
    output::Reader,
    plan::{Pass, Plan, ServersOf, What},
    printer::Printer,
    report::Report,
    run::Program,
    skips::SkipsFile,
};
use crate::{
    cargo::{self, Package},
    cli::Test,
    engine::{self, Engine},
    interrupt,
    places::Places,
    prometheus,
    servers::Servers,
    store::Variable,
};

pub(crate) fn test(places: &Places, options: &Test) -> Result<ExitCode> {
    let limit = Instant::now() + options.timeout;
    let wanted: Vec<_> =
        engine::chosen(&options.engines).into_iter().filter(|engine| engine.has_servers()).collect();
    let packages = cargo::packages()?;
    let servers = whose(&wanted, &packages, places);
    let plan = Plan::new(packages, &options.engines, servers, options.long);
    // First the build: it fails sooner than servers start, and the servers need not run meanwhile.
    let programs = run::build(&plan, limit)?;
    let reader = Reader::new(programs.iter().filter_map(Program::named).collect());
    let printer = Printer::new(Box::new(stdout()), reader);
    let skips = SkipsFile::create(places.skips_file())?;
    let mut more = vec![skips.variable()];
    if options.long {
        // As `short_or_long` of the test kit reads it.
        more.push(("YLOCK_LONG", "1".to_owned()));
    }
    let problems =
        Run { plan: &plan, programs: &programs, limit, printer: &printer }.all(places, &wanted, more)?;
    let deny_skips = options.deny_skips || env::var("CI").is_ok_and(|ci| ci == "true" || ci == "1");
    let report = Report { rows: printer.rows(), skips: skips.read()?, problems, deny_skips };
    report.print();
    Ok(match (interrupt::happened(), report.succeeded()) {
        (true, _) => ExitCode::from(interrupt::EXIT_CODE),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    })
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

/// What all passes of a run share.
#[derive(Clone, Copy)]
struct Run<'a> {
    plan: &'a Plan,
    programs: &'a [Program],
    limit: Instant,
    printer: &'a Printer,
}

impl Run<'_> {
    /// Runs all passes, and returns what went wrong apart from tests. The servers are stopped before the sums are printed, which shall
    /// come last.
    fn all(
        self,
        places: &Places,
        wanted: &[&'static Engine],
        mut more: Vec<Variable>,
    ) -> Result<Vec<String>> {
        let mut servers = if wanted.is_empty() { None } else { Some(Servers::start(places, wanted)?) };
        let prometheus = if self.plan.wants_prometheus() { prometheus::variable(places)? } else { None };
        more.extend(prometheus);
        Ok(thread::scope(|threads| {
            let more = &more;
            let beside = self.plan.beside().map(|pass| threads.spawn(move || self.pass(&pass, more)));
            let mut problems = self.one_after_the_other(servers.as_mut(), more);
            problems.extend(beside.map(joined).into_iter().flatten());
            problems
        }))
    }

    fn one_after_the_other(self, mut servers: Option<&mut Servers>, more: &[Variable]) -> Vec<String> {
        let mut problems = Vec::new();
        for step in self.plan.steps() {
            if interrupt::happened() {
                break;
            }
            // Before other runs are waited for, which may take their time.
            if Instant::now() > self.limit {
                problems.extend(step.iter().map(|pass| format!("no time was left for the {}", pass.what)));
                continue;
            }
            match told(servers.as_deref()) {
                Ok(told) => {
                    let variables = [&told, more].concat();
                    problems.extend(self.side_by_side(&step, servers.as_deref_mut(), &variables));
                }
                Err(error) => problems.extend(step.iter().map(|pass| format!("{}: {error:#}", pass.what))),
            }
        }
        problems
    }

    /// Runs the passes of a step, and returns what went wrong.
    fn side_by_side(
        self,
        step: &[Pass],
        mut servers: Option<&mut Servers>,
        variables: &[Variable],
    ) -> Vec<String> {
        let breaks = |pass: &&Pass| pass.what == What::Trouble;
        thread::scope(|threads| {
            let others = step.iter().filter(|pass| !breaks(pass));
            let others: Vec<_> =
                others.map(|pass| threads.spawn(move || self.pass(pass, variables))).collect();
            let mut problems = Vec::new();
            for pass in step.iter().filter(breaks) {
                // Not before the others have begun: it waits until no other run uses the servers.
                match servers.as_deref_mut().map_or(Ok(()), Servers::alone) {
                    Ok(()) => problems.extend(self.pass(pass, variables)),
                    Err(error) => problems.push(format!("{}: {error:#}", pass.what)),
                }
            }
            problems.extend(others.into_iter().flat_map(joined));
            problems
        })
    }

    /// Runs a pass, and returns what went wrong.
    fn pass(self, pass: &Pass, variables: &[Variable]) -> Vec<String> {
        run::run(pass, self.programs, variables, self.limit, self.printer)
    }
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Returns the variables that tell tests of the servers.
fn told(servers: Option<&Servers>) -> Result<Vec<Variable>> {
    Ok(servers.map(Servers::environment).transpose()?.unwrap_or_default())
}
