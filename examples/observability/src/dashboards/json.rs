//! Writes Grafana's classic JSON. The files can be imported by hand and by provisioning alike, because the data source is a variable:
//! Grafana asks for `__inputs` only when a file is imported by hand.

use serde_json::{Value, json};
use ylock_metrics::catalogue::{ACQUISITIONS, CLIENTS, LOSSES};

use super::{
    Dashboard, Place,
    panel::{Draw, Panel, Target},
};
use crate::query;

/// Returns the whole file of a dashboard.
pub(super) fn dashboard(dashboard: &Dashboard, all: &[(&str, &str)]) -> Value {
    let panels: Vec<_> =
        dashboard.placed().iter().enumerate().map(|(index, place)| item(index + 1, place)).collect();
    json!({
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.description,
        "tags": ["ylock"],
        "schemaVersion": 39,
        "version": 1,
        "editable": true,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": { "from": "now-1h", "to": "now" },
        "timezone": "",
        "fiscalYearStartMonth": 0,
        "annotations": { "list": [losses()] },
        "links": all.iter().filter(|(uid, _)| *uid != dashboard.uid).map(|(uid, title)| link(uid, title)).collect::<Vec<_>>(),
        "templating": { "list": variables() },
        "panels": panels,
    })
}

fn source() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

fn link(uid: &str, title: &str) -> Value {
    json!({
        "type": "link", "title": title, "url": format!("/d/{uid}"), "icon": "dashboard", "tags": [], "tooltip": "",
        "asDropdown": false, "includeVars": true, "keepTime": true, "targetBlank": false,
    })
}

fn losses() -> Value {
    let lost = query::sum(
        "engine, group, reason",
        &format!("increase({}[$__rate_interval])", query::chosen(&LOSSES, "")),
    );
    json!({
        "name": "Locks lost", "datasource": source(), "enable": true, "hide": false, "iconColor": "red",
        "expr": format!("{lost} > 0"), "step": "10s", "titleFormat": "{{group}} lost a lock",
        "textFormat": "{{engine}}: {{reason}}", "useValueForTime": false,
    })
}

fn variables() -> Vec<Value> {
    let mut list = vec![json!({
        "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "regex": "", "hide": 0,
        "refresh": 1, "multi": false, "includeAll": false, "current": {}, "options": [], "skipUrlSync": false,
    })];
    list.extend(query::CHOSEN.iter().map(|label| variable(label, &values_of(label))));
    list
}

/// Returns the query for the values of a variable: each variable offers the values that the variables before it leave.
fn values_of(label: &str) -> String {
    let metric = if label == "group" { &ACQUISITIONS } else { &CLIENTS };
    let before: Vec<_> = query::CHOSEN.iter().take_while(|other| **other != label).collect();
    let matchers: Vec<_> = before.iter().map(|other| format!("{other}=~\"${other}\"")).collect();
    let matchers = if matchers.is_empty() { String::new() } else { format!("{{{}}}", matchers.join(", ")) };
    format!("label_values({}{matchers}, {label})", metric.name)
}

fn variable(name: &str, values: &str) -> Value {
    json!({
        "name": name, "label": name, "type": "query", "datasource": source(), "definition": values,
        "query": { "qryType": 1, "query": values, "refId": "PrometheusVariableQueryEditor-VariableQuery" },
        "multi": true, "includeAll": true, "allValue": query::ALL, "refresh": 2, "sort": 1, "hide": 0, "regex": "",
        "current": { "selected": true, "text": ["All"], "value": ["$__all"] }, "options": [], "skipUrlSync": false,
    })
}

fn item(id: usize, place: &Place<'_>) -> Value {
    let grid = json!({ "x": place.x, "y": place.y, "w": place.width, "h": place.height });
    let Some(panel) = place.panel else {
        return json!({ "id": id, "type": "row", "title": place.title, "collapsed": false, "panels": [], "gridPos": grid });
    };
    let targets: Vec<_> =
        panel.targets.iter().zip('A'..).map(|(one, letter)| target(panel, one, letter)).collect();
    let links: Vec<_> = panel.alerts.iter().map(|name| alert_link(name)).collect();
    json!({
        "id": id, "type": kind(panel.draw), "title": panel.title, "description": panel.description, "gridPos": grid,
        "datasource": source(), "targets": targets, "links": links,
        "fieldConfig": { "defaults": field(panel), "overrides": [] },
        "options": options(panel), "transformations": transformations(panel.draw),
    })
}

/// Returns a link to an alert, under the address at which Grafana shows the alerts of its data sources.
fn alert_link(name: &str) -> Value {
    let url = format!("/alerting/list?search=rule:{name}");
    json!({ "title": format!("Alert {name}"), "url": url, "targetBlank": true })
}

fn kind(draw: Draw) -> &'static str {
    match draw {
        Draw::Stat => "stat",
        Draw::Lines | Draw::Stack => "timeseries",
        Draw::Heatmap => "heatmap",
        Draw::Table => "table",
    }
}

fn target(panel: &Panel, target: &Target, letter: char) -> Value {
    let format = match panel.draw {
        Draw::Heatmap => "heatmap",
        Draw::Table => "table",
        _ => "time_series",
    };
    let instant = panel.draw == Draw::Table;
    json!({
        "refId": letter.to_string(), "datasource": source(), "expr": target.expression, "legendFormat": target.legend,
        "editorMode": "code", "format": format, "instant": instant, "range": !instant,
    })
}

fn field(panel: &Panel) -> Value {
    let mut steps = vec![json!({ "color": "green", "value": null })];
    steps.extend(panel.colours.iter().map(|(value, colour)| json!({ "color": colour, "value": value })));
    let mode = if panel.draw == Draw::Stat { "thresholds" } else { "palette-classic" };
    let mut field = json!({
        "unit": panel.unit, "min": 0, "color": { "mode": mode }, "thresholds": { "mode": "absolute", "steps": steps },
        "links": panel.drill_down.iter().map(|uid| drill_down(uid)).collect::<Vec<_>>(),
    });
    if matches!(panel.draw, Draw::Lines | Draw::Stack) {
        let stacking = if panel.draw == Draw::Stack { "normal" } else { "none" };
        field["custom"] = json!({
            "drawStyle": "line", "lineWidth": 1, "fillOpacity": if panel.draw == Draw::Stack { 30 } else { 8 },
            "showPoints": "never", "spanNulls": false, "stacking": { "mode": stacking, "group": "A" },
        });
    }
    field
}

fn drill_down(uid: &str) -> Value {
    let group = "var-engine=${__field.labels.engine}&var-group=${__field.labels.group}";
    json!({ "title": "This group", "url": format!("/d/{uid}?var-datasource=${{datasource}}&{group}&${{__url_time_range}}") })
}

fn options(panel: &Panel) -> Value {
    match panel.draw {
        Draw::Stat => json!({
            "colorMode": "value", "graphMode": "area", "justifyMode": "auto", "textMode": "auto", "orientation": "auto",
            "reduceOptions": { "calcs": ["lastNotNull"], "fields": "", "values": false },
        }),
        Draw::Lines | Draw::Stack => json!({
            "legend": { "displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"], "showLegend": true },
            "tooltip": { "mode": "multi", "sort": "desc" },
        }),
        Draw::Heatmap => json!({
            "calculate": false, "cellGap": 1, "color": { "mode": "scheme", "scheme": "Oranges", "steps": 64 },
            "yAxis": { "unit": panel.unit }, "legend": { "show": true }, "tooltip": { "mode": "single", "yHistogram": true },
            "rowsFrame": { "layout": "auto" }, "filterValues": { "le": 1e-9 },
        }),
        Draw::Table => {
            json!({ "showHeader": true, "footer": { "show": false }, "sortBy": [{ "displayName": "Value", "desc": true }] })
        }
    }
}

/// Returns the transformations of a panel: tables do not show the time of an instant query, which says nothing.
fn transformations(draw: Draw) -> Value {
    if draw != Draw::Table {
        return json!([]);
    }
    json!([{ "id": "organize", "options": { "excludeByName": { "Time": true, "__name__": true } } }])
}
