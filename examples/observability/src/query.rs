//! Builds PromQL from the catalogue of metrics: names come from its constants, and only labels that a metric has are matched.

use ylock_metrics::catalogue::Metric;

/// The labels that the variables of the dashboards choose, in the order of their variables.
pub const CHOSEN: [&str; 4] = ["job", "instance", "engine", "group"];

/// The outcomes of an acquisition that got its lock.
pub const GRANTED: &str = "outcome=~\"at_once|after_waiting\"";
/// The outcomes of an acquisition whose caller was ready to wait: `not_free`, `refused` and `cancelled` are decisions of the program.
pub const WANTED: &str = "outcome=~\"at_once|after_waiting|timed_out|failed\"";

/// Returns the series of a metric that the variables choose and that match `more`.
pub fn chosen(metric: &Metric, more: &str) -> String {
    part(metric, "", more)
}

/// Returns the series of a histogram's `_bucket`, `_sum` or `_count` that the variables choose and that match `more`.
pub fn part(metric: &Metric, suffix: &str, more: &str) -> String {
    // Every metric has the labels of the scrape.
    let has = |label: &&str| matches!(*label, "job" | "instance") || metric.labels.contains(label);
    let mut matchers: Vec<_> =
        CHOSEN.iter().filter(|label| has(label)).map(|label| format!("{label}=~\"${label}\"")).collect();
    matchers.extend((!more.is_empty()).then(|| more.to_owned()));
    format!("{}{suffix}{{{}}}", metric.name, matchers.join(", "))
}

/// Returns the rate of a series per second.
pub fn rate(series: &str) -> String {
    format!("rate({series}[$__rate_interval])")
}

/// Returns the increase over the whole range that the dashboard shows, rounded: Prometheus extrapolates, and a third of a loss is none.
pub fn in_range(by: &str, series: &str) -> String {
    format!("round({})", sum(by, &format!("increase({series}[$__range])")))
}

/// Returns the sum, separately for each value of these labels; without labels the sum of all.
pub fn sum(by: &str, inner: &str) -> String {
    aggregate("sum", by, inner)
}

/// Returns the largest value, separately for each value of these labels; without labels the largest of all.
pub fn max(by: &str, inner: &str) -> String {
    aggregate("max", by, inner)
}

/// Returns only the series that are not 0: series exist from the start, and hundreds of lines at 0 hide the one that is not.
pub fn not_zero(inner: &str) -> String {
    format!("{inner} > 0")
}

/// Returns the ten largest series.
pub fn top(inner: &str) -> String {
    format!("topk(10, {inner})")
}

/// Returns a quantile of a histogram, separately for each value of these labels.
pub fn quantile(q: f64, metric: &Metric, by: &str, more: &str) -> String {
    let by = if by.is_empty() { "le".to_owned() } else { format!("{by}, le") };
    format!("histogram_quantile({q}, {})", sum(&by, &rate(&part(metric, "_bucket", more))))
}

/// Returns the share of `part` in `whole`, both summed over the same labels. Where `whole` is 0 there is no share, and no error.
pub fn share(by: &str, part: &str, whole: &str) -> String {
    format!("{} / ({} > 0)", sum(by, &rate(part)), sum(by, &rate(whole)))
}

fn aggregate(how: &str, by: &str, inner: &str) -> String {
    if by.is_empty() { format!("{how}({inner})") } else { format!("{how} by ({by}) ({inner})") }
}

/// Returns the expression that Grafana sends when every variable says "All", with these times in place of its own.
pub fn as_sent(expression: &str, rate_interval: &str, range: &str) -> String {
    let mut sent = expression.replace("$__rate_interval", rate_interval).replace("$__range", range);
    for label in CHOSEN {
        sent = sent.replace(&format!("\"${label}\""), &format!("\"{ALL}\""));
    }
    sent
}

/// The value of a variable that says "All".
pub const ALL: &str = ".+";

#[cfg(test)]
mod tests {
    use ylock_metrics::catalogue::{LOSSES, RENEWAL_LAG};

    use super::*;

    #[test]
    fn only_labels_that_the_metric_has_are_matched() {
        let lag = part(&RENEWAL_LAG, "_count", "");
        assert_eq!(
            lag,
            "ylock_renewal_lag_seconds_count{job=~\"$job\", instance=~\"$instance\", engine=~\"$engine\"}"
        );
        assert!(chosen(&LOSSES, "reason=\"gone\"").ends_with(", group=~\"$group\", reason=\"gone\"}"));
    }

    #[test]
    fn all_is_what_grafana_sends_for_all() {
        let sent = as_sent(&rate(&chosen(&RENEWAL_LAG, "")), "4s", "1m");
        assert!(sent.contains("job=~\".+\"") && sent.ends_with("[4s])") && !sent.contains('$'), "{sent}");
    }
}
