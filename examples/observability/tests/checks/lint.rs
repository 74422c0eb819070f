//! Checks what Grafana and its users need of a dashboard, and what Prometheus and its users need of an alert.

use std::collections::BTreeSet;

use serde_json::Value;
use ylock_metrics::catalogue;
use ylock_observability::{dashboards, rules};

fn boards() -> Vec<Value> {
    dashboards::all().iter().map(dashboards::Dashboard::json).collect()
}

fn panels(board: &Value) -> Vec<&Value> {
    board["panels"].as_array().unwrap().iter().filter(|panel| panel["type"] != "row").collect()
}

/// Collects every text in a value, however deep.
fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(list) => list.iter().for_each(|one| texts(one, found)),
        Value::Object(fields) => fields.values().for_each(|one| texts(one, found)),
        _ => {}
    }
}

#[test]
fn every_panel_has_a_title_a_unit_and_says_what_to_do() {
    for board in boards() {
        for panel in panels(&board) {
            let title = panel["title"].as_str().unwrap();
            assert!(!title.is_empty());
            assert!(!panel["fieldConfig"]["defaults"]["unit"].as_str().unwrap().is_empty(), "{title}");
            let description = panel["description"].as_str().unwrap();
            assert!(description.len() > 30 && description.ends_with('.'), "{title}: {description}");
            assert!(!panel["targets"].as_array().unwrap().is_empty(), "{title}");
        }
    }
}

#[test]
fn every_query_goes_to_the_data_source_that_is_chosen() {
    for board in boards() {
        assert!(board.get("__inputs").is_none());
        let variables = board["templating"]["list"].as_array().unwrap();
        assert_eq!(variables[0]["type"], "datasource");
        let asked = panels(&board)
            .into_iter()
            .flat_map(|panel| panel["targets"].as_array().unwrap().iter().chain([panel]));
        for one in asked.chain(&variables[1..]).chain(board["annotations"]["list"].as_array().unwrap()) {
            assert_eq!(one["datasource"]["uid"], "${datasource}", "{one}");
        }
    }
}

#[test]
fn the_variables_are_the_same_everywhere_and_all_is_all() {
    for board in boards() {
        let variables = board["templating"]["list"].as_array().unwrap();
        let names: Vec<_> = variables.iter().map(|variable| variable["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["datasource", "job", "instance", "engine", "group"]);
        for variable in &variables[1..] {
            assert_eq!(variable["allValue"], ".+");
            assert_eq!((&variable["multi"], &variable["includeAll"]), (&true.into(), &true.into()));
            let asked = variable["query"]["query"].as_str().unwrap();
            assert!(catalogue::ALL.iter().any(|metric| asked.contains(metric.name)), "{asked}");
        }
    }
}

#[test]
fn queries_follow_the_variables_and_the_interval() {
    for dashboard in dashboards::all() {
        for (panel, target) in
            dashboard.panels().flat_map(|panel| panel.targets.iter().map(move |t| (panel, t)))
        {
            let asked = &target.expression;
            let selectors = asked.matches("ylock_").count();
            for variable in ["$job", "$instance", "$engine"] {
                assert_eq!(asked.matches(variable).count(), selectors, "{}: {asked}", panel.title);
            }
            let windows = asked.matches('[').count();
            let followed = asked.matches("[$__rate_interval]").count() + asked.matches("[$__range]").count();
            assert_eq!(windows, followed, "{}: {asked}", panel.title);
        }
    }
}

#[test]
fn nothing_has_the_id_of_another_or_lies_over_it() {
    let mut uids = BTreeSet::new();
    for board in boards() {
        assert!(
            uids.insert(board["uid"].as_str().unwrap().to_owned()),
            "two dashboards are {}",
            board["uid"]
        );
        let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
        for panel in board["panels"].as_array().unwrap() {
            assert!(ids.insert(panel["id"].as_u64().unwrap()));
            let at = |name: &str| panel["gridPos"][name].as_u64().unwrap();
            assert!(at("x") + at("w") <= 24);
            for x in at("x")..at("x") + at("w") {
                for y in at("y")..at("y") + at("h") {
                    assert!(cells.insert((x, y)), "{} lies over something", panel["title"]);
                }
            }
        }
    }
}

#[test]
fn links_lead_to_dashboards_and_alerts_that_exist() {
    let boards = boards();
    let uids: BTreeSet<_> = boards.iter().map(|board| board["uid"].as_str().unwrap()).collect();
    let alerts = rules::alerts();
    let mut to_alerts = BTreeSet::new();
    for board in &boards {
        let mut all = Vec::new();
        texts(board, &mut all);
        for url in all.into_iter().filter(|text| text.starts_with('/')) {
            if let Some(rest) = url.strip_prefix("/d/") {
                let uid = rest.split(['?', '/']).next().unwrap();
                assert!(uids.contains(uid), "{url}");
            } else {
                let name = url.strip_prefix("/alerting/list?search=rule:").unwrap_or_else(|| panic!("{url}"));
                assert!(alerts.iter().any(|alert| alert.name == name), "{url}");
                to_alerts.insert(name);
            }
        }
        assert_eq!(board["links"].as_array().unwrap().len(), boards.len() - 1);
    }
    for alert in &alerts {
        assert!(to_alerts.contains(alert.name), "no panel leads to {}", alert.name);
        assert!(uids.contains(alert.dashboard), "{} leads to no dashboard", alert.name);
    }
}

#[test]
fn every_alert_says_how_bad_it_is_and_what_to_do() {
    for alert in rules::alerts() {
        assert!(alert.name.starts_with("Ylock"));
        assert!(["critical", "warning", "info"].contains(&alert.severity), "{}", alert.name);
        assert!(alert.summary.len() > 20 && alert.description.len() > 50, "{}", alert.name);
        // The cases for `promtool` compare the description as it is.
        assert!(!alert.description.contains("{{"), "{}", alert.name);
    }
}

#[test]
fn every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_is_over() {
    for alert in rules::alerts() {
        let cases = rules::cases();
        let fires = cases.iter().filter(|case| case.alert == alert.name && !case.fires.is_empty());
        // The first quiet time is before the alert fires, the last is after.
        assert!(fires.clone().any(|case| case.quiet.len() >= 2), "{}", alert.name);
        let seconds = |time: &&str| humantime::parse_duration(time).unwrap();
        for case in fires {
            let (first, last) = (seconds(&case.fires[0]), case.fires.last().map(seconds).unwrap());
            assert!(case.quiet.first().map(seconds) < Some(first), "{}", case.name);
            assert!(case.quiet.last().map(seconds) > Some(last), "{}", case.name);
        }
    }
}
