//! The dashboards. They are code so that names of metrics and labels come from the catalogue and cannot drift.

mod engine;
mod group;
mod json;
mod overview;
mod panel;

use serde_json::Value;

pub use self::panel::{Draw, Panel, Target};

/// The uid of the dashboard that answers: is locking healthy, what waits longest, who lost a lock?
pub const OVERVIEW: &str = "ylock-overview";
/// The uid of the dashboard that shows one group in depth.
pub const GROUP: &str = "ylock-group";
/// The uid of the dashboard of the stores.
pub const ENGINE: &str = "ylock-engine";

/// One dashboard.
#[derive(Debug)]
#[non_exhaustive]
pub struct Dashboard {
    /// The address of the dashboard, `/d/<uid>`, and the name of its file.
    pub uid: &'static str,
    /// The name of the dashboard.
    pub title: &'static str,
    /// The questions that the dashboard answers.
    pub description: &'static str,
    /// The panels of the dashboard, under the titles of their rows.
    pub rows: Vec<(&'static str, Vec<Panel>)>,
}

/// The place of a panel, or of the title of a row, in the grid.
#[derive(Debug)]
#[non_exhaustive]
pub struct Place<'a> {
    /// The number of columns from the left, of 24.
    pub x: u32,
    /// The number of lines from the top.
    pub y: u32,
    /// The width in columns.
    pub width: u32,
    /// The height in lines.
    pub height: u32,
    /// The title of the panel or of the row.
    pub title: &'a str,
    /// The panel, or `None` for the title of a row.
    pub panel: Option<&'a Panel>,
}

/// Returns all dashboards.
pub fn all() -> Vec<Dashboard> {
    vec![overview::dashboard(), group::dashboard(), engine::dashboard()]
}

impl Dashboard {
    /// Returns the JSON that Grafana imports.
    pub fn json(&self) -> Value {
        let all = all();
        let names: Vec<_> = all.iter().map(|dashboard| (dashboard.uid, dashboard.title)).collect();
        json::dashboard(self, &names)
    }

    /// Returns all panels.
    pub fn panels(&self) -> impl Iterator<Item = &Panel> {
        self.rows.iter().flat_map(|(_, panels)| panels)
    }

    /// Returns the places of all rows and panels: from left to right, and below when a line is full.
    pub fn placed(&self) -> Vec<Place<'_>> {
        let (mut places, mut y) = (Vec::new(), 0);
        for (title, panels) in &self.rows {
            places.push(Place { x: 0, y, width: 24, height: 1, title, panel: None });
            y += 1;
            let (mut x, mut tallest) = (0, 0);
            for panel in panels {
                if x + panel.width > 24 {
                    (x, y, tallest) = (0, y + tallest, 0);
                }
                let (width, height) = (panel.width, panel.height());
                places.push(Place { x, y, width, height, title: panel.title, panel: Some(panel) });
                x += panel.width;
                tallest = tallest.max(height);
            }
            y += tallest;
        }
        places
    }
}
