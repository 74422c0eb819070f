//! The results, as lines of JSON: so a run that was stopped goes on, and everything can be drawn again.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::figures::Quantiles;
use crate::matrix::{Place, Point};
use crate::record::Record;

const FILE: &str = "points.jsonl";

/// One line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Line {
    /// The machine on which the real points were measured.
    Machine(BTreeMap<String, String>),
    /// The time that one request takes at this place when nothing else happens.
    RoundTrip(Place, Quantiles),
    Point(Box<Record>),
}

/// All that is known.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) machine: BTreeMap<String, String>,
    pub(crate) round_trips: BTreeMap<Place, Quantiles>,
    pub(crate) points: BTreeMap<Point, Record>,
}

impl Results {
    /// Reads what a folder has; nothing if it is not there. A later line about the same machine, place or point replaces an earlier
    /// one.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            text => text.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let mut results = Self::default();
        for (number, line) in text.lines().enumerate() {
            let line = serde_json::from_str(line).with_context(|| {
                format!("line {} of {} is not understood; --again begins anew", number + 1, path.display())
            })?;
            results.add(line);
        }
        Ok(results)
    }

    pub(crate) fn add(&mut self, line: Line) {
        match line {
            Line::Machine(machine) => self.machine = machine,
            Line::RoundTrip(place, times) => drop(self.round_trips.insert(place, times)),
            Line::Point(record) => drop(self.points.insert(record.point, *record)),
        }
    }
}

/// The file to which lines are added.
#[derive(Debug)]
pub(crate) struct Writer(File);

impl Writer {
    /// Goes on with the folder's file, or with `again` begins a new one.
    pub(crate) fn open(folder: &Path, again: bool) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let path = folder.join(FILE);
        let mut options = OpenOptions::new();
        options.create(true);
        if again {
            options.write(true).truncate(true)
        } else {
            options.append(true)
        };
        options.open(&path).map(Self).with_context(|| format!("cannot write {}", path.display()))
    }

    pub(crate) fn add(&mut self, line: &Line) -> Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        Ok(self.0.write_all(text.as_bytes())?)
    }
}
