//! Plots: one file each, with a row of panels for each figure and a column for each place.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;

use crate::matrix::{CONTENDERS, Call, Lock, Names, Place, Point};
use crate::record::Record;
use crate::results::Results;
use crate::tables::HOLD;

const WIDTH: u32 = 520;
const HEIGHT: u32 = 360;
const OLD: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
const QUEUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
const FONT: &str = "sans-serif";

/// What a line shows; nothing where there is nothing.
type Show = fn(&Record) -> Option<f64>;

/// One line for each lock.
struct Figure {
    label: &'static str,
    lines: &'static [(&'static str, Show)],
    /// From 0 to 1 instead of a logarithmic axis.
    is_part: bool,
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
            label: "first grant after a simultaneous start, ms",
            lines: &[
                ("p50", |record| record.first_grant_millis.map(|first| first.p50)),
                ("max", |record| record.first_grant_millis.map(|first| first.max)),
            ],
            is_part: false,
        }],
    },
    Plot {
        file: "wait.svg",
        names: Names::Hot,
        places: &TWO,
        figures: &[Figure {
            label: "wait, ms",
            lines: &[
                ("p50", |record| record.wait_millis.map(|wait| wait.p50)),
                ("p99", |record| record.wait_millis.map(|wait| wait.p99)),
            ],
            is_part: false,
        }],
    },
    Plot {
        file: "gap.svg",
        names: Names::Hot,
        places: &TWO,
        figures: &[Figure {
            label: "gap between holders, ms",
            lines: &[
                ("p50", |record| record.gap_millis.map(|gap| gap.p50)),
                ("p99", |record| record.gap_millis.map(|gap| gap.p99)),
            ],
            is_part: false,
        }],
    },
    Plot {
        file: "requests.svg",
        names: Names::Hot,
        places: &TWO,
        figures: &[Figure {
            label: "requests per grant",
            lines: &[("", Record::requests_per_grant)],
            is_part: false,
        }],
    },
    Plot {
        file: "fairness.svg",
        names: Names::Hot,
        places: &TWO,
        figures: &[
            Figure { label: "Jain index", lines: &[("", |record| record.jain)], is_part: true },
            Figure {
                label: "longest run of one contender, grants",
                lines: &[("", |record| record.longest_run.map(|run| run as f64))],
                is_part: false,
            },
        ],
    },
];

/// Draws all plots into a folder.
pub(crate) fn draw(results: &Results, folder: &Path) -> Result<()> {
    PLOTS.iter().try_for_each(|plot| plot.draw(results, folder))
}

/// A line of a panel.
struct Line {
    label: String,
    lock: Lock,
    is_first: bool,
    points: Vec<(f64, f64)>,
}

impl Plot {
    fn draw(&self, results: &Results, folder: &Path) -> Result<()> {
        let is_there = |place: &&Place| results.points.keys().any(|point| point.place == **place);
        let places: Vec<Place> = self.places.iter().filter(is_there).copied().collect();
        if places.is_empty() {
            return Ok(());
        }
        let (rows, columns) = (self.figures.len(), places.len());
        let size = (WIDTH * u32::try_from(columns)?, HEIGHT * u32::try_from(rows)?);
        let path = folder.join(self.file);
        let area = SVGBackend::new(&path, size).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        let panels = area.split_evenly((rows, columns));
        for (number, panel) in panels.iter().enumerate() {
            let (figure, place) = (&self.figures[number / columns], places[number % columns]);
            let lines = self.lines(results, figure, place);
            if lines.iter().any(|line| !line.points.is_empty()) {
                panel_of(panel, figure, &self.title(place), &lines)?;
            }
        }
        area.present().map_err(failed)
    }

    fn title(&self, place: Place) -> String {
        format!("{place}, {}, hold {HOLD} ms", self.names)
    }

    fn lines(&self, results: &Results, figure: &Figure, place: Place) -> Vec<Line> {
        let mut lines = Vec::new();
        for lock in [Lock::Old, Lock::Queue] {
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

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn panel_of(area: &Area<'_>, figure: &Figure, title: &str, lines: &[Line]) -> Result<()> {
    let values = lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    let (least, most) =
        values.fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)));
    if figure.is_part {
        return chart(area, figure, title, lines, 0.0..1.05);
    }
    // Whole decades, so that every line of the grid has a label, and one more for the legend.
    let decade = |value: f64, round: fn(f64) -> f64| 10f64.powf(round(value.max(1e-3).log10()));
    let (least, most) = (decade(least, f64::floor), decade(most, f64::ceil) * 10.0);
    chart(area, figure, title, lines, (least..most).log_scale())
}

/// Contenders on an axis of powers of two.
fn chart<Y>(
    area: &Area<'_>,
    figure: &Figure,
    title: &str,
    lines: &[Line],
    y: impl AsRangedCoord<Value = f64, CoordDescType = Y>,
) -> Result<()>
where
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let last = f64::from(CONTENDERS[CONTENDERS.len() - 1]).log2();
    let mut chart = ChartBuilder::on(area)
        .caption(title, (FONT, 17))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..last, y)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .x_labels(CONTENDERS.len())
        .x_label_formatter(&|power| format!("{:.0}", power.exp2()))
        .y_label_formatter(&|value| format!("{value}"))
        .x_desc("contenders")
        .y_desc(figure.label)
        .label_style((FONT, 13))
        .axis_desc_style((FONT, 14))
        .light_line_style(WHITE)
        .draw()
        .map_err(failed)?;
    for line in lines {
        let color = if line.lock == Lock::Old { OLD } else { QUEUE };
        let style = color.stroke_width(2);
        let points = line.points.iter().copied();
        let drawn = if line.is_first {
            chart.draw_series(LineSeries::new(points.clone(), style)).map_err(failed)?
        } else {
            chart.draw_series(DashedLineSeries::new(points.clone(), 5, 4, style)).map_err(failed)?
        };
        let is_first = line.is_first;
        drawn.label(line.label.clone()).legend(move |(x, y)| {
            let end = if is_first { x + 22 } else { x + 8 };
            PathElement::new([(x, y), (end, y)], style)
        });
        chart.draw_series(points.map(|point| Circle::new(point, 3, color.filled()))).map_err(failed)?;
    }
    chart
        .configure_series_labels()
        .position(if figure.is_part {
            SeriesLabelPosition::LowerLeft
        } else {
            SeriesLabelPosition::UpperLeft
        })
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .label_font((FONT, 13))
        .draw()
        .map_err(failed)
}

fn failed<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> anyhow::Error {
    anyhow!("a plot cannot be drawn: {error}")
}
