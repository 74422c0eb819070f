//! `cargo xtask simulate`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;
use ylock_core::options::OptionValue;
use ylock_engine_cassandra::options::{Clock, Expiry, Notify, Protocol};
use ylock_simulation::{Built, Fault, Sets, Setting, Subject, run};

/// Tries to break the engines, and the keeper, on simulated stores, one seed after the other.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask simulate")]
struct Arguments {
    /// The subject that is broken
    #[arg(long, value_enum, default_value_t)]
    of: Subject,
    /// The number of seeds
    #[arg(long, default_value_t = 2_000)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Only these kinds of trouble; all that the engine bears when none is given
    #[arg(long = "fault", value_enum)]
    faults: Vec<Fault>,
    /// No trouble at all
    #[arg(long, conflicts_with = "faults")]
    calm: bool,
    /// Run the lock that the queue lock replaces
    #[arg(long)]
    shadow_rows: bool,
    /// Take places in the queue from the thesis's time service
    #[arg(long)]
    global_time: bool,
    /// The rule by which the rows of dead clients of Cassandra go; `observed` has three leases and clocks that are further off
    #[arg(long, value_parser = expiry, default_value = "observed")]
    expiry: Expiry,
    /// How waiters learn of their turn: `udp`, most clients tell each other, over a network in which anything may happen to hints
    #[arg(long, value_parser = notify, default_value = "off")]
    notify: Notify,
    /// The number of nodes of the cluster
    #[arg(long, default_value_t = 3)]
    replicas: usize,
    /// The leases of requests, in milliseconds, the usual one first: by default 5000, or three where rows are observed
    #[arg(long = "lease")]
    leases: Vec<u64>,
    /// How many of a hundred acquisitions of an engine do not wait
    #[arg(long, default_value_t = 20)]
    tries: u64,
    /// All acquisitions of an engine ask for the strict order; with `--calm` they must enter in it, except on Cassandra
    #[arg(long)]
    strict: bool,
    /// Above the keeper: take several locks at once, too
    #[arg(long)]
    sets: bool,
    /// Above the keeper: take permits, lead, and run jobs once per period, too
    #[arg(long)]
    built: bool,
    /// Show the whole trace, also of a seed that does not fail
    #[arg(long)]
    trace: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.strict && arguments.of.is_above_the_keeper() {
        eprintln!("--strict is for engines: the tasks above the keeper ask for every order");
        return ExitCode::FAILURE;
    }
    let is_any = arguments.faults.is_empty() && !arguments.calm;
    let allowed = if is_any { Fault::borne() } else { arguments.faults.clone() };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, failed) = (AtomicU64::new(0), Mutex::new(BTreeMap::new()));
    let (entries, nanos) = (AtomicU64::new(0), AtomicU64::new(0));
    let (most_steps, burials) = (AtomicU64::new(0), AtomicU64::new(0));
    let (overtaking, queued) = (AtomicU64::new(0), AtomicU64::new(0));
    let bar = ProgressBar::new(arguments.seeds);
    let style = "{bar:40} {pos}/{len} seeds, {per_sec}, {msg}";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let observes = arguments.expiry == Expiry::Observed && arguments.of.is_of_cassandra();
                let preset = if observes { Setting::default().observed() } else { Setting::default() };
                let leases = arguments.leases.iter().copied().map(Duration::from_millis);
                let setting = Setting {
                    of: arguments.of,
                    allowed: allowed.clone(),
                    lines: arguments.trace,
                    protocol: if arguments.shadow_rows { Protocol::ShadowRows } else { Protocol::Queue },
                    replicas: arguments.replicas,
                    notify: arguments.notify == Notify::Udp && !arguments.shadow_rows,
                    tries: arguments.tries,
                    strict: arguments.strict,
                    built: if arguments.built { Built::Right } else { Built::None },
                    sets: if arguments.sets { Sets::Right } else { Sets::None },
                    leases: if leases.len() == 0 { preset.leases.clone() } else { leases.collect() },
                    clock: if arguments.global_time { Clock::GlobalTime } else { Clock::Hlc },
                    ..preset
                };
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= arguments.seeds {
                        return;
                    }
                    let outcome = run(arguments.from + number, &setting);
                    entries.fetch_add(outcome.entries, Ordering::Relaxed);
                    burials.fetch_add(outcome.burials, Ordering::Relaxed);
                    most_steps.fetch_max(outcome.steps, Ordering::Relaxed);
                    overtaking.fetch_add(outcome.inversions.0, Ordering::Relaxed);
                    queued.fetch_add(outcome.inversions.1, Ordering::Relaxed);
                    let time = u64::try_from(outcome.time.as_nanos()).unwrap_or(u64::MAX);
                    let all = nanos.fetch_add(time, Ordering::Relaxed) + time;
                    bar.inc(1);
                    bar.set_message(format!("{:.1} simulated hours", hours(all)));
                    if arguments.trace {
                        bar.suspend(|| outcome.lines.iter().for_each(|line| println!("{line}")));
                    }
                    if !outcome.wrong.is_empty() {
                        let seed = arguments.from + number;
                        failed.lock().insert(seed, outcome.wrong);
                    }
                }
            });
        }
    });
    bar.finish_and_clear();
    let elapsed = bar.elapsed().max(Duration::from_millis(1)).as_secs_f64();
    println!(
        "{} seeds, {:.1} seeds/s, {:.1} simulated hours, {} entries, at most {} steps in a run",
        arguments.seeds,
        arguments.seeds as f64 / elapsed,
        hours(nanos.load(Ordering::Relaxed)),
        entries.load(Ordering::Relaxed),
        most_steps.load(Ordering::Relaxed)
    );
    let burials = burials.load(Ordering::Relaxed);
    if burials > 0 {
        println!("{burials} burials");
    }
    let queued = queued.load(Ordering::Relaxed);
    // The places of other stores are not watched.
    if queued > 0 && arguments.of == Subject::Engine {
        let overtaking = overtaking.load(Ordering::Relaxed);
        println!("{overtaking} of {queued} entries from the queue went before a client that was there first");
    }
    let failed = failed.into_inner();
    for (seed, wrong) in failed.iter().take(20) {
        println!("seed {seed}: {}", wrong.join("; "));
    }
    let Some((first, _)) = failed.first_key_value() else { return ExitCode::SUCCESS };
    println!(
        "{} of {} seeds failed; the trace of one: cargo xtask simulate --of {}{}{} --from {first} --seeds 1 --trace",
        failed.len(),
        arguments.seeds,
        arguments.of.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned()),
        if arguments.strict { " --strict" } else { "" },
        if arguments.calm { " --calm" } else { "" },
    );
    ExitCode::FAILURE
}

fn expiry(text: &str) -> Result<Expiry, String> {
    Expiry::from_text(text)
}

fn notify(text: &str) -> Result<Notify, String> {
    Notify::from_text(text)
}

fn hours(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64() / 3_600.0
}
