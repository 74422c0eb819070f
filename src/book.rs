//! The pages of `docs/`: their examples are compiled and run as those of the documentation are.

#[doc = include_str!("../docs/choosing.md")]
mod choosing {}

#[doc = include_str!("../docs/guide.md")]
mod guide {}

#[doc = include_str!("../docs/options.md")]
mod options {}

#[doc = include_str!("../docs/patterns.md")]
mod patterns {}

#[doc = include_str!("../docs/operating.md")]
mod operating {}

#[doc = include_str!("../docs/moving.md")]
mod moving {}
