//! The types that can name a lock.

use std::borrow::Cow;
use std::sync::Arc;

/// A type that can name a lock or its group: texts, and whole numbers, which are written in decimal digits. So `write("7")` and `write(7)`
/// are one lock.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot name a lock",
    note = "texts and whole numbers can; of anything else use its `to_string()`, such as that of a UUID"
)]
pub trait Name {
    /// Returns the name as it is stored.
    fn into_name(self) -> Arc<str>;
}

macro_rules! texts {
    ($($text:ty),*) => { $(
        impl Name for $text {
            fn into_name(self) -> Arc<str> {
                self.into()
            }
        }
    )* };
}

texts!(Arc<str>, Box<str>, Cow<'_, str>, String, &str);

impl Name for &String {
    fn into_name(self) -> Arc<str> {
        self.as_str().into()
    }
}

impl Name for &Arc<str> {
    fn into_name(self) -> Arc<str> {
        Arc::clone(self)
    }
}

macro_rules! numbers {
    ($($number:ty),*) => { $(
        impl Name for $number {
            fn into_name(self) -> Arc<str> {
                self.to_string().into()
            }
        }
    )* };
}

numbers!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize);
