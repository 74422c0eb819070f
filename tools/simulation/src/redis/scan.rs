//! The walk over all keys of a server, and the patterns that keys are compared with.

use super::resp::Reply;

/// What a walk is asked for.
#[derive(Debug, Default)]
struct Asked<'a> {
    from: u64,
    pattern: Option<&'a [u8]>,
    count: usize,
    /// True if only hashes are wanted, or keys of any type; there are no others than hashes.
    wants_hashes: bool,
}

/// Returns a page of `keys`, which are those of hashes; `None` if the words are not understood.
///
/// The walk goes by the places of the keys, which the keys themselves decide: so one that is there all the time is told, whichever others come and
/// go between two pages.
pub(super) fn scan<'a>(words: &[Vec<u8>], keys: impl Iterator<Item = &'a Vec<u8>>) -> Option<Reply> {
    let asked = read(words)?;
    let mut ahead: Vec<_> =
        keys.map(|key| (place(key), key)).filter(|(place, _)| *place >= asked.from).collect();
    ahead.sort_unstable();
    // A page ends between two places: with several keys at one place it is longer.
    let last = ahead.get(asked.count.max(1) - 1).map_or(u64::MAX, |(place, _)| *place);
    let next = ahead.iter().map(|(place, _)| *place).find(|place| *place > last);
    let page = ahead.iter().filter(|(place, _)| *place <= last);
    let fits = |key: &[u8]| asked.wants_hashes && asked.pattern.is_none_or(|pattern| fits(pattern, key));
    let page = page.filter(|(_, key)| fits(key)).map(|(_, key)| Reply::Bulk((*key).clone()));
    Some(Reply::Array(vec![Reply::text(next.unwrap_or(0).to_string()), Reply::Array(page.collect())]))
}

fn read(words: &[Vec<u8>]) -> Option<Asked<'_>> {
    let (from, options) = words.split_first()?;
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse().ok();
    let mut asked = Asked { from: number(from)?, count: 10, wants_hashes: true, pattern: None };
    for option in options.chunks(2) {
        let [name, value] = option else { return None };
        match name.to_ascii_uppercase().as_slice() {
            b"MATCH" => asked.pattern = Some(value),
            b"COUNT" => asked.count = usize::try_from(number(value)?).ok()?,
            b"TYPE" => asked.wants_hashes = value.eq_ignore_ascii_case(b"hash"),
            _ => return None,
        }
    }
    Some(asked)
}

/// Returns the place of a key: never zero, where a walk begins and ends.
fn place(key: &[u8]) -> u64 {
    let hash = key
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    (hash >> 16) + 1
}

/// Returns whether a key fits a pattern of Redis.
fn fits(pattern: &[u8], key: &[u8]) -> bool {
    match pattern {
        [] => key.is_empty(),
        [b'*', rest @ ..] => (0..=key.len()).any(|skipped| fits(rest, &key[skipped..])),
        [first, rest @ ..] => {
            let [byte, key @ ..] = key else { return false };
            match (first, rest) {
                (b'?', _) => fits(rest, key),
                (b'[', set) => set_has(set, *byte).is_some_and(|(has, rest)| has && fits(rest, key)),
                (b'\\', [escaped, rest @ ..]) => escaped == byte && fits(rest, key),
                _ => first == byte && fits(rest, key),
            }
        }
    }
}

/// Returns whether a set, of which the bracket has been read, has this byte; and what follows the set. `None` if the set does not end.
fn set_has(set: &[u8], byte: u8) -> Option<(bool, &[u8])> {
    let (is_not, mut set) = match set {
        [b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut has = false;
    loop {
        set = match set {
            [b']', rest @ ..] => return Some((has != is_not, rest)),
            [b'\\', one, rest @ ..] => {
                has |= *one == byte;
                rest
            }
            [from, b'-', to, rest @ ..] => {
                has |= (*from.min(to)..=*from.max(to)).contains(&byte);
                rest
            }
            [one, rest @ ..] => {
                has |= *one == byte;
                rest
            }
            [] => return None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(keys: &[Vec<u8>], count: usize) -> Vec<Vec<u8>> {
        let (mut at, mut all) = (b"0".to_vec(), Vec::new());
        loop {
            let words = [at, b"COUNT".to_vec(), count.to_string().into_bytes()];
            let Some(Reply::Array(page)) = scan(&words, keys.iter()) else { panic!("a page") };
            let [Reply::Bulk(next), Reply::Array(found)] = &page[..] else { panic!("{page:?}") };
            all.extend(found.iter().map(|key| match key {
                Reply::Bulk(key) => key.clone(),
                other => panic!("{other:?}"),
            }));
            at = next.clone();
            if at == b"0" {
                all.sort();
                return all;
            }
        }
    }

    #[test]
    fn a_walk_tells_each_key_once_while_nothing_changes() {
        let keys: Vec<_> = (10..60).map(|number: u32| number.to_string().into_bytes()).collect();
        for count in [1, 7, 49, 50, 51] {
            assert_eq!(walk(&keys, count), keys);
        }
        assert_eq!(walk(&[], 1), Vec::<Vec<u8>>::new());
    }
}
