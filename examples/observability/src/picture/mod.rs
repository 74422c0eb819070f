//! Draws pictures of the dashboards for readers without a Grafana: from the same queries, at the same places.

mod plot;
mod text;

use std::{
    fmt::Write,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::Result;

use self::text::{escaped, number};
use crate::{
    dashboards::{Dashboard, Draw, Panel, Place},
    prometheus::{Prometheus, Range, Series},
    query,
};

const CELL: (u32, u32) = (50, 26);
const HEAD: u32 = 44;
const COLOURS: [&str; 8] =
    ["#3274d9", "#e0752d", "#37872d", "#c4162a", "#8f3bb8", "#b7950b", "#0f8a8a", "#7a7a7a"];

/// A rectangle, in pixels.
#[derive(Clone, Copy, Debug)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// The Prometheus to ask, and the chosen group.
#[derive(Debug)]
struct Asked {
    prometheus: Prometheus,
    group: String,
}

/// Returns an SVG of one dashboard, as it looked over the last `time` with this group chosen.
///
/// # Errors
/// If Prometheus does not answer.
pub fn draw(dashboard: &Dashboard, group: &str, prometheus: Prometheus, time: Duration) -> Result<String> {
    let asked = Asked { prometheus, group: group.to_owned() };
    let places = dashboard.placed();
    let height = HEAD + CELL.1 * places.iter().map(|place| place.y + place.height).max().unwrap_or(0);
    let width = 24 * CELL.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\" \
         fill=\"#222\"><rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\
         <text x=\"8\" y=\"20\" font-size=\"17\" font-weight=\"bold\">{}</text>\
         <text x=\"8\" y=\"37\" fill=\"#777\">Not Grafana: drawn by our own tool from the queries of the dashboard; the last {}, group {}.</text>\n",
        escaped(dashboard.title),
        humantime::format_duration(time),
        if group == query::ALL { "All" } else { group }
    );
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64().floor();
    let range = Range { start: now - time.as_secs_f64(), end: now, step: (time.as_secs_f64() / 48.0).ceil() };
    for place in &places {
        draw_place(&mut svg, place, &asked, range)?;
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn draw_place(svg: &mut String, place: &Place<'_>, asked: &Asked, range: Range) -> Result<()> {
    let area = Area {
        x: f64::from(place.x * CELL.0),
        y: f64::from(HEAD + place.y * CELL.1),
        width: f64::from(place.width * CELL.0),
        height: f64::from(place.height * CELL.1),
    };
    let (left, line) = (area.x + 8.0, area.y + 17.0);
    let title = escaped(place.title);
    let Some(panel) = place.panel else {
        let _ = writeln!(
            svg,
            "<text x=\"{left}\" y=\"{line}\" font-size=\"14\" font-weight=\"bold\">{title}</text>"
        );
        return Ok(());
    };
    let _ = writeln!(
        svg,
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"3\" fill=\"none\" stroke=\"#ccc\"/>\
         <text x=\"{left}\" y=\"{line}\" font-weight=\"bold\">{title}</text>",
        area.x + 2.0,
        area.y + 2.0,
        area.width - 4.0,
        area.height - 4.0
    );
    let inner = Area { x: left, y: area.y + 24.0, width: area.width - 16.0, height: area.height - 32.0 };
    draw_panel(svg, panel, inner, asked, range)
}

fn draw_panel(svg: &mut String, panel: &Panel, area: Area, asked: &Asked, range: Range) -> Result<()> {
    let mut named = Vec::new();
    for target in &panel.targets {
        let whole = format!("{}s", range.end - range.start);
        let chosen = target.expression.replace("\"$group\"", &format!("\"{}\"", asked.group));
        let sent = query::as_sent(&chosen, "20s", &whole);
        let (is_now, prometheus) = (panel.draw == Draw::Table, asked.prometheus);
        let series = if is_now { prometheus.now(&sent)? } else { prometheus.range(&sent, range)? };
        named.extend(series.into_iter().map(|one| (text::legend(target.legend, &one), one)));
    }
    // There is not room for all series: the largest come first.
    named.sort_by(|(_, a), (_, b)| largest(b).total_cmp(&largest(a)));
    match panel.draw {
        Draw::Stat => stat(svg, panel, area, &named),
        Draw::Table => table(svg, panel, area, &named),
        Draw::Heatmap => plot::heatmap(svg, area, range, &named),
        Draw::Lines | Draw::Stack => plot::lines(svg, panel, area, range, &named),
    }
    Ok(())
}

fn largest(series: &Series) -> f64 {
    series.points.iter().map(|(_, value)| *value).filter(|value| value.is_finite()).fold(0.0, f64::max)
}

fn last(series: &Series) -> Option<f64> {
    series.points.iter().rev().map(|(_, value)| *value).find(|value| value.is_finite())
}

fn stat(svg: &mut String, panel: &Panel, area: Area, named: &[(String, Series)]) {
    let value = named.iter().find_map(|(_, series)| last(series));
    let shown = value.map_or("no data".to_owned(), |value| number(value, panel.unit));
    let passed = panel.colours.iter().rev().find(|(from, _)| value.is_some_and(|value| value >= *from));
    let colour = match passed.map(|(_, colour)| *colour) {
        Some("red") => "#c4162a",
        Some(_) => "#e0752d",
        None => "#37872d",
    };
    let (x, y) = (area.x + area.width / 2.0, area.y + area.height / 2.0 + 10.0);
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{y}\" font-size=\"30\" text-anchor=\"middle\" fill=\"{colour}\">{shown}</text>"
    );
}

fn table(svg: &mut String, panel: &Panel, area: Area, named: &[(String, Series)]) {
    let mut y = area.y + 12.0;
    for (_, series) in named.iter().take(9) {
        let labels: Vec<_> = series.labels.values().map(String::as_str).collect();
        let value = last(series).map_or(String::new(), |value| number(value, panel.unit));
        let right = area.x + area.width;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{y}\">{}</text><text x=\"{right}\" y=\"{y}\" text-anchor=\"end\">{value}</text>",
            area.x,
            escaped(&labels.join("  "))
        );
        y += 18.0;
    }
}
