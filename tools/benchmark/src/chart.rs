//! One chart: contenders from left to right, one color for each lock.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::matrix::{CONTENDERS, Lock};

const OLD: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
const QUEUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
const FONT: &str = "sans-serif";

/// A line of a chart.
pub(crate) struct Line {
    pub(crate) label: String,
    pub(crate) lock: Lock,
    pub(crate) is_first: bool,
    pub(crate) points: Vec<(f64, f64)>,
}

/// The axis at the side.
pub(crate) struct Axis {
    pub(crate) label: &'static str,
    /// True if it goes from 0 to 1 instead of being logarithmic.
    pub(crate) is_part: bool,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws one chart.
pub(crate) fn draw(area: &Area<'_>, axis: &Axis, title: &str, lines: &[Line]) -> Result<()> {
    let values = lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    let (least, most) =
        values.fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)));
    if axis.is_part {
        return chart(area, axis, title, lines, 0.0..1.05);
    }
    // Whole decades, so that every line of the grid has a label, and one more for the legend.
    let decade = |value: f64, round: fn(f64) -> f64| 10f64.powf(round(value.max(1e-3).log10()));
    let (least, most) = (decade(least, f64::floor), decade(most, f64::ceil) * 10.0);
    chart(area, axis, title, lines, (least..most).log_scale())
}

/// The area that is drawn on: contenders on an axis of powers of two.
type Chart<'a, 'b, Y> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, Y>>;

fn chart<Y>(
    area: &Area<'_>,
    axis: &Axis,
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
    mesh(&mut chart, axis)?;
    lines.iter().try_for_each(|line| add(&mut chart, line))?;
    legend(&mut chart, axis)
}

fn mesh<Y>(chart: &mut Chart<'_, '_, Y>, axis: &Axis) -> Result<()>
where
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .x_labels(CONTENDERS.len())
        .x_label_formatter(&|power| format!("{:.0}", power.exp2()))
        .y_label_formatter(&|value| format!("{}", (value * 1e6).round() / 1e6))
        .x_desc("contenders")
        .y_desc(axis.label)
        .label_style((FONT, 13))
        .axis_desc_style((FONT, 14))
        .light_line_style(WHITE)
        .draw()
        .map_err(failed)
}

/// Adds a line: the first line of a lock is drawn through, the others are dashed.
fn add<Y: Ranged<ValueType = f64>>(chart: &mut Chart<'_, '_, Y>, line: &Line) -> Result<()> {
    let color = if line.lock == Lock::Old { OLD } else { QUEUE };
    let (style, is_first) = (color.stroke_width(2), line.is_first);
    let points = line.points.iter().copied();
    let drawn = if is_first {
        chart.draw_series(LineSeries::new(points.clone(), style)).map_err(failed)?
    } else {
        chart.draw_series(DashedLineSeries::new(points.clone(), 5, 4, style)).map_err(failed)?
    };
    drawn.label(line.label.clone()).legend(move |(x, y)| {
        let end = if is_first { x + 22 } else { x + 8 };
        PathElement::new([(x, y), (end, y)], style)
    });
    chart.draw_series(points.map(|point| Circle::new(point, 3, color.filled()))).map_err(failed)?;
    Ok(())
}

fn legend<'a, 'b: 'a, Y: Ranged<ValueType = f64>>(chart: &mut Chart<'a, 'b, Y>, axis: &Axis) -> Result<()> {
    let position = if axis.is_part { SeriesLabelPosition::LowerLeft } else { SeriesLabelPosition::UpperLeft };
    chart
        .configure_series_labels()
        .position(position)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .label_font((FONT, 13))
        .draw()
        .map_err(failed)
}

/// Converts an error of a drawing area: errors of one that is borrowed cannot leave it.
pub(crate) fn failed<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> anyhow::Error {
    anyhow!("a plot cannot be drawn: {error}")
}
