//! Reads which conformance cases were not asked: because the engine does not declare the guarantee, or because the short run leaves them to the long
//! one. The cases write this to a file: libtest hides the output of passing tests.

use std::{collections::BTreeMap, fs, path::PathBuf};

use anyhow::Result;

#[derive(Debug)]
pub(crate) struct SkipsFile {
    path: PathBuf,
}

impl SkipsFile {
    pub(crate) fn create(path: PathBuf) -> Result<Self> {
        fs::write(&path, "")?;
        Ok(Self { path })
    }

    pub(crate) fn variable(&self) -> (&'static str, String) {
        ("YLOCK_SKIPS_FILE", self.path.display().to_string())
    }

    pub(crate) fn read(&self) -> Result<LeftOut> {
        Ok(parse(&fs::read_to_string(&self.path)?))
    }
}

impl Drop for SkipsFile {
    fn drop(&mut self) {
        // If this fails, a small file stays in the cache folder.
        let _ = fs::remove_file(&self.path);
    }
}

#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    /// What engines do not promise.
    pub(crate) skips: Vec<Skip>,
    /// Of each engine, the number of cases that are left to the long run.
    pub(crate) later: BTreeMap<String, u32>,
}

impl LeftOut {
    pub(crate) fn all_later(&self) -> u32 {
        self.later.values().sum()
    }
}

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Skip {
    pub(crate) engine: String,
    /// The name of the case and the reason.
    pub(crate) case: String,
}

/// Returns what lines like `SKIPPED <engine> <case>: <reason>` and `LATER <engine> <case>` say.
fn parse(text: &str) -> LeftOut {
    let skip = |line: &str| {
        let (engine, case) = line.strip_prefix("SKIPPED ")?.split_once(' ')?;
        Some(Skip { engine: engine.to_owned(), case: case.to_owned() })
    };
    let mut skips: Vec<_> = text.lines().filter_map(skip).collect();
    skips.sort();
    // A case that two passes left out counts once.
    skips.dedup();
    let mut later = BTreeMap::new();
    for (engine, _) in text.lines().filter_map(|line| line.strip_prefix("LATER ")?.split_once(' ')) {
        *later.entry(engine.to_owned()).or_default() += 1;
    }
    LeftOut { skips, later }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_engine_case_and_reason() {
        let LeftOut { skips, later } = parse(
            "SKIPPED redis b: no tokens\nnoise\nSKIPPED redis a: not fair\nLATER redis c\nSKIPPED redis a: not fair\n",
        );
        assert_eq!(
            skips.iter().map(|skip| skip.case.as_str()).collect::<Vec<_>>(),
            ["a: not fair", "b: no tokens"]
        );
        assert_eq!((&*skips[0].engine, later), ("redis", BTreeMap::from([("redis".to_owned(), 1)])));
    }
}
