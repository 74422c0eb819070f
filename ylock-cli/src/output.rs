//! What is printed about locks: lines for people, JSON for programs.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use humantime::format_duration;
use serde_json::{Value, json};
use ylock::Token;
use ylock::engine::{Holder, Waiter};

use crate::exit::Result;
use crate::name::{Named, Seen};

/// How often it is said that the store is still away.
const REMINDS: Duration = Duration::from_secs(60);
/// The last second of the year 9999.
const LAST: u64 = 253_402_300_799;

/// Prints a line.
pub(crate) fn line(text: &str) -> Result<()> {
    Ok(writeln!(io::stdout(), "{}", printable(text))?)
}

/// Prints a text of one line or more. Those after the first are indented: whatever is in the text, they are not taken for others of the command.
pub(crate) fn paragraph(text: &str) -> Result<()> {
    Ok(writeln!(io::stdout(), "{}", indented(text))?)
}

/// Returns a text as it is printed: its lines as they are, but for the indentation of all but the first one.
fn indented(text: &str) -> String {
    text.trim_end().lines().map(printable).collect::<Vec<_>>().join("\n  ")
}

/// Prints a line of JSON.
pub(crate) fn json_line(value: &Value) -> Result<()> {
    Ok(writeln!(io::stdout(), "{}", shown_json(value))?)
}

fn shown_json(value: &Value) -> String {
    // JSON leaves some characters as they are that a terminal would obey. They occur in texts only, where they may be written like this.
    value.to_string().chars().map(in_json).collect()
}

fn in_json(c: char) -> String {
    if is_obeyed(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() }
}

/// Whether all that is said is JSON, too.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Says everything as JSON from now on.
pub(crate) fn say_json() {
    IS_JSON.store(true, Ordering::Relaxed);
}

/// Says why the store is asked again: at once if that is news, and then once in a while.
pub(crate) fn say_again(why: &str) {
    static SAID: Mutex<Option<(String, Instant)>> = Mutex::new(None);
    let now = Instant::now();
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if is_news(said.as_ref(), why, now) {
        *said = Some((why.to_owned(), now));
        say(&format!("{why}; trying again"));
    }
}

fn is_news(said: Option<&(String, Instant)>, why: &str, now: Instant) -> bool {
    said.is_none_or(|(last, when)| last != why || now.duration_since(*when) >= REMINDS)
}

/// Says why the process ends; with JSON also by which code.
pub(crate) fn say_end(text: &str, code: u8) {
    if IS_JSON.load(Ordering::Relaxed) {
        let _ = writeln!(io::stderr(), "{}", shown_json(&json!({"error": text, "code": code})));
    } else {
        say(text);
    }
}

/// Says something to the user, beside the output. That no reader is left for it changes nothing: a command is stopped all the same when its lock is
/// lost.
pub(crate) fn say(text: &str) {
    let line = match IS_JSON.load(Ordering::Relaxed) {
        true => shown_json(&json!({"says": text})),
        false => format!("ylock: {}", indented(text)),
    };
    let _ = writeln!(io::stderr(), "{line}");
}

/// Returns the text without what a terminal would obey: the names of locks and clients may come from strangers.
pub(crate) fn printable(text: &str) -> String {
    let shown = |c: char| if is_obeyed(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

/// Returns whether a terminal does something else with this character than show it: what controls it, or the direction of what follows.
fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns a time as RFC 3339 has it. Stores may show times that no clock shows: then it is the nearest that can be written.
pub(crate) fn time(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let written = SystemTime::UNIX_EPOCH + since.min(Duration::from_secs(LAST));
    humantime::format_rfc3339_millis(written).to_string()
}

/// Returns the time of the day, to the second.
pub(crate) fn time_of_day(time: SystemTime) -> String {
    let written = self::time(time);
    // Of the date and the time the time.
    format!("{} UTC", written.get(11..19).unwrap_or_default())
}

/// Prints the holders and waiters of a lock or semaphore.
pub(crate) fn print(named: &Named, seen: &Seen) -> Result<()> {
    lines(named, seen).iter().try_for_each(|text| line(text))
}

/// Returns the holders and waiters of a lock or semaphore as lines.
pub(crate) fn lines(named: &Named, seen: &Seen) -> Vec<String> {
    let (held, waits) = match named.is_semaphore {
        true => ("a permit is held ", "waits "),
        false => ("held to ", "waits to "),
    };
    let (holders, queue) = (&seen.contenders.holders, &seen.contenders.queue);
    let mut lines = vec![named.to_string()];
    if let Some(permits) = seen.permits {
        lines.push(format!("  {} of {permits} permits are held", holders.len()));
    } else if holders.is_empty() {
        lines.push("  free".to_owned());
    }
    // A permit has no mode.
    let shown = |who: &Waiter, token| shown(who, token, !named.is_semaphore);
    lines.extend(holders.iter().map(|holder| format!("  {held}{}", shown(&common(holder), holder.token))));
    let waiters = queue.iter().enumerate();
    lines.extend(waiters.map(|(place, waiter)| format!("  {}. {waits}{}", place + 1, shown(waiter, None))));
    lines
}

/// Returns a lock or semaphore in one line: how it is held, by which clients and since when, and how many wait.
pub(crate) fn summary(named: &Named, seen: &Seen) -> String {
    let (holders, queue) = (&seen.contenders.holders, &seen.contenders.queue);
    let how = match (seen.permits, holders.first()) {
        (Some(permits), _) => format!("{} of {permits} permits", holders.len()),
        (None, Some(first)) => first.mode.to_string(),
        (None, None) => "free".to_owned(),
    };
    let held = match &holders[..] {
        [] => how,
        [first, others @ ..] => {
            let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
            format!("{how} by {}{more} for {}", first.client, ago(first.since))
        }
    };
    let longest = queue.iter().map(|waiter| waiter.since).min();
    let waits = longest.map(|since| format!(", {} wait, the longest for {}", queue.len(), ago(since)));
    format!("{named}: {held}{}", waits.unwrap_or_default())
}

/// Returns what a holder has in common with a waiter.
fn common(holder: &Holder) -> Waiter {
    Waiter::new(holder.id, holder.owner, holder.client.clone(), holder.mode, holder.since)
}

fn shown(who: &Waiter, token: Option<Token>, has_mode: bool) -> String {
    let mode = if has_mode { format!("{} ", who.mode) } else { String::new() };
    let token = token.map(|token| format!(", token {}", token.get())).unwrap_or_default();
    format!("{mode}by {} for {}{token}, id {:032x}", who.client, ago(who.since), who.id.as_u128())
}

/// Returns the holders and waiters of a lock or semaphore as JSON.
pub(crate) fn json(named: &Named, seen: &Seen) -> Value {
    let (key, permits, seen) = (&named.key, seen.permits, &seen.contenders);
    let holders = seen.holders.iter().map(|holder| json_of(&common(holder), holder.token));
    let queue = seen.queue.iter().map(|waiter| json_of(waiter, None));
    let (holders, queue): (Vec<_>, Vec<_>) = (holders.collect(), queue.collect());
    let mut value = json!({"kind": named.kind(), "group": key.group(), "name": key.name(), "holders": holders, "queue": queue});
    if let Some(permits) = permits {
        value["permits"] = permits.into();
    }
    value
}

fn json_of(who: &Waiter, token: Option<Token>) -> Value {
    json!({
        "id": format!("{:032x}", who.id.as_u128()),
        "client": who.client.as_str(),
        "owner": who.owner.to_string(),
        "mode": who.mode.as_str(),
        "since": time(who.since),
        // A text: it may be larger than the numbers that readers of JSON keep exactly.
        "token": token.map(|token| token.get().to_string()),
    })
}

/// Returns how long ago that was by the clock of this machine; a moment, if another machine's clock is ahead.
pub(crate) fn ago(since: SystemTime) -> String {
    let ago = SystemTime::now().duration_since(since).unwrap_or_default();
    // Of more than a second the rest says nothing.
    let ago = if ago.as_secs() > 0 {
        Duration::from_secs(ago.as_secs())
    } else {
        Duration::from_millis(ago.as_millis() as u64)
    };
    format_duration(ago).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_not_printed() {
        assert_eq!(printable("a\u{1b}[2Jb ü\u{202e}"), "a\\u{1b}[2Jb ü\\u{202e}");
        assert_eq!("\u{7f}ü".chars().map(in_json).collect::<String>(), "\\u007fü");
    }

    /// A store may be away for days, and what is said is in the log of a service.
    #[test]
    fn that_the_store_is_away_is_said_once_a_minute() {
        let begun = Instant::now();
        let said = ("refused".to_owned(), begun);
        assert!(is_news(None, "refused", begun) && is_news(Some(&said), "no answer", begun));
        assert!(!is_news(Some(&said), "refused", begun + REMINDS / 2));
        assert!(is_news(Some(&said), "refused", begun + REMINDS));
    }

    #[test]
    fn times_that_no_clock_shows_are_shown_all_the_same() {
        assert_eq!(time(SystemTime::UNIX_EPOCH - Duration::from_secs(5)), "1970-01-01T00:00:00.000Z");
        assert_eq!(time(SystemTime::UNIX_EPOCH + Duration::from_secs(LAST * 2)), "9999-12-31T23:59:59.000Z");
    }
}
