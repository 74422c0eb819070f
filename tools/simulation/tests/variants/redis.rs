//! Mistakes in the scripts of a Redis server.

use ylock_engine_redis::scripts;
use ylock_simulation::{Setting, Subject};

/// Fails unless a seed finds what one text of the scripts breaks in the place of another.
pub(crate) fn must_break(
    of: Subject,
    variant: &str,
    wrong: &str,
    at: u64,
    mistake: (&'static str, &'static str),
) {
    let all = [scripts::ACQUIRE, scripts::RELEASE, scripts::RENEW, scripts::INSPECT, scripts::REVOKE];
    assert!(all.iter().any(|text| text.contains(mistake.0)), "the scripts do not say {:?}", mistake.0);
    let setting = Setting { of, script_mistake: Some(mistake), ..Setting::default() };
    super::must_find(variant, wrong, at, setting);
}
