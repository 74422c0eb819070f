//! PromQL from the catalogue: names come from its constants, and only labels that a metric has are matched.

use ylock_metrics::catalogue::Metric;

/// The labels that the variables of the dashboards choose, in the order of their variables.
pub const CHOSEN: [&str; 4] = ["job", "instance", "engine", "group"];

/// Outcomes of an acquisition that got its lock.
pub const GRANTED: &str = "outcome=~\"at_once|after_waiting\"";
/// Outcomes of an acquisition whose caller was ready to wait: `not_free`, `refused` and `cancelled` are decisions of the program.
pub const WANTED: &str = "outcome=~\"at_once|after_waiting|timed_out|failed\"";

/// The series of a metric that the variables choose and that match `more`.
pub fn chosen(metric: &Metric, more: &str) -> String {
    part(metric, "", more)
}

/// The same for `_bucket`, `_sum` or `_count` of a histogram.
pub fn part(metric: &Metric, suffix: &str, more: &str) -> String {
    // Labels of the scrape are those of every metric.
    let has = |label: &&str| matches!(*label, "job" | "instance") || metric.labels.contains(label);
    let mut matchers: Vec<_> =
        CHOSEN.iter().filter(|label| has(label)).map(|label| format!("{label}=~\"${label}\"")).collect();
    matchers.extend((!more.is_empty()).then(|| more.to_owned()));
    format!("{}{suffix}{{{}}}", metric.name, matchers.join(", "))
}

/// Per second.
pub fn rate(series: &str) -> String {
    format!("rate({series}[$__rate_interval])")
}

/// How many in all that the dashboard shows. Prometheus extrapolates, and a third of a loss is none.
pub fn in_range(by: &str, series: &str) -> String {
    format!("round({})", sum(by, &format!("increase({series}[$__range])")))
}

/// Summed, apart by these labels; none: all together.
pub fn sum(by: &str, inner: &str) -> String {
    aggregate("sum", by, inner)
}

/// The largest, apart by these labels; none: of all.
pub fn max(by: &str, inner: &str) -> String {
    aggregate("max", by, inner)
}

/// Only those that are not 0: series are there from the start, and hundreds of lines at 0 hide the one that is not.
pub fn not_zero(inner: &str) -> String {
    format!("{inner} > 0")
}

/// The ten largest.
pub fn top(inner: &str) -> String {
    format!("topk(10, {inner})")
}

/// A quantile of a histogram, apart by these labels.
pub fn quantile(q: f64, metric: &Metric, by: &str, more: &str) -> String {
    let by = if by.is_empty() { "le".to_owned() } else { format!("{by}, le") };
    format!("histogram_quantile({q}, {})", sum(&by, &rate(&part(metric, "_bucket", more))))
}

/// Which part of `whole` is `part`, both summed over the same labels. Nothing of nothing is no part, not an error.
pub fn share(by: &str, part: &str, whole: &str) -> String {
    format!("{} / ({} > 0)", sum(by, &rate(part)), sum(by, &rate(whole)))
}

fn aggregate(how: &str, by: &str, inner: &str) -> String {
    if by.is_empty() { format!("{how}({inner})") } else { format!("{how} by ({by}) ({inner})") }
}

/// What Grafana sends when every variable says "All", with these times in place of its own.
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
