//! The dashboards. They are code so that names of metrics and labels come from the catalogue and cannot drift.

mod engine;
mod group;
mod json;
mod overview;
mod panel;

use serde_json::Value;

pub use self::panel::{Draw, Panel, Target};

/// The uid of the dashboard that answers: is locking healthy, what waits longest, who is lost?
pub const OVERVIEW: &str = "ylock-overview";
/// The uid of the dashboard that shows one group in depth.
pub const GROUP: &str = "ylock-group";
/// The uid of the dashboard of the stores.
pub const ENGINE: &str = "ylock-engine";

/// One dashboard.
#[derive(Debug)]
#[non_exhaustive]
pub struct Dashboard {
    /// Its address: `/d/<uid>`, and the name of its file.
    pub uid: &'static str,
    /// Its name.
    pub title: &'static str,
    /// What it answers.
    pub description: &'static str,
    /// Its panels, under the titles of their rows.
    pub rows: Vec<(&'static str, Vec<Panel>)>,
}

/// Where something stands in the grid: a panel, or the title of a row.
#[derive(Debug)]
#[non_exhaustive]
pub struct Place<'a> {
    /// Columns from the left, of 24.
    pub x: u32,
    /// Lines from the top.
    pub y: u32,
    /// Columns.
    pub width: u32,
    /// Lines.
    pub height: u32,
    /// That of the panel or of the row.
    pub title: &'a str,
    /// None: the title of a row.
    pub panel: Option<&'a Panel>,
}

/// All of them.
pub fn all() -> Vec<Dashboard> {
    vec![overview::dashboard(), group::dashboard(), engine::dashboard()]
}

impl Dashboard {
    /// As Grafana imports it.
    pub fn json(&self) -> Value {
        let all = all();
        let names: Vec<_> = all.iter().map(|dashboard| (dashboard.uid, dashboard.title)).collect();
        json::dashboard(self, &names)
    }

    /// All panels.
    pub fn panels(&self) -> impl Iterator<Item = &Panel> {
        self.rows.iter().flat_map(|(_, panels)| panels)
    }

    /// From left to right, and on when a line is full.
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
