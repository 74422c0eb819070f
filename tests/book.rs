//! The README and the pages of `docs/` name what there is: each alert, and places that links lead to.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn pages() -> Vec<PathBuf> {
    let folder = fs::read_dir(root().join("docs")).expect("the folder of the pages");
    let mut pages: Vec<_> = folder.map(|entry| entry.expect("a page").path()).collect();
    assert!(!pages.is_empty());
    pages.extend(["README.md", "ylock-cli/README.md", "CONTRIBUTING.md"].map(|page| root().join(page)));
    pages
}

/// Returns the headings of a page: lines of Markdown outside of blocks of code.
fn headings(page: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    page.lines().filter_map(move |line| {
        in_code ^= line.trim_start().starts_with("```");
        let text = line.trim_start_matches('#');
        (!in_code && text.len() < line.len()).then_some(text.trim())
    })
}

/// Returns the name that a heading has in a link.
fn anchor(heading: &str) -> String {
    let lower = heading.to_lowercase();
    let kept = lower.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the targets of the links of a page, without those to the web.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.starts_with("http"))
}

#[test]
fn each_alert_has_a_heading_and_each_heading_an_alert() {
    let rules = read("examples/observability/prometheus/rules/alerts.yml");
    let alerts: BTreeSet<_> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).map(str::trim).collect();
    assert!(!alerts.is_empty(), "the rules have no alerts");
    let page = read("docs/operating.md");
    let described: BTreeSet<_> = headings(&page).filter(|heading| heading.starts_with("Ylock")).collect();
    assert_eq!(described, alerts, "docs/operating.md has a heading for each alert, and no other");
}

#[test]
fn each_link_leads_to_a_place() {
    for page in pages() {
        let text = read(&page);
        for link in links(&text) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if file.is_empty() { page.clone() } else { page.parent().expect("a folder").join(file) };
            assert!(target.is_file(), "{}: there is no {file}", page.display());
            let is_there = heading.is_empty() || headings(&read(&target)).any(|text| anchor(text) == heading);
            assert!(is_there, "{}: {file} has no heading for #{heading}", page.display());
        }
    }
}

/// Panels stand between asterisks, as in *Locks lost*; what is only stressed begins with a small letter.
#[test]
fn each_panel_that_is_named_is_on_a_dashboard() {
    let board = |name| read(format!("examples/observability/grafana/dashboards/ylock-{name}.json"));
    let boards = ["overview", "group", "engine"].map(board).concat();
    // A name may be broken over two lines.
    let page = read("docs/operating.md").replace("**", "").split_whitespace().collect::<Vec<_>>().join(" ");
    let between = page.split('*').skip(1).step_by(2);
    let named: BTreeSet<_> = between.filter(|text| text.starts_with(char::is_uppercase)).collect();
    assert!(!named.is_empty(), "docs/operating.md names no panel");
    for panel in named {
        assert!(boards.contains(&format!("\"title\": \"{panel}\"")), "no dashboard has a panel {panel:?}");
    }
}
