//! The recorder that metrics go to: that of the process, or one that the program gave.

use std::fmt;
use std::sync::Arc;

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Recorder, SharedString, Unit,
};

use crate::catalogue::{ALL, Kind, Metric};

const METADATA: Metadata<'static> = Metadata::new("ylock", Level::INFO, Some("ylock"));

/// The recorder that metrics go to; see the [module](self).
#[derive(Clone, Default)]
pub(crate) struct Sink(Option<Arc<dyn Recorder + Send + Sync>>);

impl Sink {
    pub(crate) fn to(recorder: Arc<dyn Recorder + Send + Sync>) -> Self {
        Self(Some(recorder))
    }

    fn with<T>(&self, use_it: impl FnOnce(&dyn Recorder) -> T) -> T {
        match &self.0 {
            Some(recorder) => use_it(&**recorder),
            None => metrics::with_recorder(use_it),
        }
    }

    /// Describes every metric to the recorder.
    pub(crate) fn describe(&self) {
        self.with(|recorder| {
            for metric in ALL {
                let (name, help) = (KeyName::from(metric.name), SharedString::from(metric.help));
                match metric.kind {
                    Kind::Counter => recorder.describe_counter(name, Some(unit(metric)), help),
                    Kind::Gauge => recorder.describe_gauge(name, Some(unit(metric)), help),
                    Kind::Histogram(_) => recorder.describe_histogram(name, Some(unit(metric)), help),
                }
            }
        });
    }

    pub(crate) fn counter(&self, metric: &Metric, labels: &[(&'static str, &str)]) -> Counter {
        self.with(|recorder| recorder.register_counter(&key(metric, labels), &METADATA))
    }

    pub(crate) fn gauge(&self, metric: &Metric, labels: &[(&'static str, &str)]) -> Gauge {
        self.with(|recorder| recorder.register_gauge(&key(metric, labels), &METADATA))
    }

    pub(crate) fn histogram(&self, metric: &Metric, labels: &[(&'static str, &str)]) -> Histogram {
        self.with(|recorder| recorder.register_histogram(&key(metric, labels), &METADATA))
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "a given recorder" } else { "the recorder of the process" })
    }
}

fn unit(metric: &Metric) -> Unit {
    if metric.name.ends_with("_seconds") { Unit::Seconds } else { Unit::Count }
}

fn key(metric: &Metric, labels: &[(&'static str, &str)]) -> Key {
    debug_assert!(labels.iter().map(|(name, _)| *name).eq(metric.labels.iter().copied()), "{}", metric.name);
    let labels: Vec<Label> =
        labels.iter().map(|(name, value)| Label::new(*name, (*value).to_owned())).collect();
    Key::from_parts(metric.name, labels)
}
