//! The reading of option values from text.

use std::path::PathBuf;
use std::time::Duration;

use super::invalid;
use crate::error::Result;
use crate::url::Secret;

/// The message for a text that is no number.
const NO_NUMBER: &str = "not a whole number within its limits";

/// A value that an option can have, as it is written in a URL, a configuration file or the environment.
pub trait OptionValue: Sized {
    /// Reads the value.
    ///
    /// # Errors
    /// A text that says what is allowed instead, to stand behind `option name=value: `.
    fn from_text(text: &str) -> Result<Self, String>;
}

/// Reads the value of an option.
///
/// # Errors
/// [`Config`](crate::ErrorKind::Config) that names the option, the value and what is allowed.
pub fn read<V: OptionValue>(name: &str, text: &str) -> Result<V> {
    V::from_text(text).map_err(|why| invalid(format!("option {name}={text}: {why}")))
}

/// Reads a default. It is a literal of the source, and [`define_options!`](crate::define_options) reads it whenever the options are made, so
/// that a bad one fails in the first test.
#[doc(hidden)]
pub fn preset<V: OptionValue>(text: &str) -> V {
    V::from_text(text).unwrap_or_else(|why| panic!("the default {text:?}: {why}"))
}

/// Defines the words of an option whose value is one of a few words.
///
/// # Examples
/// ```
/// #[derive(Debug, PartialEq)]
/// pub enum Acl { Open, Creator }
/// ylock_core::option_words!(Acl: Open = "open", Creator = "creator");
///
/// assert_eq!(ylock_core::options::read::<Acl>("acl", "open").unwrap(), Acl::Open);
/// assert_eq!(Acl::Creator.to_string(), "creator");
/// ```
#[macro_export]
macro_rules! option_words {
    ($Enum:ident: $($Variant:ident = $word:literal),+ $(,)?) => {
        impl $crate::options::OptionValue for $Enum {
            fn from_text(text: &str) -> ::std::result::Result<Self, String> {
                match text {
                    $($word => Ok(Self::$Variant),)+
                    _ => Err($crate::options::one_of(&[$($word),+])),
                }
            }
        }

        impl ::std::fmt::Display for $Enum {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(match self { $(Self::$Variant => $word,)+ })
            }
        }
    };
}

/// Returns the message for a text that is none of these words.
#[doc(hidden)]
pub fn one_of(words: &[&str]) -> String {
    let (last, others) = words.split_last().expect("an enum has variants");
    format!("must be {} or {last}", others.join(", "))
}

impl<V: OptionValue> OptionValue for Option<V> {
    fn from_text(text: &str) -> Result<Self, String> {
        V::from_text(text).map(Some)
    }
}

impl OptionValue for Duration {
    fn from_text(text: &str) -> Result<Self, String> {
        humantime::parse_duration(text).map_err(|_| "not a duration such as 10s or 500ms".to_owned())
    }
}

impl OptionValue for u32 {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| NO_NUMBER.to_owned())
    }
}

impl OptionValue for i64 {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| NO_NUMBER.to_owned())
    }
}

impl OptionValue for bool {
    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(one_of(&["on", "off"])),
        }
    }
}

impl OptionValue for String {
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl OptionValue for PathBuf {
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(text.into())
    }
}

impl OptionValue for Secret {
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(Self::new(text))
    }
}
