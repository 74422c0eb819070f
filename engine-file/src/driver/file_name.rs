//! The name of a key's file. No two keys have one, whatever their texts are: group and name are escaped and joined by a character that both
//! lack then.

use ylock_core::Key;
use ylock_core::url::percent_decoded;

use super::open::NEW;
use crate::client_id::ClientId;

/// The most bytes of one part of a path, below what file systems allow (255).
const MAX_PART_BYTES: usize = 240;
/// Between group and name.
const JOINED: u8 = b'=';
/// At the end of a part that another one follows, and at the beginning of that one: so no part is `.` or `..`, and no folder has the name of a
/// file.
const GOES_ON: u8 = b'+';

/// Returns whether this engine may have given this name to something in `locks` or `clients`. So it is not one that another program is likely to use.
pub(super) fn may_be_own(name: &[u8], is_folder: bool) -> bool {
    let Ok(name) = str::from_utf8(name) else { return false };
    if is_folder {
        return is_folder_of_keys(name) || name.strip_suffix(NEW).is_some_and(is_number_of_process);
    }
    name.contains(char::from(JOINED))
        || name.starts_with(char::from(GOES_ON))
        || name.ends_with(char::from(GOES_ON))
        || is_pipe(name.as_bytes())
}

/// Returns whether this is the name of a client's pipe, or of one that is not complete.
pub(super) fn is_pipe(name: &[u8]) -> bool {
    let Ok(name) = str::from_utf8(name) else { return false };
    let name = name.strip_suffix(NEW).unwrap_or(name);
    name.parse::<ClientId>().is_ok_and(|client| client.to_string() == name)
}

/// Returns whether a folder of this name may be part of the name of a key's file.
pub(super) fn is_folder_of_keys(name: &str) -> bool {
    name.ends_with(char::from(GOES_ON))
}

/// The number of a process, and how many folders it had made.
fn is_number_of_process(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.split_once('-').is_some_and(|(process, count)| is_number(process) && is_number(count))
}

/// Which of the two files of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shelf {
    /// That of its lock.
    Locks,
    /// That of the last run of its job.
    Runs,
}

impl Shelf {
    /// Returns the name of the folder in which files of this kind are.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Locks => super::layout::LOCKS,
            Self::Runs => super::layout::RUNS,
        }
    }
}

/// The path of a file of a key below the folder of its shelf. It has folders only where group and name are long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileName {
    path: String,
    pub(super) shelf: Shelf,
}

impl FileName {
    pub(crate) fn of(key: &Key, shelf: Shelf) -> Self {
        let mut whole = Vec::with_capacity(key.group().len() + key.name().len() + 1);
        escape(key.group(), &mut whole);
        whole.push(JOINED);
        escape(key.name(), &mut whole);
        let path = if whole.len() <= MAX_PART_BYTES { whole } else { in_parts(&whole) };
        // Escaped: ASCII only.
        Self { path: String::from_utf8(path).unwrap_or_default(), shelf }
    }

    /// Returns the name of a file that was found.
    pub(super) fn stored(path: String, shelf: Shelf) -> Self {
        Self { path, shelf }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.path
    }

    /// Returns the key that the file belongs to; nothing if it is a file of something else, which another program has put there.
    pub(crate) fn key(&self) -> Option<Key> {
        let between = [GOES_ON, b'/', GOES_ON].map(char::from);
        let whole = self.path.replace(&String::from_iter(between), "");
        let (group, name) = whole.split_once(char::from(JOINED))?;
        let key = Key::new(percent_decoded(group)?, percent_decoded(name)?).ok()?;
        // What is escaped in another way is the name of no key.
        (Self::of(&key, self.shelf).path == self.path).then_some(key)
    }

    /// Returns the names of the folders that it is in, from the outermost to the innermost, and its own name there.
    pub(super) fn parts(&self) -> (impl Iterator<Item = &str>, &str) {
        let (folders, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        (folders.split('/').filter(|folder| !folder.is_empty()), name)
    }
}

fn escape(text: &str, into: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => into.push(byte),
            _ => into.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]),
        }
    }
}

fn in_parts(whole: &[u8]) -> Vec<u8> {
    let parts: Vec<_> = whole.chunks(MAX_PART_BYTES).collect();
    parts.join(&[GOES_ON, b'/', GOES_ON][..])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn name(group: &str, name: &str) -> FileName {
        FileName::of(&Key::new(group, name).unwrap(), Shelf::Locks)
    }

    #[test]
    fn a_usual_key_can_be_read() {
        assert_eq!(name("users", "alice").as_str(), "users=alice");
        assert_eq!(name("files", "/srv/a b.txt").as_str(), "files=%2Fsrv%2Fa%20b.txt");
        assert_eq!(name("..", ".").as_str(), "..=.");
        assert_eq!(name("users", "alice").parts().0.count(), 0);
    }

    #[test]
    fn no_two_keys_have_one_file() {
        let texts = ["a", "=", "a=", "=a", "%3D", "a b", "a%20b", "+", "/", "ä", "A", "."];
        let all: HashSet<_> = texts
            .iter()
            .flat_map(|group| texts.iter().map(|of| name(group, of).as_str().to_owned()))
            .collect();
        assert_eq!(all.len(), texts.len() * texts.len());
    }

    #[test]
    fn a_file_tells_its_key() {
        let texts = ["a", "=", "a=b", "%3D", "%", "%2", " ", "\n", "+/+", "+", "/", "..", "ä", "🔒"];
        let long = texts.map(|text| text.repeat(256 / text.len()));
        let texts: Vec<&str> = texts.into_iter().chain(long.iter().map(String::as_str)).collect();
        for (group, of) in texts.iter().flat_map(|group| texts.iter().map(move |of| (group, of))) {
            let key = Key::new(*group, *of).unwrap();
            assert_eq!(FileName::of(&key, Shelf::Locks).key(), Some(key));
        }
    }

    #[test]
    fn a_file_of_something_else_has_no_key() {
        for path in [
            "", "=", "a", "a=", "=a", "a=%", "a=%4", "a=%zz", "a=%+4", "a=%ff", "a=%41", "a=%C3", "a=b~",
            "a/b=c",
        ] {
            assert_eq!(FileName::stored(path.to_owned(), Shelf::Locks).key(), None, "{path}");
        }
    }

    #[test]
    fn a_long_key_is_in_folders_whose_names_no_file_has() {
        let (group, long) = ("g".repeat(256), "/".repeat(1024));
        let longest = name(&group, &long);
        let parts: Vec<_> = longest.as_str().split('/').collect();
        assert!(parts.iter().all(|part| part.len() <= 255 && *part != "." && *part != ".."), "{parts:?}");
        let (file, folders) = parts.split_last().unwrap();
        assert!(folders.iter().all(|folder| folder.ends_with('+')) && !file.ends_with('+'));
        assert!(longest.parts().0.eq(folders.iter().copied()) && longest.parts().1 == *file);
        assert!(longest.as_str().len() < 4096);
        // One that ends where the other goes on.
        let whole = name("g", &"x".repeat(MAX_PART_BYTES - 2));
        assert_eq!((whole.as_str().len(), whole.parts().0.count()), (MAX_PART_BYTES, 0));
        assert_eq!(name("g", &"x".repeat(MAX_PART_BYTES - 1)).parts().0.count(), 1);
    }
}
