//! Writes the files that Prometheus and `promtool` read. Strings are written as in JSON, which YAML reads too.

use std::fmt::Write;

use super::{Alert, Case, Recording, alerts, cases, recordings};

const HEAD: &str =
    "# Written by `cargo run -p ylock-observability -- files`: change the code, not this file.\n";

/// Returns the text of `prometheus/rules/recording.yml`.
pub fn recording_yaml() -> String {
    let mut text = format!("{HEAD}groups:\n  - name: ylock-recording\n    rules:\n");
    for Recording { name, expression, .. } in recordings() {
        let _ = writeln!(text, "      - record: {name}\n        expr: {}", block(&expression, 10));
    }
    text
}

/// Returns the text of `prometheus/rules/alerts.yml`.
pub fn alerts_yaml() -> String {
    let mut text = format!("{HEAD}groups:\n  - name: ylock-alerts\n    rules:\n");
    alerts().iter().for_each(|alert| write_alert(&mut text, alert));
    text
}

fn write_alert(text: &mut String, alert: &Alert) {
    let Alert { name, lasting, severity, summary, description, dashboard, why, .. } = alert;
    let expression = block(&alert.expression, 10);
    let (summary, description) = (quoted(summary), quoted(description));
    for line in [
        format!("      # {why}"),
        format!("      - alert: {name}"),
        format!("        expr: {expression}"),
        format!("        for: {lasting}"),
        format!("        labels: {{ severity: {severity} }}"),
        "        annotations:".to_owned(),
        format!("          summary: {summary}"),
        format!("          description: {description}"),
        format!("          dashboard: /d/{dashboard}"),
    ] {
        let _ = writeln!(text, "{line}");
    }
}

/// Returns the text of `prometheus/tests/alerts.yml`, for `promtool test rules`.
pub fn tests_yaml() -> String {
    let mut text = format!(
        "{HEAD}rule_files:\n  - ../rules/recording.yml\n  - ../rules/alerts.yml\nevaluation_interval: \
         30s\n\
         group_eval_order: [ylock-recording, ylock-alerts]\ntests:\n"
    );
    let alerts = alerts();
    for case in cases() {
        if let Some(alert) = alerts.iter().find(|alert| alert.name == case.alert) {
            write_case(&mut text, &case, alert);
        }
    }
    text
}

fn write_case(text: &mut String, case: &Case, alert: &Alert) {
    let _ = writeln!(text, "  - name: {}\n    interval: 30s\n    input_series:", quoted(case.name));
    for (series, values) in case.series {
        let _ = writeln!(text, "      - series: {}\n        values: {}", quoted(series), quoted(values));
    }
    let _ = writeln!(text, "    alert_rule_test:");
    for time in case.quiet {
        let _ = writeln!(
            text,
            "      - eval_time: {time}\n        alertname: {}\n        exp_alerts: []",
            alert.name
        );
    }
    for time in case.fires {
        let _ = writeln!(
            text,
            "      - eval_time: {time}\n        alertname: {}\n        exp_alerts:",
            alert.name
        );
        let mut labels = vec![format!("severity: {}", alert.severity)];
        labels.extend(case.labels.iter().map(|(label, value)| format!("{label}: {}", quoted(value))));
        let _ = writeln!(text, "          - exp_labels: {{ {} }}", labels.join(", "));
        let _ =
            writeln!(text, "            exp_annotations:\n              summary: {}", quoted(case.summary));
        let _ = writeln!(text, "              description: {}", quoted(alert.description));
        let _ = writeln!(text, "              dashboard: /d/{}", alert.dashboard);
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns one line as it is, several lines as a YAML block.
fn block(text: &str, indent: usize) -> String {
    if !text.contains('\n') {
        return text.to_owned();
    }
    let lines = text.lines().map(|line| format!("\n{:indent$}{line}", ""));
    format!("|-{}", lines.collect::<String>())
}
