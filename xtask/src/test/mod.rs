//! `cargo xtask test`: builds, starts what is needed, runs everything, sums it up.

mod output;
mod plan;
mod report;
mod run;
mod skips;

use std::{env, process::ExitCode, time::Instant};

use anyhow::Result;

use self::{
    output::Reader,
    plan::{Pass, Plan, ServersOf, What},
    report::Report,
    skips::SkipsFile,
};
use crate::{
    cargo,
    cli::{Engine, Test},
    interrupt,
    places::Places,
    servers::{self, Servers},
};

pub(crate) fn test(places: &Places, options: &Test) -> Result<ExitCode> {
    let limit = Instant::now() + options.timeout;
    let plan = Plan::new(cargo::packages()?, &options.engines, servers_for(&options.engines));
    // First the build: it fails sooner than servers start, and they need not run meanwhile.
    let executables = run::build(&plan, limit)?;
    let mut reader = Reader::new(executables);
    let skips = SkipsFile::create(places.skips_file())?;
    let problems = run_all(places, &plan, limit, &skips, &mut reader)?;
    let deny_skips = options.deny_skips || env::var("CI").is_ok_and(|ci| ci == "true" || ci == "1");
    let report = Report { rows: reader.rows(), skips: skips.read()?, problems, deny_skips };
    report.print();
    Ok(match (interrupt::happened(), report.succeeded()) {
        (true, _) => ExitCode::from(interrupt::EXIT_CODE),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    })
}

fn servers_for(engines: &[Engine]) -> ServersOf {
    if !engines.is_empty() && !engines.contains(&Engine::Cassandra) {
        ServersOf::Nobody
    } else if servers::are_given() {
        ServersOf::User
    } else {
        ServersOf::Xtask
    }
}

/// What went wrong, apart from tests. The servers are stopped before the sums are printed, which shall come last.
fn run_all(
    places: &Places,
    plan: &Plan,
    limit: Instant,
    skips: &SkipsFile,
    reader: &mut Reader,
) -> Result<Vec<String>> {
    let mut servers = match plan.servers() {
        ServersOf::Xtask => Some(Servers::start(places)?),
        ServersOf::Nobody | ServersOf::User => None,
    };
    let mut problems = Vec::new();
    for pass in plan.passes() {
        match one_pass(&pass, servers.as_mut(), limit, skips, reader) {
            Ok(problem) => problems.extend(problem),
            Err(error) => {
                problems.push(format!("{error:#}"));
                break;
            }
        }
    }
    Ok(problems)
}

fn one_pass(
    pass: &Pass,
    mut servers: Option<&mut Servers>,
    limit: Instant,
    skips: &SkipsFile,
    reader: &mut Reader,
) -> Result<Option<String>> {
    if let (What::Trouble, Some(servers)) = (pass.what, servers.as_mut()) {
        servers.alone()?;
    }
    let mut variables = servers.map(|servers| servers.environment()).unwrap_or_default();
    variables.push(skips.variable());
    run::run(pass, &variables, limit, reader)
}
