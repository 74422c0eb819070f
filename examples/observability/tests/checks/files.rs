//! Checks that the files in the repository are those that the code writes.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;
use ylock_observability::files;

fn example() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn files_are_those_that_the_code_writes() {
    for (name, written) in files::all() {
        let found = fs::read_to_string(example().join(&name)).unwrap_or_default();
        // The order of fields says nothing, and depends on what else is compiled.
        let same = match (serde_json::from_str::<Value>(&found), serde_json::from_str::<Value>(&written)) {
            (Ok(found), Ok(written)) => found == written,
            _ => found == written,
        };
        assert!(same, "{name} is old: write it with cargo run -p ylock-observability -- files");
    }
}

#[test]
fn no_dashboard_or_rule_is_left_from_before() {
    let written: BTreeSet<_> = files::all().into_iter().map(|(name, _)| name).collect();
    for folder in ["grafana/dashboards", "prometheus/rules", "prometheus/tests"] {
        for entry in fs::read_dir(example().join(folder)).unwrap() {
            let name = format!("{folder}/{}", entry.unwrap().file_name().display());
            assert!(written.contains(&name), "the code does not write {name}: remove it");
        }
    }
}

#[test]
fn the_example_configuration_names_every_rule_file() {
    let configuration = fs::read_to_string(example().join("prometheus/prometheus.yml")).unwrap();
    for (name, _) in files::all() {
        if let Some(rules) = name.strip_prefix("prometheus/rules/") {
            assert!(configuration.contains(&format!("- rules/{rules}\n")), "{rules}");
        }
    }
}
