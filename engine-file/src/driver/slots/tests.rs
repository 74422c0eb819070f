//! A file whose text is replaced, and which is damaged in each of its bytes.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, memfd_create};

use super::*;

fn file() -> OwnedFd {
    memfd_create("slots", MemfdFlags::CLOEXEC).unwrap()
}

fn bytes_of(file: &OwnedFd) -> Vec<u8> {
    let (mut file, mut bytes) = (File::from(file.try_clone().unwrap()), Vec::new());
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

fn with_bytes(bytes: &[u8]) -> OwnedFd {
    let damaged = file();
    File::from(damaged.try_clone().unwrap()).write_all(bytes).unwrap();
    damaged
}

/// Replaces the text of a file.
fn replace(file: &OwnedFd, text: &str) {
    Slots::read(file).unwrap().0.write(file, text).unwrap();
}

fn text_of(file: &OwnedFd) -> String {
    Slots::read(file).unwrap().1
}

#[test]
fn the_last_text_is_read_short_or_long() {
    let file = file();
    assert_eq!(text_of(&file), "");
    let longest_inside = SLOT - HEADER;
    for length in [0, 1, 100, longest_inside, longest_inside + 1, 50_000, 3, 70_000, 5, 0, 9] {
        let text = "ä".repeat(length / 2) + &"x".repeat(length % 2);
        replace(&file, &text);
        assert_eq!(text_of(&file), text, "{length}");
    }
}

#[test]
fn a_text_that_is_too_long_is_refused_and_the_last_one_stays() {
    let file = file();
    replace(&file, "before");
    let slots = Slots::read(&file).unwrap().0;
    assert!(matches!(slots.write(&file, &"x".repeat(MAX_BYTES + 1)), Err(Failed::TooLong)));
    assert_eq!(text_of(&file), "before");
    let longest = "x".repeat(MAX_BYTES);
    replace(&file, &longest);
    assert!(text_of(&file) == longest);
}

#[test]
fn what_the_system_writes_in_parts_is_written_as_a_whole() {
    let mut written = [0; 14];
    let write = |part: &[u8], at: u64| {
        let (part, at) = (&part[..part.len().min(3)], usize::try_from(at).unwrap());
        written[at..at + part.len()].copy_from_slice(part);
        Ok(part.len())
    };
    in_parts(b"0123456789", 2, write).unwrap();
    assert_eq!(&written, b"\0\x000123456789\0\0");
    assert!(matches!(in_parts(b"0", 0, |_, _| Ok(0)), Err(Failed::System(Errno::NOSPC))));
}

/// A process that is killed has written the first bytes of a text and its header, however many.
#[test]
fn a_text_counts_from_the_last_byte_of_its_header_on() {
    let (before, after) = ("the text before", "another text, which is longer");
    for rounds in [0, 1, 2] {
        for length in 0..after.len() + HEADER {
            let file = file();
            (0..rounds).for_each(|_| replace(&file, before));
            let whole = with_bytes(&bytes_of(&file));
            replace(&whole, after);
            // The slot that was written, byte by byte.
            let (old, new) = (bytes_of(&file), bytes_of(&whole));
            let slot = rounds % 2;
            let start = (slot + 1) * SLOT - HEADER - after.len();
            let mut torn = old.clone();
            torn.resize(new.len(), 0);
            torn[start..start + length].copy_from_slice(&new[start..start + length]);
            let read = Slots::read(with_bytes(&torn));
            let is_header_begun = length > after.len();
            match read {
                // What is missing may be what was there before.
                Ok((_, text)) if torn == new => assert_eq!(text, after),
                Ok((_, text)) => assert_eq!(text, if rounds == 0 { "" } else { before }, "{rounds} {length}"),
                // A call that writes so few bytes is not interrupted; and if it were, none would be let in.
                Err(Failed::Damaged(_)) => assert!(is_header_begun, "{rounds} {length}"),
                Err(other) => panic!("{rounds} {length}: {other:?}"),
            }
        }
    }
}

/// Whatever the lengths of the two texts are: the older one may be the valid one still.
#[test]
fn long_texts_are_apart_and_not_far_away() {
    let lengths = (0..1 << 16).step_by(97).chain([2048, 2049, 4096, 4097, MAX_BYTES]);
    let rooms: Vec<_> = lengths.map(|length| (length as u64, far(0, length), far(1, length))).collect();
    for (length, first, second) in &rooms {
        assert!(*first >= 2 * SLOT as u64 && second + length <= 8 * (*length).max(SLOT as u64), "{length}");
        for (other, of_first, of_second) in &rooms {
            assert!(first + length <= *of_second || of_second + other <= *first, "{length} {other}");
            assert!(second + length <= *of_first || of_first + other <= *second, "{length} {other}");
        }
    }
}

/// A user of the group may write a header that asks for more memory than there is.
#[test]
fn a_header_of_a_text_that_is_too_long_is_damaged() {
    let file = file();
    let header = Header { sequence: 1, length: MAX_BYTES + 1, checksum: 0 };
    write_at(&file, header.to_text().as_bytes(), (SLOT - HEADER) as u64).unwrap();
    assert!(matches!(Slots::read(&file), Err(Failed::Damaged("a header is not one that was written"))));
}

#[test]
fn a_long_text_without_its_header_is_not_there_yet() {
    let file = file();
    replace(&file, &"a".repeat(10_000));
    replace(&file, &"b".repeat(10_000));
    write_at(&file, &[b'c'; 10_000], far(0, 10_000)).unwrap();
    assert_eq!(text_of(&file), "b".repeat(10_000));
}

#[test]
fn a_byte_that_is_changed_is_noticed_wherever_it_counts() {
    let file = file();
    replace(&file, "the first text");
    replace(&file, "the second text");
    let whole = bytes_of(&file);
    assert_eq!(whole.len(), 2 * SLOT);
    let of_first_header = SLOT - HEADER..SLOT;
    let of_second = 2 * SLOT - HEADER - "the second text".len()..2 * SLOT;
    for at in of_first_header.chain(of_second) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x11;
        assert!(matches!(Slots::read(with_bytes(&bytes)), Err(Failed::Damaged(_))), "{at}");
    }
}

#[test]
fn a_file_that_is_cut_off_in_a_header_is_damaged() {
    let file = file();
    replace(&file, "the first text");
    replace(&file, "the second text");
    let whole = bytes_of(&file);
    for end in [SLOT, 2 * SLOT] {
        for length in end - HEADER + 1..end {
            assert!(matches!(Slots::read(with_bytes(&whole[..length])), Err(Failed::Damaged(_))), "{length}");
        }
    }
}
