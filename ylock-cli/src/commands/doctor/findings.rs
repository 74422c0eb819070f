//! What was found: printed line by line, or as one object in the end.

use serde_json::{Value, json};
use ylock::engine::Finding;

use crate::exit::{Failed, OTHER, Result};
use crate::output;

pub(super) struct Findings {
    json: bool,
    found: Vec<Value>,
    /// The exit code of the first thing that is wrong.
    code: Option<u8>,
}

impl Findings {
    pub(super) fn new(json: bool) -> Self {
        Self { json, found: vec![], code: None }
    }

    pub(super) fn say(&mut self, what: &str, text: &str, value: Value) -> Result<()> {
        if self.json {
            self.found.push(json!({"what": what, "is": value}));
            return Ok(());
        }
        output::paragraph(&format!("{what}: {text}"))
    }

    pub(super) fn wrong(&mut self, what: &str, why: Failed) -> Result<()> {
        self.code.get_or_insert(why.code);
        self.say(what, &format!("WRONG: {}", why.message), json!({"wrong": why.message}))
    }

    pub(super) fn risk(&mut self, Finding { what, remedy, .. }: &Finding) -> Result<()> {
        self.code.get_or_insert(OTHER);
        self.say("RISK", &format!("{what}\nremedy: {remedy}"), json!({"risk": what, "remedy": remedy}))
    }

    pub(super) fn end(self) -> Result<u8> {
        if self.json {
            output::json_line(&json!({"well": self.code.is_none(), "found": self.found}))?;
        }
        Ok(self.code.unwrap_or(0))
    }
}
