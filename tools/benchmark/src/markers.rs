//! Keeps apart what is written by hand and what is generated, in one file.

use anyhow::{Context, Result};

const END: &str = "<!-- end -->";

fn begin(name: &str) -> String {
    format!("<!-- generated: {name} -->")
}

/// Returns the text with a new content between the markers of this name.
pub(crate) fn replace(text: &str, name: &str, content: &str) -> Result<String> {
    let begin = begin(name);
    let (before, rest) = text.split_once(&begin).with_context(|| format!("there is no `{begin}`"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("there is no `{END}` after `{begin}`"))?;
    Ok(format!("{before}{begin}\n{}\n{END}{after}", content.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "a\n<!-- generated: one -->\nold\n<!-- end -->\nb\n<!-- generated: two -->\n<!-- end -->\n";

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let text = replace(TEXT, "one", "new\n").unwrap();
        assert_eq!(text, TEXT.replace("old", "new"));
    }

    #[test]
    fn replacing_twice_is_replacing_once() {
        let once = replace(TEXT, "two", "new").unwrap();
        assert_eq!(replace(&once, "two", "new").unwrap(), once);
        assert!(once.starts_with("a\n<!-- generated: one -->\nold\n"));
    }

    #[test]
    fn a_marker_that_is_not_there_is_named() {
        let error = replace(TEXT, "three", "new").unwrap_err();
        assert!(error.to_string().contains("generated: three"), "{error}");
    }
}
