//! The table of the documentation says what the catalogue says.

use std::fmt::Write as _;
use std::path::Path;

use ylock_metrics::catalogue::{ALL, Kind, Metric, VALUES, series_of_a_group};

const INTRODUCTION: &str = "\
Times are in seconds. Histograms have 22 buckets from 0.1 ms to a minute, that of holds 26, up to an hour; programs that install a recorder of
their own take them from `prometheus::buckets`. In the notation of OpenTelemetry the same names have dots, and no `_total` or `_seconds`.
Every series of a group is there, at zero, from the group's first acquisition on. A series that has come stays for as long as the process runs.
";

/// The groups that are told apart.
const GROUPS: usize = 200;

/// Returns what is said of the number of series.
fn numbers() -> String {
    let sum = |found: &dyn Fn(&Metric) -> bool| -> usize {
        ALL.iter().filter(|metric| found(metric)).map(Metric::series).sum()
    };
    let has = |metric: &Metric, label: &str| metric.labels.contains(&label);
    let (group, operation) = (series_of_a_group(), sum(&|metric| has(metric, "operation")));
    let many = ["group", "operation", "client"];
    let (all, engine) = (group * (GROUPS + 1), sum(&|metric| !many.iter().any(|label| has(metric, label))));
    format!(
        "
**How many series.** A group has {group} series on each engine that a process uses, most of them buckets. At most {GROUPS} groups are told
apart, in the order in which they come, unless `MetricsLayer::with_groups` says otherwise; all others together are one more,
`group=\"other\"`, which is there from the beginning. So in one process an engine has at most {all} series of groups, {engine} without a group,
{operation} for each operation that is sent to the store, and one for each name and address that a client has had.

"
    )
}

fn table() -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push_str(&numbers());
    text.push_str("| metric | kind | labels | what it says |\n|---|---|---|---|\n");
    for metric in ALL {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        let labels = metric.labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        let values =
            metric.outcomes().iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
        let values = if values.is_empty() { values } else { format!(" Outcomes: {values}.") };
        writeln!(text, "| `{}` | {kind} | {labels} | {}{values} |", metric.name, metric.help).unwrap();
    }
    text.push_str("\n| label | values |\n|---|---|\n");
    for (label, values) in VALUES {
        let values = values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
        writeln!(text, "| `{label}` | {values} |").unwrap();
    }
    text
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
fn the_guide_says_how_many_series_a_group_has() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide.md");
    let said = format!("A group has {} series", series_of_a_group());
    assert!(std::fs::read_to_string(guide).unwrap().contains(&said), "{said}");
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
