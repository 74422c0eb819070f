//! Checks that every expression uses only metrics, labels and values that exist, and that every metric is used.

use std::collections::{BTreeMap, BTreeSet};

use promql_parser::{
    label::{MatchOp, Matcher},
    parser::{self, Expr, VectorSelector},
    util::{ExprVisitor, walk_expr},
};
use serde_json::Value;
use ylock_metrics::catalogue::{self, Kind};
use ylock_observability::{dashboards, query, rules};

/// Returns the place of each expression, and the expression as Grafana or Prometheus sees it.
fn all() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for dashboard in dashboards::all() {
        // From the JSON, because Grafana imports the JSON.
        let json = dashboard.json();
        let panels = json["panels"].as_array().unwrap().iter();
        for panel in panels.filter(|panel| panel["type"] != "row") {
            let place = format!("{}: {}", dashboard.uid, panel["title"]);
            let targets = panel["targets"].as_array().unwrap();
            all.extend(targets.iter().map(|target| (place.clone(), sent(&target["expr"]))));
        }
        let notes = json["annotations"]["list"].as_array().unwrap();
        all.extend(notes.iter().map(|note| (format!("{}: annotation", dashboard.uid), sent(&note["expr"]))));
    }
    all.extend(rules::recordings().into_iter().map(|rule| (rule.name.to_owned(), rule.expression)));
    all.extend(rules::alerts().into_iter().map(|alert| (alert.name.to_owned(), alert.expression)));
    all
}

fn sent(expression: &Value) -> String {
    query::as_sent(expression.as_str().unwrap(), "20s", "1h")
}

/// Returns the names of all series, each with its labels.
fn series() -> BTreeMap<String, BTreeSet<String>> {
    let scraped = ["job", "instance"].map(str::to_owned);
    let mut all = BTreeMap::new();
    for metric in catalogue::ALL {
        let labels: BTreeSet<_> =
            metric.labels.iter().map(|&label| label.to_owned()).chain(scraped.clone()).collect();
        if let Kind::Histogram(_) = metric.kind {
            let with_le = labels.iter().cloned().chain(["le".to_owned()]).collect();
            all.insert(format!("{}_bucket", metric.name), with_le);
            all.insert(format!("{}_sum", metric.name), labels.clone());
            all.insert(format!("{}_count", metric.name), labels);
        } else {
            all.insert(metric.name.to_owned(), labels);
        }
    }
    for rule in rules::recordings() {
        all.insert(rule.name.to_owned(), rule.labels.split(", ").map(str::to_owned).collect());
    }
    let alert = ["alertname", "alertstate", "severity", "job", "instance", "engine", "group"];
    all.insert("ALERTS".to_owned(), alert.map(str::to_owned).into());
    all
}

/// Returns the closed set of the values of a label, for the series of this name.
fn values(series: &str, label: &str) -> Option<Vec<&'static str>> {
    if label == "outcome" {
        let outcomes = [
            (catalogue::ACQUISITIONS.name, "ylock_acquisitions:", catalogue::ACQUISITION_OUTCOMES),
            (catalogue::RENEWALS.name, "ylock_renewals:", catalogue::RENEWAL_OUTCOMES),
            (catalogue::STORE_REQUESTS.name, "ylock_store_requests:", catalogue::REQUEST_OUTCOMES),
        ];
        let found = outcomes.iter().find(|(name, recorded, _)| *name == series || series.contains(recorded));
        return Some(found.unwrap_or_else(|| panic!("unknown outcomes of {series}")).2.to_vec());
    }
    if label == "alertname" {
        return Some(rules::alerts().iter().map(|alert| alert.name).collect());
    }
    catalogue::VALUES.iter().find(|(name, _)| *name == label).map(|(_, values)| values.to_vec())
}

/// A visitor that collects what is wrong in an expression.
struct Look<'a> {
    series: &'a BTreeMap<String, BTreeSet<String>>,
    used: BTreeSet<String>,
    wrong: Vec<String>,
}

impl Look<'_> {
    fn selector(&mut self, selector: &VectorSelector) {
        let name = selector.name.clone().unwrap_or_default();
        let Some(labels) = self.series.get(&name) else {
            return self.wrong.push(format!("no metric is called {name:?}"));
        };
        for matcher in &selector.matchers.matchers {
            if !labels.contains(&matcher.name) {
                self.wrong.push(format!("{name} has no label {}", matcher.name));
            } else if let Some(value) = wrong_value(&name, matcher) {
                self.wrong.push(format!("{name} has never {}={value:?}", matcher.name));
            }
        }
        self.used.insert(name);
    }

    /// Checks that each label of a grouping is a label of a series below it.
    fn grouping(&mut self, labels: &[String], inner: &Expr) {
        let mut below = Look { series: self.series, used: BTreeSet::new(), wrong: Vec::new() };
        let _ = walk_expr(&mut below, inner);
        let known: BTreeSet<_> =
            below.used.iter().filter_map(|name| self.series.get(name)).flatten().collect();
        let unknown = labels.iter().filter(|label| !known.contains(label));
        self.wrong.extend(unknown.map(|label| format!("no series has the label {label}")));
    }
}

fn wrong_value(series: &str, matcher: &Matcher) -> Option<String> {
    let values = values(series, &matcher.name)?;
    let (wanted, is_pattern): (Vec<_>, _) = match matcher.op {
        MatchOp::Equal | MatchOp::NotEqual => (vec![matcher.value.as_str()], false),
        MatchOp::Re(_) | MatchOp::NotRe(_) => (matcher.value.split('|').collect(), true),
    };
    let begins = |one: &str| {
        one.strip_suffix(".+").filter(|_| is_pattern).map(|start| values.iter().any(|v| v.starts_with(start)))
    };
    let wrong = wanted.into_iter().find(|one| !begins(one).unwrap_or_else(|| values.contains(one)));
    wrong.map(str::to_owned)
}

impl ExprVisitor for Look<'_> {
    type Error = String;

    fn pre_visit(&mut self, expression: &Expr) -> Result<bool, String> {
        match expression {
            Expr::VectorSelector(selector) => self.selector(selector),
            Expr::MatrixSelector(matrix) => self.selector(&matrix.vs),
            Expr::Aggregate(aggregate) => {
                if let Some(modifier) = &aggregate.modifier {
                    self.grouping(&modifier.labels().labels, &aggregate.expr);
                }
            }
            _ => {}
        }
        Ok(true)
    }
}

fn look<'a>(series: &'a BTreeMap<String, BTreeSet<String>>, expression: &str) -> Result<Look<'a>, String> {
    let parsed = parser::parse(expression)?;
    let mut look = Look { series, used: BTreeSet::new(), wrong: Vec::new() };
    walk_expr(&mut look, &parsed)?;
    Ok(look)
}

#[test]
fn every_expression_uses_only_what_the_catalogue_has() {
    let series = series();
    for (place, expression) in all() {
        let look = look(&series, &expression).unwrap_or_else(|why| panic!("{place}: {why}\n{expression}"));
        assert!(look.wrong.is_empty(), "{place}: {:?}\n{expression}", look.wrong);
        assert!(!look.used.is_empty(), "{place} asks nothing");
    }
}

#[test]
fn every_metric_is_in_some_panel() {
    let series = series();
    let panels = all().into_iter().filter(|(place, _)| place.starts_with("ylock-"));
    let used: BTreeSet<_> =
        panels.flat_map(|(_, expression)| look(&series, &expression).unwrap().used).collect();
    for metric in catalogue::ALL {
        let is_used =
            used.iter().any(|name| name == metric.name || name.starts_with(&format!("{}_", metric.name)));
        assert!(is_used, "no panel shows {}", metric.name);
    }
}

#[test]
fn what_does_not_exist_is_noticed() {
    let series = series();
    for wrong in [
        "ylock_aquisitions_total",
        "sum by (name) (ylock_held)",
        "ylock_held{mode=\"shared\"}",
        "ylock_wait_seconds",
        "sum by (le) (ylock_wait_seconds_sum)",
        "ylock_renewals_total{outcome=\"timed_out\"}",
        "ylock_acquisitions_total{outcome=~\"at_once|never\"}",
        "ALERTS{alertname=\"YlockNothing\"}",
        "ylock_renewal_lag_seconds_bucket{group=\"users\"}",
    ] {
        assert!(!look(&series, wrong).unwrap().wrong.is_empty(), "{wrong}");
    }
    look(&series, "rate(ylock_held[$__rate_interval])").err().expect("is not PromQL");
}
