//! Plots: one file each, with a row of panels for each figure and a column for each place.

use std::path::Path;

use anyhow::Result;
use plotters::prelude::*;

use crate::chart::{self, Axis, Line};
use crate::matrix::{CONTENDERS, Call, Lock, Names, Place, Point};
use crate::record::Record;
use crate::results::Results;
use crate::tables::HOLD;

const WIDTH: u32 = 520;
const HEIGHT: u32 = 360;
/// The function that shows a record as a point of a line; nothing where there is nothing.
type Show = fn(&Record) -> Option<f64>;

/// One line for each lock.
struct Figure {
    axis: Axis,
    lines: &'static [(&'static str, Show)],
}

struct Plot {
    file: &'static str,
    names: Names,
    places: &'static [Place],
    figures: &'static [Figure],
}

const SIMULATED: [Place; 3] = [
    Place::Simulated { round_trip_micros: 200 },
    Place::Simulated { round_trip_micros: 2_000 },
    Place::Simulated { round_trip_micros: 40_000 },
];
const TWO: [Place; 2] = [Place::Real, SIMULATED[1]];

const PLOTS: [Plot; 5] = [
    Plot {
        file: "first-grant.svg",
        names: Names::Fresh,
        places: &[Place::Real, SIMULATED[0], SIMULATED[1], SIMULATED[2]],
        figures: &[Figure {
            axis: Axis { label: "first grant after a simultaneous start, ms", is_part: false },
            lines: &[
                ("p50", |record| record.first_grant_millis.map(|first| first.p50)),
                ("max", |record| record.first_grant_millis.map(|first| first.max)),
            ],
        }],
    },
    Plot {
        file: "wait.svg",
        names: Names::Hot,
        places: &TWO,
        figures: &[Figure {
            axis: Axis { label: "wait, ms", is_part: false },
            lines: &[
                ("p50", |record| record.wait_millis.map(|wait| wait.p50)),
                ("p99", |record| record.wait_millis.map(|wait| wait.p99)),
            ],
        }],
    },
    Plot {
        file: "gap.svg",
        names: Names::Hot,
        places: &TWO,
        figures: &[Figure {
            axis: Axis { label: "gap between holders, ms", is_part: false },
            lines: &[
                ("p50", |record| record.gap_millis.map(|gap| gap.p50)),
                ("p99", |record| record.gap_millis.map(|gap| gap.p99)),
            ],
        }],
    },
    Plot {
        file: "requests.svg",
        names: Names::Hot,
        places: &TWO,
        figures: &[Figure {
            axis: Axis { label: "requests per grant", is_part: false },
            lines: &[("", Record::requests_per_grant)],
        }],
    },
    Plot {
        file: "fairness.svg",
        names: Names::Hot,
        places: &TWO,
        figures: &[
            Figure {
                axis: Axis { label: "Jain index", is_part: true },
                lines: &[("", |record| record.jain)],
            },
            Figure {
                axis: Axis { label: "longest run of one contender, grants", is_part: false },
                lines: &[("", |record| record.longest_run.map(|run| run as f64))],
            },
        ],
    },
];

/// Draws all plots into a folder.
pub(crate) fn draw(results: &Results, folder: &Path) -> Result<()> {
    PLOTS.iter().try_for_each(|plot| plot.draw(results, folder))
}

impl Plot {
    fn draw(&self, results: &Results, folder: &Path) -> Result<()> {
        let is_there = |place: &&Place| results.points.keys().any(|point| point.place == **place);
        let places: Vec<Place> = self.places.iter().filter(is_there).copied().collect();
        if places.is_empty() {
            return Ok(());
        }
        // Two side by side, so that a page can show them.
        let (panels, columns) = (self.figures.len() * places.len(), places.len().min(2));
        let rows = panels.div_ceil(columns);
        let size = (WIDTH * u32::try_from(columns)?, HEIGHT * u32::try_from(rows)?);
        let path = folder.join(self.file);
        let area = SVGBackend::new(&path, size).into_drawing_area();
        area.fill(&WHITE).map_err(chart::failed)?;
        for (number, panel) in area.split_evenly((rows, columns)).iter().take(panels).enumerate() {
            let (figure, place) = (&self.figures[number / places.len()], places[number % places.len()]);
            let lines = self.lines(results, figure, place);
            if lines.iter().any(|line| !line.points.is_empty()) {
                chart::draw(panel, &figure.axis, &self.title(place), &lines)?;
            }
        }
        area.present().map_err(chart::failed)
    }

    fn title(&self, place: Place) -> String {
        format!("{place}, {}, hold {HOLD} ms", self.names)
    }

    fn lines(&self, results: &Results, figure: &Figure, place: Place) -> Vec<Line> {
        let mut lines = Vec::new();
        for lock in Lock::OF_THE_THESIS {
            for (number, (label, show)) in figure.lines.iter().enumerate() {
                let at = |&contenders: &u32| {
                    let (names, call, hold_millis) = (self.names, Call::GetLock, HOLD);
                    let point = Point { place, names, call, contenders, hold_millis, lock };
                    let value = results.points.get(&point).and_then(show)?;
                    Some((f64::from(contenders).log2(), value))
                };
                let points = CONTENDERS.iter().filter_map(at).collect();
                let label = format!("{lock} {label}").trim().to_owned();
                lines.push(Line { label, lock, is_first: number == 0, points });
            }
        }
        lines
    }
}
