//! The keys of the locks that are there: the children of one bucket after the other.

use futures_util::future::try_join_all;
use ylock_core::engine::KeyPage;
use ylock_core::{Key, Result};

use super::place::{self, Place};
use super::session::Session;
use super::store::{Fault, to_error};

/// The number of locks on a page, of which those with long names are read one by one.
const SIZE: usize = 100;
/// The most buckets that are listed for a page, where few locks are in each.
const MOST_BUCKETS: usize = 16;

/// How far a listing is: what a page says is next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Position {
    bucket: u8,
    /// The last lock of the bucket that a page has had, in the order of the names of nodes; empty if there was none.
    last: String,
}

/// A lock's node: its bucket, and its name in it.
type Node = (u8, String);

/// Returns a page of the keys of the locks that are there.
pub(crate) async fn keys(session: &Session, group: Option<&str>, after: Option<&str>) -> Result<KeyPage> {
    let begin = match after {
        Some(next) => Position::read(next).ok_or_else(KeyPage::wrong)?,
        None => Position::default(),
    };
    let listed = list(session, &begin).await.map_err(to_error)?;
    let (nodes, next) = page_of(listed, &begin, group);
    let keys = try_join_all(nodes.iter().map(|node| read(session, node))).await.map_err(to_error)?;
    // A node whose name is a hash shows its group only now.
    let keys = keys.into_iter().flatten().filter(|key| group.is_none_or(|group| key.group() == group));
    Ok(KeyPage::new(keys.collect(), next.map(|next| next.write())))
}

/// Lists the bucket of the position, and as many of those that follow as fill about a page: locks are spread evenly, so the first bucket
/// tells how many there are in the others.
async fn list(session: &Session, begin: &Position) -> std::result::Result<Vec<Vec<String>>, Fault> {
    let bucket = |number| Place::of_bucket(&session.base, number);
    // A `sync` may miss what another client was granted just before. The page may also follow one
    // that another client had.
    let first = session.list_after_all(&bucket(begin.bucket)).await?;
    let more = (SIZE / first.len().max(1)).min(MOST_BUCKETS - 1);
    // A session never sees less than it has seen: these are not older than the first list.
    let others: Vec<_> = (begin.bucket..=u8::MAX).skip(1).take(more).map(bucket).collect();
    let others = try_join_all(others.iter().map(|place| session.list(place))).await?;
    Ok([first].into_iter().chain(others).collect())
}

/// Returns the nodes of a page, from the names in the buckets that were listed, and the position after it.
fn page_of(listed: Vec<Vec<String>>, begin: &Position, group: Option<&str>) -> (Vec<Node>, Option<Position>) {
    let after = usize::from(begin.bucket) + listed.len();
    let buckets = (begin.bucket..=u8::MAX).zip(listed);
    let mut nodes: Vec<Node> =
        buckets.flat_map(|(bucket, names)| names.into_iter().map(move |name| (bucket, name))).collect();
    nodes.retain(|(bucket, name)| {
        (*bucket > begin.bucket || *name > begin.last) && place::may_be_of(name, group)
    });
    nodes.sort_unstable();
    if nodes.len() <= SIZE {
        let next = u8::try_from(after).ok().map(|bucket| Position { bucket, last: String::new() });
        return (nodes, next);
    }
    nodes.truncate(SIZE);
    let next = nodes.last().cloned().map(|(bucket, last)| Position { bucket, last });
    (nodes, next)
}

/// Returns the key of a lock's node; `None` if the node is gone, or is none of a lock.
async fn read(session: &Session, (bucket, name): &Node) -> std::result::Result<Option<Key>, Fault> {
    let path = Place::of_bucket(&session.base, *bucket).child(name);
    let key = if place::is_hash(name) {
        match session.read(&path).await {
            Ok(node) => place::read_exact(&node.content),
            Err(Fault::NoNode) => None,
            Err(fault) => return Err(fault),
        }
    } else {
        place::read_name(name)
    };
    Ok(key.filter(|key| Place::of(&session.base, key).lock == path))
}

impl Position {
    fn write(&self) -> String {
        format!("{:02x} {}", self.bucket, self.last)
    }

    fn read(text: &str) -> Option<Self> {
        let (bucket, last) = text.split_once(' ')?;
        let position = Self { bucket: u8::from_str_radix(bucket, 16).ok()?, last: last.to_owned() };
        (position.write() == text).then_some(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(of: &str, count: usize) -> Vec<String> {
        // Not in order, as servers list them.
        (0..count).rev().map(|number| format!("{of}:{number:04}")).collect()
    }

    fn at(bucket: u8, last: &str) -> Position {
        Position { bucket, last: last.to_owned() }
    }

    #[test]
    fn a_position_that_was_written_is_read() {
        for position in [at(0, ""), at(255, ""), at(0x24, "users:alice"), at(0x5c, "#ad9e")] {
            assert_eq!(Position::read(&position.write()), Some(position));
        }
        for wrong in ["", "24", "2 ", "+4 ", "24x ", "100 ", "FF ", " 24 ", "users:alice"] {
            assert_eq!(Position::read(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn pages_have_each_node_once() {
        let buckets = [names("a", 3 * SIZE), names("b", 0), names("c", 1), names("d", SIZE)];
        let (mut seen, mut position) = (Vec::new(), Some(at(252, "")));
        while let Some(begin) = position {
            let listed = buckets[usize::from(begin.bucket) - 252..].to_vec();
            let (nodes, next) = page_of(listed, &begin, None);
            assert!(nodes.len() <= SIZE);
            seen.extend(nodes);
            position = next;
        }
        let mut all = buckets.concat();
        all.sort_unstable();
        assert_eq!(seen.into_iter().map(|(_, name)| name).collect::<Vec<_>>(), all);
    }

    #[test]
    fn a_group_has_its_nodes_and_those_that_must_be_read() {
        let listed =
            vec![vec!["users:a".to_owned(), "users%3A:a".to_owned(), "#00".to_owned(), "u:a".to_owned()]];
        let (nodes, next) = page_of(listed, &at(7, ""), Some("users"));
        assert_eq!(nodes, [(7, "#00".to_owned()), (7, "users:a".to_owned())]);
        assert_eq!(next, Some(at(8, "")));
    }
}
