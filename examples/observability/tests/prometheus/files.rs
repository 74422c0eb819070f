//! Checks the files with `promtool`.

use std::path::Path;

use crate::server::promtool;

fn file(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("prometheus").join(name).display().to_string()
}

#[test]
#[ignore = "needs Prometheus"]
fn prometheus_accepts_the_configuration() {
    promtool(&["check", "config", &file("prometheus.yml")], "");
}

#[test]
#[ignore = "needs Prometheus"]
fn prometheus_accepts_the_rules() {
    promtool(&["check", "rules", &file("rules/recording.yml"), &file("rules/alerts.yml")], "");
}

#[test]
#[ignore = "needs Prometheus"]
fn every_alert_fires_and_is_over_when_it_should() {
    promtool(&["test", "rules", &file("tests/alerts.yml")], "");
}
