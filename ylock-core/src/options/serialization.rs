//! Options in configuration files: read from what the file says, written as they are read.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::longest::Longest;
use super::{Fairness, Options, read};
use crate::url::unknown_option;

/// The keys of a configuration file with their values, each value as the text that a URL would have.
///
/// A key that is there twice is an error: formats such as JSON allow that, and one of the two would count, without a word.
#[derive(Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "it is the texts and nothing else")]
pub struct Values(pub BTreeMap<String, String>);

/// Shows the keys only: a value may be a password.
impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;

        impl<'de> Visitor<'de> for Keys {
            type Value = Values;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("options by their names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values, A::Error> {
                let mut values = BTreeMap::new();
                while let Some((name, Scalar(value))) = map.next_entry::<String, Scalar>()? {
                    if values.contains_key(&name) {
                        return Err(de::Error::custom(format!("{name} is given twice")));
                    }
                    values.insert(name, value);
                }
                Ok(Values(values))
            }
        }

        deserializer.deserialize_map(Keys)
    }
}

/// A value of a configuration file: a text as it is, a number in digits, true and false as `on` and `off`.
struct Scalar(String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text such as \"10s\", a whole number, true or false")
            }

            fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar(text.to_owned()))
            }

            fn visit_bool<E>(self, on: bool) -> Result<Scalar, E> {
                Ok(Scalar(if on { "on" } else { "off" }.to_owned()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }
        }

        deserializer.deserialize_any(Text)
    }
}

impl<'de> Deserialize<'de> for Options {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut options = Self::default();
        for (name, value) in Values::deserialize(deserializer)?.0 {
            if !options.set(&name, &value).map_err(de::Error::custom)? {
                let known: Vec<_> = Self::definitions().iter().map(|option| option.name).collect();
                return Err(de::Error::custom(unknown_option(&name, &known)));
            }
        }
        options.check().map_err(de::Error::custom)?;
        Ok(options)
    }
}

/// Writes only the options that were chosen: an option that is left open comes from the layer below also when the text is read again.
impl Serialize for Options {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let duration = |time| humantime::format_duration(time).to_string();
        let longest = |longest: Longest| longest.0.map_or_else(|| "none".to_owned(), duration);
        let texts = [
            ("lease", self.lease.map(duration)),
            ("fairness", self.fairness.map(|fairness| fairness.to_string())),
            ("hand_over", self.hand_over.map(|count| count.to_string())),
            ("hand_over_time", self.hand_over_time.map(duration)),
            ("max_wait", self.max_wait.map(longest)),
            ("max_hold", self.max_hold.map(longest)),
        ];
        serializer.collect_map(texts.into_iter().filter_map(|(name, text)| Some((name, text?))))
    }
}

impl<'de> Deserialize<'de> for Fairness {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        read("fairness", &text).map_err(de::Error::custom)
    }
}

impl Serialize for Fairness {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::options::HandOver;

    fn json(options: &Options) -> String {
        serde_json::to_string(options).unwrap()
    }

    #[test]
    fn options_survive_being_written() {
        let all = Options::default()
            .with_lease(Duration::from_millis(1500))
            .with_fairness(Fairness::Strict)
            .with_hand_over(HandOver::up_to(7, Duration::from_micros(1)))
            .without_max_wait()
            .with_max_hold(Duration::from_secs(90));
        let unbounded = Options::default().without_max_hold();
        for options in
            [all, unbounded, Options::default(), Options::default().with_max_wait(Duration::from_secs(90))]
        {
            assert_eq!(serde_json::from_str::<Options>(&json(&options)).unwrap(), options);
        }
    }

    #[test]
    fn what_is_left_open_is_not_written() {
        assert_eq!(json(&Options::default()), "{}");
        let strict = Options::default().with_fairness(Fairness::Strict);
        assert_eq!(json(&strict), r#"{"fairness":"strict"}"#);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            (r#"{"leese":"10s"}"#, "did you mean \"lease\"?"),
            (r#"{"lease":10}"#, "option lease=10: not a duration"),
            (r#"{"lease":"1ms"}"#, "a lease is between 100ms and 24h"),
            (r#"{"hand_over":-1}"#, "option hand_over=-1"),
            (r#"{"max_hold":"0s"}"#, "max_hold of zero"),
            (r#"{"max_wait":[]}"#, "a text such as"),
            (r#"{"lease":"10s","max_wait":"1s","lease":"20s"}"#, "lease is given twice"),
            (r#"["lease"]"#, "options by their names"),
            (r#"{"fairness":"very"}"#, "fair, strict or unfair"),
        ] {
            let error = serde_json::from_str::<Options>(text).unwrap_err();
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
    }
}
