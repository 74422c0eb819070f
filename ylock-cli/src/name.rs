//! The names of locks and semaphores, typed as they are printed: `group/name` and `semaphore:group/name`.

use std::fmt;
use std::str::FromStr;

use ylock::engine::{AcquisitionId, Inspection};
use ylock::{Key, Listed, Ylock};

/// How the name of a semaphore begins.
const SEMAPHORE: &str = "semaphore:";

/// A lock or a semaphore that was named. The first slash ends the group; the name may have more of them. In a group a slash is written as `%2F`, a percent
/// sign as `%25`, and `%3A` for the colon of one that begins like the name of a semaphore.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Named {
    pub(crate) key: Key,
    pub(crate) is_semaphore: bool,
}

/// What the store has shown of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The holders of a lock, or of permits; and the waiters.
    pub(crate) contenders: Inspection,
    /// How many permits a semaphore has, while clients use it.
    pub(crate) permits: Option<u32>,
}

impl Named {
    /// Returns what a listing names.
    pub(crate) fn listed(listed: Listed) -> (Self, ylock::Result<Seen>) {
        let Listed { key, permits, seen, is_semaphore, .. } = listed;
        (Self { key, is_semaphore }, seen.map(|contenders| Seen { contenders, permits }))
    }

    pub(crate) async fn inspect(&self, ylock: &Ylock) -> ylock::Result<Seen> {
        let (group, name) = (self.key.group(), self.key.name());
        if !self.is_semaphore {
            return Ok(Seen { contenders: ylock.inspect(group, name).await?, permits: None });
        }
        let seen = ylock.inspect_semaphore(group, name).await?;
        let mut contenders = Inspection::default();
        (contenders.holders, contenders.queue) = (seen.holders, seen.queue);
        Ok(Seen { contenders, permits: seen.permits })
    }

    /// Takes it away from all holders, and returns how many these were.
    pub(crate) async fn revoke(&self, ylock: &Ylock) -> ylock::Result<usize> {
        let (group, name) = (self.key.group(), self.key.name());
        if self.is_semaphore {
            ylock.revoke_semaphore(group, name).await
        } else {
            ylock.revoke(group, name).await
        }
    }

    /// Takes it away from these holders, of which the user knows, and from no other: it may have another one by now. Returns how many still held it.
    pub(crate) async fn revoke_from(&self, ylock: &Ylock, holders: &[AcquisitionId]) -> ylock::Result<usize> {
        let (group, name) = (self.key.group(), self.key.name());
        if self.is_semaphore {
            return ylock.revoke_permits(group, name, holders).await;
        }
        let mut count = 0;
        for id in holders {
            count += usize::from(ylock.revoke_one(group, name, *id).await?);
        }
        Ok(count)
    }

    /// Returns what it is, in a word.
    pub(crate) fn kind(&self) -> &'static str {
        if self.is_semaphore { "semaphore" } else { "lock" }
    }
}

/// Reads a group as it is printed.
pub(crate) fn group(text: &str) -> String {
    // The percent sign last: of `%252F` only that one was written otherwise.
    text.replace("%2F", "/").replace("%3A", ":").replace("%25", "%")
}

/// Reads a group that is an argument of its own.
pub(crate) fn group_argument(text: &str) -> Result<String, String> {
    Ok(group(text))
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let of_semaphore = text.strip_prefix(SEMAPHORE);
        let (group, name) = of_semaphore
            .unwrap_or(text)
            .split_once('/')
            .ok_or("a lock has a group and a name, as in users/alice")?;
        let key = Key::new(self::group(group), name).map_err(|error| error.to_string())?;
        Ok(Self { key, is_semaphore: of_semaphore.is_some() })
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut group = self.key.group().replace('%', "%25").replace('/', "%2F");
        if group.starts_with(SEMAPHORE) {
            group = group.replacen(':', "%3A", 1);
        }
        let kind = if self.is_semaphore { SEMAPHORE } else { "" };
        write!(f, "{kind}{group}/{}", self.key.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_slash_ends_the_group() {
        let named: Named = "files/etc/motd".parse().unwrap();
        assert_eq!((named.key.group(), named.key.name()), ("files", "etc/motd"));
        for wrong in ["alice", "/alice", "users/", "", "semaphore:alice"] {
            assert!(wrong.parse::<Named>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_printed_can_be_typed() {
        for group in ["users", "a/b", "50%", "%2F", "%25", "%3A", "semaphore:a/b", "semaphore:", "a:b"] {
            for is_semaphore in [false, true] {
                let named = Named { key: Key::new(group, "x/%2F").unwrap(), is_semaphore };
                assert_eq!(named.to_string().parse(), Ok(named.clone()), "{named}");
            }
        }
        let printed = |text: &str| text.parse::<Named>().unwrap().to_string();
        assert_eq!(printed("semaphore:jobs/render"), "semaphore:jobs/render");
        assert_eq!(printed("50%/x"), "50%25/x");
    }
}
