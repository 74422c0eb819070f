//! The types that can name a lock.

use std::borrow::Cow;
use std::sync::Arc;

/// A type that can name a lock or its group: texts, and whole numbers, which are written in decimal digits. So `write("7")` and `write(7)`
/// are one lock.
///
/// With the Cargo feature `uuid` also a `Uuid`, which is written in lower case and with hyphens, as its `to_string()` writes it.
///
/// # Examples
/// An order is known by a UUID, in this program as a `Uuid` and in another one as a text:
/// ```
/// # #[cfg(feature = "uuid")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
/// # use uuid::{Uuid, uuid};
/// # use ylock::Ylock;
/// let orders = Ylock::in_memory().locks("orders");
/// let order: Uuid = uuid!("67E55044-10B1-426F-9247-BB680E5FE0C8");
///
/// let charging = orders.write(order).await?;
/// assert!(orders.write("67e55044-10b1-426f-9247-bb680e5fe0c8").now().await?.is_none());
/// # drop(charging); Ok(()) }
/// # #[cfg(not(feature = "uuid"))] fn main() {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot name a lock",
    note = "texts and whole numbers can, and a `Uuid` with the Cargo feature `uuid`; of anything else use its `to_string()`"
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

#[cfg(feature = "uuid")]
impl Name for uuid::Uuid {
    fn into_name(self) -> Arc<str> {
        Arc::from(&*self.hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer()))
    }
}

#[cfg(feature = "uuid")]
impl Name for &uuid::Uuid {
    fn into_name(self) -> Arc<str> {
        (*self).into_name()
    }
}

#[cfg(all(test, feature = "uuid"))]
mod tests {
    use uuid::Uuid;

    use super::Name;

    /// A name that depended on how the value was written would be another lock in another program.
    #[test]
    fn a_uuid_has_one_name_however_it_was_written() {
        let name = "67e55044-10b1-426f-9247-bb680e5fe0c8";
        for text in [name, "67E55044-10B1-426F-9247-BB680E5FE0C8", "67e5504410b1426f9247bb680e5fe0c8"] {
            let uuid = Uuid::parse_str(text).unwrap();
            assert_eq!(&*uuid.into_name(), name, "{text}");
            assert_eq!((&uuid).into_name(), uuid.to_string().into_name(), "{text}");
        }
        assert_eq!(&*Uuid::nil().into_name(), "00000000-0000-0000-0000-000000000000");
    }
}
