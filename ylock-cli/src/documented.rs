//! Every command line of `ylock` in the README and the pages is one that the command understands.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;

use crate::arguments::Arguments;

/// What begins a command, after which another one may follow.
const ENDS: [&str; 4] = [";", "&&", "||", "|"];

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let docs = fs::read_dir(root.join("docs")).expect("the folder of the pages");
    let docs = docs.map(|entry| entry.expect("a page").path());
    docs.chain(["README.md", "ylock-cli/README.md"].map(|page| root.join(page))).collect()
}

/// Returns the command lines in the blocks of shell of a page, and those in its texts that leave nothing out. There, two words only name a command.
fn lines(page: &str) -> Vec<String> {
    let (mut lines, mut block) = (Vec::new(), None::<&str>);
    // A line that goes on in the next one.
    for line in page.replace("\\\n", " ").lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            block = if block.is_none() { Some(if language == "sh" { "sh" } else { "" }) } else { None };
            continue;
        }
        match block {
            Some("sh") => lines.push(line.trim().to_owned()),
            Some(_) => {}
            // Between every second pair of backticks is code.
            None => lines.extend(
                line.split('`')
                    .skip(1)
                    .step_by(2)
                    .filter(|code| !code.contains('…') && code.split(' ').nth(2).is_some())
                    .map(str::to_owned),
            ),
        }
    }
    lines
}

/// Returns the words of a line up to its comment, as a shell reads them that expands nothing.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars().chain([' ']) {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ';') => {
                words.extend(word.take());
                words.push(";".to_owned());
            }
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    assert!(quote.is_none(), "a quote is open: {line}");
    words
}

#[test]
fn each_command_line_is_understood() {
    let mut understood = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for line in lines(&text) {
            if !line.contains("ylock ") {
                continue;
            }
            let words = words(&line);
            for command in words.split(|word| ENDS.contains(&word.as_str())) {
                // Neither is the dependency of a Cargo.toml a command line.
                if command.first().is_none_or(|first| first != "ylock")
                    || command.get(1).is_none_or(|word| word == "=")
                {
                    continue;
                }
                let parsed = Arguments::try_parse_from(command);
                let is_wrong = parsed.as_ref().is_err_and(clap::Error::use_stderr);
                assert!(!is_wrong, "{}: {line}\n{}", page.display(), parsed.unwrap_err());
                understood += 1;
            }
        }
    }
    assert!(understood > 50, "only {understood} were found");
}

#[test]
fn a_line_is_read_as_a_shell_would() {
    assert_eq!(
        words("ylock run 'a b' -- sh -c \"x # y\" # said"),
        ["ylock", "run", "a b", "--", "sh", "-c", "x # y"]
    );
    assert_eq!(words("ylock list; ylock doctor"), ["ylock", "list", ";", "ylock", "doctor"]);
}
