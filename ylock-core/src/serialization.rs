//! The serialized form of owners and tokens: as they print.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::owner::Owner;
use crate::token::Token;

impl Serialize for Owner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Owner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Writes digits in a text where people may read it: tokens are larger than 2^53, and a program that takes the numbers of JSON for floating
/// point would round them, so that a former holder's token could pass for a later holder's. Writes the number itself in binary formats.
impl Serialize for Token {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_i64(self.get())
        }
    }
}

/// Reads digits in a text, and the number itself.
impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return i64::deserialize(deserializer).map(Self::from_number);
        }
        deserializer.deserialize_any(Number).map(Self::from_number)
    }
}

struct Number;

impl Visitor<'_> for Number {
    type Value = i64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token: a whole number, or its digits as a text")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<i64, E> {
        text.parse().map_err(|_| de::Error::invalid_value(de::Unexpected::Str(text), &self))
    }

    fn visit_i64<E>(self, number: i64) -> Result<i64, E> {
        Ok(number)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<i64, E> {
        number.try_into().map_err(|_| de::Error::invalid_value(de::Unexpected::Unsigned(number), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::{MAX_HAND_OVERS, StoreToken};

    #[test]
    fn an_owner_survives_being_written() {
        let owner = Owner::new();
        let json = serde_json::to_string(&owner).unwrap();
        assert_eq!(json, format!("\"{owner}\""));
        assert_eq!(serde_json::from_str::<Owner>(&json).unwrap(), owner);
        assert!(
            serde_json::from_str::<Owner>("\"me\"")
                .unwrap_err()
                .to_string()
                .contains("32 hexadecimal digits")
        );
    }

    #[test]
    fn a_token_survives_being_written_to_the_last_digit() {
        let largest = Token::local(StoreToken::new(StoreToken::MAX).unwrap(), MAX_HAND_OVERS);
        for token in [largest, Token::from(StoreToken::LOWEST), Token::from_number(-1)] {
            let json = serde_json::to_string(&token).unwrap();
            assert_eq!(json, format!("\"{token}\""));
            assert_eq!(serde_json::from_str::<Token>(&json).unwrap(), token);
            assert_eq!(serde_json::from_str::<Token>(&token.to_string()).unwrap(), token, "as a number");
        }
        for wrong in ["\"x\"", "18446744073709551615", "1.5"] {
            assert!(serde_json::from_str::<Token>(wrong).is_err(), "{wrong}");
        }
    }
}
