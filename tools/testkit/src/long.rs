//! How much a test does: what takes half a minute in the short run takes many in the long one.

/// Set by `cargo xtask test --long`.
const VARIABLE: &str = "YLOCK_LONG";

/// Returns `long` under `cargo xtask test --long`, otherwise `short`.
pub fn short_or_long<T>(short: T, long: T) -> T {
    if std::env::var_os(VARIABLE).is_some() { long } else { short }
}
