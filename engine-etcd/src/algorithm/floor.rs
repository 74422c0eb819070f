//! What is added to revisions to make tokens: stored once for all clients of a prefix, with the cluster whose revisions it is for.
//!
//! The revisions of a cluster that is set up anew, or restored, begin with smaller numbers. So the first client of a cluster writes a floor that is
//! larger than the tokens before, by its wall clock, and each later one uses it.
//!
//! The key also says in which version everything below the prefix is kept, because each client reads it before its first lock, and with each of its
//! leases again: a version other than the first stands behind the floor, as in `ff 77 version=2`.

use ylock_core::stored_version::{self, OtherVersion};
use ylock_core::{Error, ErrorKind};

use super::link::Link;
use super::store::{Condition, Entry, Fault, Keys, Look, Put, Step, Transaction};

/// The number of times that the floor is written if each time another client has come between.
const ATTEMPTS: u32 = 8;
/// The version of all that is below the prefix.
const VERSION: &str = "1";

/// What is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stored {
    cluster: u64,
    floor: u64,
}

/// Returns the floor for a cluster; writes it if there is none for this one. What is written is not below `least`, the floor that this client has used.
pub(super) async fn agree(link: &Link, cluster: u64, least: u64) -> Result<u64, Fault> {
    let key = link.names.floor();
    for _ in 0..ATTEMPTS {
        let mut outcome =
            link.transact("floor", Transaction::looking([Look::at(Keys::one(key.clone()))])).await?;
        if outcome.header.cluster != cluster {
            return Err(unavailable("the answers come from different clusters"));
        }
        let seen = outcome.seen(0);
        let stored =
            seen.entries.first().map(|entry| read(entry).map(|stored| (entry, stored))).transpose()?;
        let (condition, floor) = match stored {
            Some((_, stored)) if stored.cluster == cluster => return Ok(stored.floor),
            Some((entry, stored)) => {
                (Condition::ChangedAt(key.clone(), entry.changed), now(link).max(least).max(stored.floor + 1))
            }
            None => (Condition::MadeAt(Keys::one(key.clone()), 0), now(link).max(least)),
        };
        write(link, condition, Stored { cluster, floor }).await?;
    }
    Err(unavailable("other clients kept changing the floor of the tokens"))
}

async fn write(link: &Link, condition: Condition, stored: Stored) -> Result<(), Fault> {
    let value = format!("{:x} {}", stored.cluster, stored.floor).into_bytes();
    let put = Put { key: link.names.floor(), value, lease: Some(0) };
    let transaction = Transaction { when: vec![condition], then: vec![Step::Put(put)], otherwise: vec![] };
    link.transact("floor", transaction).await.map(drop)
}

fn now(link: &Link) -> u64 {
    u64::try_from(link.environment.wall_micros()).unwrap_or(0)
}

fn read(entry: &Entry) -> Result<Stored, Fault> {
    let text = String::from_utf8_lossy(&entry.value);
    if stored_version::named_in(&text) != VERSION {
        return Err(Fault::Refused(other_version(entry, &text)));
    }
    let stored = text.split_once(' ').and_then(|(cluster, floor)| {
        Some(Stored { cluster: u64::from_str_radix(cluster, 16).ok()?, floor: floor.parse().ok()? })
    });
    stored.ok_or_else(|| {
        let key = String::from_utf8_lossy(&entry.key);
        let message = format!("the key {key} has {text:?} in it, and not the floor of the tokens");
        Fault::Refused(Error::new(ErrorKind::Unexpected, message).with_engine(crate::NAME))
    })
}

fn other_version(entry: &Entry, text: &str) -> Error {
    let key = String::from_utf8_lossy(&entry.key);
    let (prefix, _) = key.rsplit_once('/').unwrap_or_default();
    let floor = text.split(" version=").next().unwrap_or_default();
    let other = OtherVersion {
        of: &format!("the prefix {prefix} of etcd"),
        place: "prefix",
        found: stored_version::named_in(text),
        own: VERSION,
        remedy: &format!(
            "delete {prefix}/j/ with all below it, which forgets the last runs of jobs, and put {floor:?} into the key {key}"
        ),
    };
    other.refused(crate::NAME)
}

fn unavailable(message: &str) -> Fault {
    Fault::Unknown(Error::new(ErrorKind::Unavailable, message).with_engine(crate::NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(value: &str) -> Entry {
        Entry { key: b"ylock/floor".to_vec(), value: value.into(), made: 1, changed: 1, lease: 0 }
    }

    #[test]
    fn another_version_is_refused_by_name() {
        for later in ["ff 77 version=2", "whatever it is version=2"] {
            let Err(Fault::Refused(error)) = read(&entry(later)) else { panic!("{later}") };
            assert_eq!(error.kind(), ErrorKind::Config);
            for part in ["prefix ylock of", "version 2", "version 1", "the key ylock/floor"] {
                assert!(error.to_string().contains(part), "{part}: {error}");
            }
        }
    }

    #[test]
    fn a_floor_is_read_and_anything_else_is_an_error() {
        assert_eq!(read(&entry("ff 77")).unwrap(), Stored { cluster: 255, floor: 77 });
        for odd in ["", "77", "xyz 77", "ff -1"] {
            assert!(matches!(read(&entry(odd)), Err(Fault::Refused(_))), "{odd}");
        }
    }
}
