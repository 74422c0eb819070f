//! Draws lines and heat maps.

use std::{collections::BTreeMap, fmt::Write};

use super::{
    Area, COLOURS,
    text::{escaped, number},
};
use crate::{
    dashboards::{Draw, Panel},
    prometheus::{Range, Series},
};

/// The number of series that a panel has room for.
const MOST: usize = 8;

pub(super) fn lines(svg: &mut String, panel: &Panel, area: Area, range: Range, named: &[(String, Series)]) {
    let named = &named[..named.len().min(MOST)];
    let legend_lines = named.len().div_ceil(legend_columns(area)) as f64;
    let plot = Area {
        x: area.x + 44.0,
        y: area.y + 8.0,
        width: area.width - 48.0,
        height: area.height - 22.0 - 13.0 * legend_lines,
    };
    let stacked = stack(panel.draw == Draw::Stack, named);
    let top = stacked.iter().flatten().map(|(_, value)| *value).filter(|v| v.is_finite()).fold(0.0, f64::max);
    let top = if top > 0.0 { top * 1.05 } else { 1.0 };
    axes(svg, panel, plot, range, top);
    // The highest line first: the next line paints over the area below it.
    for (index, points) in stacked.iter().enumerate().rev() {
        let colour = COLOURS[index % COLOURS.len()];
        for run in runs(points, range.step) {
            let line = path(run, plot, range, top);
            if panel.draw == Draw::Stack {
                let area = closed(&line, run, plot, range);
                let _ = writeln!(svg, "<path d=\"{area}\" fill=\"#fff\"/>");
                let _ = writeln!(svg, "<path d=\"{area}\" fill=\"{colour}\" fill-opacity=\"0.35\"/>");
            }
            let _ =
                writeln!(svg, "<path d=\"{line}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.4\"/>");
        }
    }
    legend(svg, area, plot, named);
}

/// Returns the points of all series, each series on top of those before it if they are to be stacked.
fn stack(is_stacked: bool, named: &[(String, Series)]) -> Vec<Vec<(f64, f64)>> {
    let mut below: BTreeMap<u64, f64> = BTreeMap::new();
    let mut stacked = Vec::new();
    for (_, series) in named {
        let points = series.points.iter().map(|&(time, value)| {
            let base = below.entry(time as u64).or_default();
            if is_stacked && value.is_finite() {
                *base += value;
                return (time, *base);
            }
            (time, value)
        });
        stacked.push(points.collect());
    }
    stacked
}

fn axes(svg: &mut String, panel: &Panel, plot: Area, range: Range, top: f64) {
    for part in [0.0, 0.5, 1.0] {
        let y = plot.y + plot.height * (1.0 - part);
        let _ = writeln!(
            svg,
            "<path d=\"M{} {y:.0}h{:.0}\" stroke=\"#e4e4e4\"/><text x=\"{}\" y=\"{:.0}\" text-anchor=\"end\" \
             fill=\"#777\" font-size=\"9\">{}</text>",
            plot.x,
            plot.width,
            plot.x - 4.0,
            y + 3.0,
            number(top * part, panel.unit)
        );
    }
    times(svg, plot, range);
}

fn times(svg: &mut String, plot: Area, range: Range) {
    let (y, end) = (plot.y + plot.height + 12.0, plot.x + plot.width);
    let began = range.end - range.start;
    let _ = writeln!(
        svg,
        "<g fill=\"#777\" font-size=\"9\"><text x=\"{}\" y=\"{y:.0}\">-{began} s</text>\
         <text x=\"{end}\" y=\"{y:.0}\" text-anchor=\"end\">now</text></g>",
        plot.x
    );
}

/// Returns the parts of a line, which is broken where there is no number.
fn runs(points: &[(f64, f64)], step: f64) -> impl Iterator<Item = &[(f64, f64)]> {
    let is_next =
        move |a: &(f64, f64), b: &(f64, f64)| a.1.is_finite() && b.1.is_finite() && b.0 - a.0 < 1.5 * step;
    points.chunk_by(is_next).filter(|run| run[0].1.is_finite())
}

fn path(run: &[(f64, f64)], plot: Area, range: Range, top: f64) -> String {
    let mut path = String::new();
    for &(time, value) in run {
        let y = plot.y + plot.height * (1.0 - value / top);
        let _ =
            write!(path, "{}{:.0} {y:.1}", if path.is_empty() { 'M' } else { 'L' }, x_of(time, plot, range));
    }
    path
}

/// Returns the path around the area below a line.
fn closed(line: &str, run: &[(f64, f64)], plot: Area, range: Range) -> String {
    let (first, last, base) = (run[0].0, run[run.len() - 1].0, plot.y + plot.height);
    format!("{line}L{:.0} {base:.1}L{:.0} {base:.1}Z", x_of(last, plot, range), x_of(first, plot, range))
}

fn x_of(time: f64, plot: Area, range: Range) -> f64 {
    plot.x + plot.width * (time - range.start) / (range.end - range.start)
}

fn legend_columns(area: Area) -> usize {
    if area.width > 500.0 { 3 } else { 2 }
}

fn legend(svg: &mut String, area: Area, plot: Area, named: &[(String, Series)]) {
    let columns = legend_columns(area);
    let width = area.width / columns as f64;
    for (index, (name, _)) in named.iter().enumerate().filter(|(_, (name, _))| !name.is_empty()) {
        let x = area.x + width * (index % columns) as f64;
        let y = plot.y + plot.height + 25.0 + 13.0 * (index / columns) as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.0}\" y=\"{:.0}\" width=\"9\" height=\"3\" fill=\"{}\"/><text x=\"{:.0}\" y=\"{y:.0}\" \
             font-size=\"10\">{}</text>",
            y - 5.0,
            COLOURS[index % COLOURS.len()],
            x + 13.0,
            escaped(name)
        );
    }
}

/// The shades of a cell, from few to many.
const SHADES: [&str; 6] = ["#fdd9b5", "#fdb97d", "#fd9a4e", "#ee7524", "#d04c04", "#8c2d04"];

pub(super) fn heatmap(svg: &mut String, area: Area, range: Range, named: &[(String, Series)]) {
    let plot =
        Area { x: area.x + 44.0, y: area.y + 8.0, width: area.width - 48.0, height: area.height - 24.0 };
    let rows = rows(named);
    let used: Vec<_> = rows.iter().filter(|(_, cells)| cells.values().any(|count| *count > 1e-9)).collect();
    let most = rows.iter().flat_map(|(_, cells)| cells.values()).copied().fold(0.0, f64::max);
    let height = plot.height / used.len().max(1) as f64;
    let width = plot.width * range.step / (range.end - range.start);
    let mut shades: BTreeMap<usize, String> = BTreeMap::new();
    for (index, (bound, cells)) in used.iter().enumerate() {
        let y = plot.y + plot.height - height * (index + 1) as f64;
        // Only every second bound is written where there is little room.
        if height > 9.0 || index % 2 == 0 {
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{:.0}\" text-anchor=\"end\" fill=\"#777\" font-size=\"9\">{}</text>",
                plot.x - 4.0,
                y + 3.0,
                number(*bound, "s")
            );
        }
        for (time, count) in cells.iter().filter(|(_, count)| **count > 1e-9) {
            let shade = ((count / most).sqrt() * SHADES.len() as f64).ceil() as usize;
            let x = plot.x + plot.width * (*time as f64 - range.start) / (range.end - range.start);
            let cells = shades.entry(shade.clamp(1, SHADES.len()) - 1).or_default();
            let _ = write!(cells, "M{x:.0} {y:.1}h{width:.1}v{height:.1}h-{width:.1}z");
        }
    }
    for (shade, path) in shades {
        let _ = writeln!(svg, "<path d=\"{path}\" fill=\"{}\"/>", SHADES[shade]);
    }
    times(svg, plot, range);
}

/// Returns, by the bound of each bucket, from small to large, how many values fell into the bucket at which time. Prometheus reports
/// each bucket as a sum that includes all smaller ones.
fn rows(named: &[(String, Series)]) -> Vec<(f64, BTreeMap<u64, f64>)> {
    let bound =
        |series: &Series| series.labels.get("le").and_then(|le| le.parse().ok()).unwrap_or(f64::INFINITY);
    let mut buckets: Vec<_> = named.iter().map(|(_, series)| (bound(series), series)).collect();
    buckets.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let mut below: BTreeMap<u64, f64> = BTreeMap::new();
    let mut rows = Vec::new();
    for (bound, series) in buckets {
        let mut cells = BTreeMap::new();
        for &(time, value) in series.points.iter().filter(|(_, value)| value.is_finite()) {
            let before = below.insert(time as u64, value).unwrap_or(0.0);
            cells.insert(time as u64, value - before);
        }
        rows.push((bound, cells));
    }
    rows
}
