//! Runs the tests: `cargo xtask test` builds, starts the servers that are needed, runs everything, and sums it up.

mod output;
mod plan;
mod report;
mod run;
mod skips;

use std::{env, panic::resume_unwind, process::ExitCode, thread, time::Instant};

use anyhow::Result;

use self::{
    output::Reader,
    plan::{Pass, Plan, ServersOf, What},
    report::Report,
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
    let plan = Plan::new(packages, &options.engines, servers);
    // First the build: it fails sooner than servers start, and the servers need not run meanwhile.
    let executables = run::build(&plan, limit)?;
    let mut reader = Reader::new(executables);
    let skips = SkipsFile::create(places.skips_file())?;
    let mut more = vec![skips.variable()];
    if options.long {
        // As `short_or_long` of the test kit reads it.
        more.push(("YLOCK_LONG", "1".to_owned()));
    }
    let problems = run_all(places, &wanted, &plan, limit, more, &mut reader)?;
    let deny_skips = options.deny_skips || env::var("CI").is_ok_and(|ci| ci == "true" || ci == "1");
    let report = Report { rows: reader.rows(), skips: skips.read()?, problems, deny_skips };
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

/// Runs all passes, and returns what went wrong apart from tests. The servers are stopped before the sums are printed, which shall
/// come last.
fn run_all(
    places: &Places,
    wanted: &[&'static Engine],
    plan: &Plan,
    limit: Instant,
    mut more: Vec<Variable>,
    reader: &mut Reader,
) -> Result<Vec<String>> {
    let mut servers = if wanted.is_empty() { None } else { Some(Servers::start(places, wanted)?) };
    let prometheus = if plan.wants_prometheus() { prometheus::variable(places)? } else { None };
    more.extend(prometheus);
    Ok(thread::scope(|threads| {
        let more = &more;
        let beside = plan.beside().map(|pass| threads.spawn(move || Beside::run(&pass, more, limit)));
        let mut problems = one_after_the_other(plan, servers.as_mut(), limit, more, reader);
        if let Some(beside) = beside {
            let beside = beside.join().unwrap_or_else(|panic| resume_unwind(panic));
            run::show(&beside.printed);
            reader.feed(&beside.printed);
            problems.extend(beside.problems);
        }
        problems
    }))
}

/// What has become of the pass that runs beside the others.
struct Beside {
    printed: Vec<u8>,
    problems: Vec<String>,
}

impl Beside {
    fn run(pass: &Pass, variables: &[Variable], limit: Instant) -> Self {
        let mut printed = Vec::new();
        let problems = run::run_beside(pass, variables, limit, &mut printed);
        Self { problems: problems.unwrap_or_else(|error| vec![format!("{error:#}")]), printed }
    }
}

fn one_after_the_other(
    plan: &Plan,
    mut servers: Option<&mut Servers>,
    limit: Instant,
    more: &[Variable],
    reader: &mut Reader,
) -> Vec<String> {
    let mut problems = Vec::new();
    for pass in plan.passes() {
        if Instant::now() > limit {
            problems.push(format!("no time was left for the {}", pass.what));
            continue;
        }
        match one_pass(&pass, servers.as_deref_mut(), limit, more, reader) {
            Ok(more) => problems.extend(more),
            Err(error) => {
                problems.push(format!("{error:#}"));
                break;
            }
        }
    }
    problems
}

fn one_pass(
    pass: &Pass,
    mut servers: Option<&mut Servers>,
    limit: Instant,
    more: &[Variable],
    reader: &mut Reader,
) -> Result<Vec<String>> {
    if let (What::Trouble, Some(servers)) = (pass.what, servers.as_mut()) {
        servers.alone()?;
    }
    let mut variables = servers.map(|servers| servers.environment()).transpose()?.unwrap_or_default();
    variables.extend_from_slice(more);
    run::run(pass, &variables, limit, reader)
}
