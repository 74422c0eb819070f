//! The table of the documentation says what the catalogue says.

use std::fmt::Write as _;
use std::path::Path;

use ylock_metrics::catalogue::{
    ACQUISITION_OUTCOMES, ACQUISITIONS, ALL, Kind, Metric, RENEWAL_OUTCOMES, RENEWALS, REQUEST_OUTCOMES,
    STORE_REQUESTS, VALUES,
};

const INTRODUCTION: &str = "\
Times are in seconds. Histograms have 22 buckets from 0.1 ms to a minute, that of holds 26, up to an hour; programs that install a recorder of
their own take them from `prometheus::buckets`. In the notation of OpenTelemetry the same names have dots, and no `_total` or `_seconds`.
Every series of a group is there, at zero, from the group's first acquisition on.

";

fn table() -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push_str("| metric | kind | labels | what it says |\n|---|---|---|---|\n");
    for metric in ALL {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        let labels = metric.labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        let values = outcomes(metric)
            .map(|values| {
                format!(
                    " Outcomes: {}.",
                    values.map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ")
                )
            })
            .unwrap_or_default();
        writeln!(text, "| `{}` | {kind} | {labels} | {}{values} |", metric.name, metric.help).unwrap();
    }
    text.push_str("\n| label | values |\n|---|---|\n");
    for (label, values) in VALUES {
        let values = values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
        writeln!(text, "| `{label}` | {values} |").unwrap();
    }
    text
}

fn outcomes(metric: &Metric) -> Option<std::slice::Iter<'static, &'static str>> {
    let known = [
        (ACQUISITIONS.name, ACQUISITION_OUTCOMES),
        (RENEWALS.name, RENEWAL_OUTCOMES),
        (STORE_REQUESTS.name, REQUEST_OUTCOMES),
    ];
    known.iter().find(|(name, _)| *name == metric.name).map(|(_, values)| values.iter())
}

/// `YLOCK_WRITE_TABLE=1` writes it anew.
#[test]
fn the_table_of_the_documentation_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("metrics.md");
    if std::env::var_os("YLOCK_WRITE_TABLE").is_some() {
        std::fs::write(&path, table()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), table(), "run it with YLOCK_WRITE_TABLE=1");
}

#[test]
fn names_follow_the_rules_of_prometheus() {
    for metric in ALL {
        let is_counter = metric.kind == Kind::Counter;
        assert!(metric.name.starts_with("ylock_"), "{}", metric.name);
        assert_eq!(metric.name.ends_with("_total"), is_counter, "{}", metric.name);
        assert_eq!(
            matches!(metric.kind, Kind::Histogram(_)),
            metric.name.ends_with("_seconds") && !metric.name.contains("longest")
        );
        assert!(metric.help.ends_with('.') || metric.help.ends_with("one"), "{}", metric.name);
        assert!(!metric.labels.contains(&"name") && !metric.labels.contains(&"owner"), "{}", metric.name);
        if let Kind::Histogram(bounds) = metric.kind {
            assert!(bounds.is_sorted() && bounds[0] > 0.0);
        }
    }
}
