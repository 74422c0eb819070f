//! Runs what is wanted and not known yet, and keeps each result at once.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;

use crate::arguments::Arguments;
use crate::budget::Budget;
use crate::cores::Cores;
use crate::figures::Quantiles;
use crate::machine;
use crate::matrix::{Place, Point};
use crate::real::Cluster;
use crate::record::Record;
use crate::results::{Line, Results, Writer};
use crate::simulated;

/// The number of requests that tell a place's round trip.
const ROUND_TRIPS: u32 = 2_000;

/// Runs all that is wanted.
pub(crate) fn all(arguments: &Arguments, folder: &Path) -> Result<()> {
    let mut writer = Writer::open(folder, arguments.again)?;
    let known = Results::read(folder)?;
    let missing = |places: &[Place]| -> Vec<Point> {
        let wanted = arguments.points(places).into_iter();
        wanted.filter(|point| !known.points.contains_key(point)).collect()
    };
    if !known.points.is_empty() {
        println!("{} points are known already; --again measures them anew", known.points.len());
    }
    if arguments.is_simulated() {
        simulated_points(&missing(&Arguments::simulated_places()), arguments.quick, &mut writer)?;
    }
    if arguments.is_real() {
        real_points(&missing(&[Place::Real]), arguments.quick, &mut writer)?;
    }
    Ok(())
}

/// Prints what comes out where the nodes and clients of the simulation share so many cores.
pub(crate) fn with_cores(arguments: &Arguments, cores: u32) -> Result<()> {
    for point in arguments.points_with_cores() {
        let Some(time) = round_trip(point.place) else { continue };
        let budget = Budget::of(&point, arguments.quick);
        // A long queue comes to its pace only after many requests of each.
        let requests = budget.requests * (1 + u64::from(point.contenders) / 100);
        let budget = Budget { requests, ..budget };
        let record = simulated::run(point, time, budget, Some(&Cores::new(cores)))?;
        let gap = record.gap_millis.unwrap_or(Quantiles { p50: 0.0, p99: 0.0, max: 0.0 });
        println!(
            "{cores} cores, {:4} contenders, hold {} ms: {:7.1} grants/s {:6.1} requests/grant, gap p50 {:.1} p99 {:.1} ms, Jain index {:.3}",
            point.contenders,
            point.hold_millis,
            record.grants_per_second,
            record.requests_per_grant().unwrap_or_default(),
            gap.p50,
            gap.p99,
            record.jain.unwrap_or_default(),
        );
    }
    Ok(())
}

/// Runs the points on the real cluster: one after the other, and nothing else beside them.
fn real_points(points: &[Point], quick: bool, writer: &mut Writer) -> Result<()> {
    if points.is_empty() {
        return Ok(());
    }
    let cluster = Cluster::connect()?;
    writer.add(&Line::Machine(machine::describe()))?;
    writer.add(&Line::RoundTrip(Place::Real, cluster.round_trip(ROUND_TRIPS)?))?;
    let bar = bar(points.len());
    for &point in points {
        bar.set_message(point.to_string());
        keep(writer, cluster.run(point, Budget::of(&point, quick))?)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}

/// Runs the simulated points: a thread for each core, because their time is virtual.
fn simulated_points(points: &[Point], quick: bool, writer: &mut Writer) -> Result<()> {
    for place in Arguments::simulated_places() {
        if let (Some(time), true) = (round_trip(place), points.iter().any(|point| point.place == place)) {
            writer.add(&Line::RoundTrip(place, simulated::round_trip(time, ROUND_TRIPS)?))?;
        }
    }
    // The long ones first, so that no thread ends up alone with them.
    let mut points = points.to_vec();
    points.sort_by_key(|point| std::cmp::Reverse(point.contenders));
    let bar = bar(points.len());
    let queue = Queue { points, next: AtomicUsize::new(0), quick, bar, writer: Mutex::new(writer) };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let outcome = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(|| queue.work())).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(outcome) => outcome,
            Err(_) => bail!("a point has panicked"),
        })
    });
    queue.bar.finish_and_clear();
    outcome
}

/// Points that threads take one after the other.
struct Queue<'a> {
    points: Vec<Point>,
    next: AtomicUsize,
    quick: bool,
    bar: ProgressBar,
    writer: Mutex<&'a mut Writer>,
}

impl Queue<'_> {
    fn work(&self) -> Result<()> {
        while let Some(&point) = self.points.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let kept = self.run(point);
            if kept.is_err() {
                // The others need not go on either.
                self.next.store(self.points.len(), Ordering::Relaxed);
                return kept;
            }
            self.bar.inc(1);
        }
        Ok(())
    }

    fn run(&self, point: Point) -> Result<()> {
        let Some(time) = round_trip(point.place) else { return Ok(()) };
        let record = simulated::run(point, time, Budget::of(&point, self.quick), None)?;
        keep(*self.writer.lock(), record)
    }
}

fn round_trip(place: Place) -> Option<Duration> {
    match place {
        Place::Real => None,
        Place::Simulated { round_trip_micros } => Some(Duration::from_micros(round_trip_micros)),
    }
}

/// Keeps a result; a lock that was not one ends everything.
fn keep(writer: &mut Writer, record: Record) -> Result<()> {
    writer.add(&Line::Point(Box::new(record.clone())))?;
    if record.overlaps > 0 || record.lost_increments > 0 {
        bail!("{}: {} overlaps, {} lost increments", record.point, record.overlaps, record.lost_increments);
    }
    Ok(())
}

fn bar(points: usize) -> ProgressBar {
    let bar = ProgressBar::new(points as u64);
    let style = "{bar:40} {pos}/{len} points, {elapsed}, {msg}";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
