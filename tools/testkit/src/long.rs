//! How much a test does: what takes half a minute in the short run takes many in the long one.

use std::env;

/// Set by `cargo xtask test --long`.
const LONG: &str = "YLOCK_LONG";
/// Set by `cargo xtask test` without that: a number that chooses which part of the long run the short one takes along.
const PART: &str = "YLOCK_PART";
/// Into how many parts the short runs divide what they leave to the long run.
const PARTS: u64 = 20;

/// Returns `long` under `cargo xtask test --long`, otherwise `short`.
pub fn short_or_long<T>(short: T, long: T) -> T {
    if env::var_os(LONG).is_some() { long } else { short }
}

/// Returns the number of the part of the long run that this short run takes along; nothing in the long run, and in one that `cargo xtask test` has
/// not begun: a test that is called by its name is to run.
///
/// # Panics
/// If what the variable says is no number.
pub(crate) fn part() -> Option<u64> {
    let part = env::var(PART).ok()?;
    Some(part.parse().unwrap_or_else(|_| panic!("{PART}={part}: that is no number")))
}

/// Returns whether what has this name is of this part of the long run.
pub(crate) fn is_of_part(name: &str, part: u64) -> bool {
    // FNV-1a: the same in each build, unlike the hash of the standard library.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) % PARTS == part % PARTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_of_one_part_and_the_parts_are_about_equal() {
        let names: Vec<_> = (0..2_000).map(|number| format!("redis module::case_{number}")).collect();
        let size = |part| names.iter().filter(|name| is_of_part(name, part)).count();
        let sizes: Vec<_> = (0..PARTS).map(size).collect();
        assert_eq!(sizes.iter().sum::<usize>(), names.len());
        assert!(sizes.iter().all(|size| (50..150).contains(size)), "{sizes:?}");
        assert_eq!(size(PARTS + 3), sizes[3]);
    }
}
