//! The options, as `cargo xtask bench thesis -- --help` shows them.

use std::path::{Path, PathBuf};

use clap::Parser;

use crate::matrix::{CONTENDERS, Call, HOLDS, Lock, Names, Place, Point, ROUND_TRIPS, points};

/// The old lock of the thesis against its queue lock.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench thesis --")]
pub(crate) struct Arguments {
    /// On the real cluster; there and in the simulation when neither is named
    #[arg(long)]
    real: bool,
    /// On the simulated store
    #[arg(long)]
    simulated: bool,
    /// Only the queue without and with contenders that tell each other, on the real cluster
    #[arg(long, conflicts_with = "simulated")]
    told: bool,
    /// Prints what the queue lock does at a hot name where all nodes and clients of the simulation share so many cores, and keeps nothing
    #[arg(long, value_name = "N", conflicts_with_all = ["real", "told", "out", "again", "render_only"], value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub(crate) cores: Option<u32>,
    /// A small part of the matrix, for a short time each
    #[arg(long)]
    pub(crate) quick: bool,
    /// The numbers of contenders, separated by commas
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1_024))]
    contenders: Vec<u32>,
    /// The holds in milliseconds, separated by commas
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(0..=1_000))]
    holds: Vec<u64>,
    /// The folder of what was measured
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Measure again what the folder has already
    #[arg(long)]
    pub(crate) again: bool,
    /// Measure nothing, only write those parts of the document whose points are all known. Measuring writes them as well
    #[arg(long, conflicts_with = "quick")]
    pub(crate) render_only: bool,
}

impl Arguments {
    pub(crate) fn is_real(&self) -> bool {
        self.real || !self.simulated
    }

    pub(crate) fn is_simulated(&self) -> bool {
        self.simulated || !(self.real || self.told)
    }

    /// Returns the points that are wanted in these places.
    pub(crate) fn points(&self, places: &[Place]) -> Vec<Point> {
        let quick = self.quick;
        let or = |given: bool, quick_one: bool| !given && quick_one;
        let contenders = match &self.contenders {
            given if or(!given.is_empty(), quick) => vec![1, 8],
            given if given.is_empty() => CONTENDERS.to_vec(),
            given => given.clone(),
        };
        let holds = match &self.holds {
            given if or(!given.is_empty(), quick) => vec![20],
            given if given.is_empty() => HOLDS.to_vec(),
            given => given.clone(),
        };
        let mut points = points(places, &contenders, &holds);
        points.retain(|point| !self.told || point.compares_told());
        points
    }

    /// Returns the points of a simulated machine with cores that are shared.
    pub(crate) fn points_with_cores(&self) -> Vec<Point> {
        let places = [Place::Simulated { round_trip_micros: ROUND_TRIPS[0] }];
        let mut points = self.points(&places);
        points.retain(|point| {
            (point.names, point.call, point.lock) == (Names::Hot, Call::GetLock, Lock::Queue)
        });
        points
    }

    pub(crate) fn simulated_places() -> Vec<Place> {
        ROUND_TRIPS.iter().map(|&round_trip_micros| Place::Simulated { round_trip_micros }).collect()
    }

    pub(crate) fn folder(&self, workspace: &Path) -> PathBuf {
        // A comparison is measured in one go: what one of the others has measured before is not known to it.
        let name = match (self.quick, self.told) {
            (true, _) => "thesis-quick",
            (false, true) => "thesis-told",
            (false, false) => "thesis",
        };
        self.out.clone().unwrap_or_else(|| workspace.join("target").join(name))
    }
}
