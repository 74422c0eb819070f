//! Sends every expression to the real Prometheus, and checks the answers.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use ylock_metrics::catalogue::{self, Kind};
use ylock_observability::{
    dashboards,
    prometheus::{Prometheus, Range, Series},
    query, rules,
};

/// An expression to ask, and the place that it comes from.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) by: String,
    pub(crate) expression: String,
}

/// Returns every expression that must have an answer: those of panels and annotations, as Grafana sends them when one engine or all are
/// chosen and "All" of every other variable, and those of recording rules.
pub(crate) fn questions(engine: &str) -> Vec<Question> {
    let sent = |expression: &str| {
        let chosen = expression.replace("\"$engine\"", &format!("\"{engine}\""));
        query::as_sent(&chosen, "10s", "1m")
    };
    let mut all = Vec::new();
    for dashboard in dashboards::all() {
        for panel in dashboard.panels() {
            all.extend(panel.targets.iter().map(|target| Question {
                by: format!("{}: {}", dashboard.uid, panel.title),
                expression: sent(&target.expression),
            }));
        }
        let json = dashboard.json();
        for note in json["annotations"]["list"].as_array().unwrap() {
            let expression = sent(note["expr"].as_str().unwrap());
            all.push(Question { by: format!("{}: annotation", dashboard.uid), expression });
        }
    }
    for rule in rules::recordings() {
        all.push(Question { by: format!("{}, asked", rule.name), expression: rule.expression });
        all.push(Question { by: format!("{}, recorded", rule.name), expression: rule.name.to_owned() });
    }
    all
}

/// Returns the questions that had no number at any time since then. Fails for an expression that Prometheus does not understand.
pub(crate) fn unanswered(
    prometheus: Prometheus,
    since: SystemTime,
    questions: Vec<Question>,
) -> Vec<Question> {
    let [start, end] =
        [since, SystemTime::now()].map(|time| time.duration_since(UNIX_EPOCH).unwrap().as_secs_f64());
    let range = Range { start, end, step: 2.0 };
    let is_open = |question: &Question| {
        let answer = prometheus.range(&question.expression, range);
        let series = answer.unwrap_or_else(|why| panic!("{}: {why}\n{}", question.by, question.expression));
        !series.iter().flat_map(|one| &one.points).any(|(_, value)| value.is_finite())
    };
    questions.into_iter().filter(is_open).collect()
}

/// Checks that every scraped series is in the catalogue: its name, its labels, their values.
pub(crate) fn check_series(prometheus: Prometheus) {
    let series = prometheus.now("{__name__=~\"ylock_.+\"}").unwrap();
    assert!(!series.is_empty());
    for one in &series {
        check(one);
    }
}

fn check(one: &Series) {
    let name = &one.labels["__name__"];
    let of = |metric: &&catalogue::Metric| match metric.kind {
        Kind::Histogram(_) => {
            ["_bucket", "_sum", "_count"].iter().any(|end| *name == format!("{}{end}", metric.name))
        }
        _ => name == metric.name,
    };
    let metric = catalogue::ALL.iter().find(of).unwrap_or_else(|| panic!("{name} is not in the catalogue"));
    for (label, value) in &one.labels {
        let is_of_scrape = ["__name__", "job", "instance", "le"].contains(&label.as_str());
        assert!(is_of_scrape || metric.labels.contains(&label.as_str()), "{name} has the label {label}");
        let closed = closed(metric, label);
        assert!(closed.is_none_or(|values| values.contains(&value.as_str())), "{name}: {label}={value:?}");
    }
    let missing = metric.labels.iter().find(|label| !one.labels.contains_key(**label));
    assert_eq!(missing, None, "{name}");
}

/// Returns the values that a label may have, if they are known.
fn closed(metric: &catalogue::Metric, label: &str) -> Option<&'static [&'static str]> {
    if label != "outcome" {
        return catalogue::VALUES.iter().find(|(name, _)| *name == label).map(|(_, values)| *values);
    }
    Some(match metric.name {
        name if name == catalogue::ACQUISITIONS.name => catalogue::ACQUISITION_OUTCOMES,
        name if name == catalogue::RENEWALS.name => catalogue::RENEWAL_OUTCOMES,
        _ => catalogue::REQUEST_OUTCOMES,
    })
}

/// Returns whether an alert of this name fires now for an engine.
pub(crate) fn fires(prometheus: Prometheus, name: &str, engine: &str) -> bool {
    let answer = prometheus.ask("/api/v1/alerts").unwrap();
    let alerts = answer["alerts"].as_array().unwrap();
    let is_it = |alert: &Value| {
        let labels = &alert["labels"];
        labels["alertname"] == name && labels["engine"] == engine && alert["state"] == "firing"
    };
    alerts.iter().any(is_it)
}
