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
    let longest_inside = PAGE - HEADER;
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
}

/// A process that is killed has made the first of its writes, or none.
#[test]
fn a_text_without_its_header_is_not_there_yet() {
    let file = file();
    for (round, text) in ["one", "two", "three"].into_iter().enumerate() {
        let slots = Slots::read(&file).unwrap().0;
        let slot = slots.newest.map_or(0, |(slot, _)| 1 - slot);
        write_at(&file, b"killed in the middle of this", (slot * PAGE + HEADER) as u64).unwrap();
        assert_eq!(text_of(&file), ["", "one", "two"][round]);
        replace(&file, text);
        assert_eq!(text_of(&file), text);
    }
}

#[test]
fn a_long_text_without_its_header_is_not_there_yet() {
    let file = file();
    replace(&file, &"a".repeat(10_000));
    replace(&file, &"b".repeat(10_000));
    write_at(&file, &[b'c'; 20_000], FAR[0]).unwrap();
    assert_eq!(text_of(&file), "b".repeat(10_000));
}

#[test]
fn a_byte_that_is_changed_is_noticed_wherever_it_counts() {
    let file = file();
    replace(&file, "the first text");
    replace(&file, "the second text");
    let whole = bytes_of(&file);
    let of_first_header = 0..HEADER;
    let of_second = PAGE..whole.len();
    for at in of_first_header.chain(of_second) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x11;
        assert!(matches!(Slots::read(with_bytes(&bytes)), Err(Failed::Damaged(_))), "{at}");
    }
}

#[test]
fn a_file_that_is_cut_off_is_damaged_and_never_an_older_text() {
    let file = file();
    replace(&file, "the first text");
    replace(&file, "the second text");
    let whole = bytes_of(&file);
    for length in PAGE + 1..whole.len() {
        assert!(matches!(Slots::read(with_bytes(&whole[..length])), Err(Failed::Damaged(_))), "{length}");
    }
    for length in 1..HEADER + "the first text".len() {
        assert!(matches!(Slots::read(with_bytes(&whole[..length])), Err(Failed::Damaged(_))), "{length}");
    }
}

#[test]
fn the_same_slot_is_written_where_there_is_no_room_for_the_other() {
    let file = file();
    replace(&file, "before");
    let slots = Slots::read(&file).unwrap().0;
    let (slot, old) = slots.newest.unwrap();
    let text = "after, and longer";
    let header =
        Header { sequence: old.sequence + 1, length: text.len(), checksum: crc32fast::hash(text.as_bytes()) };
    header.write_at_once(&file, slot, text).unwrap();
    assert_eq!(text_of(&file), text);
    replace(&file, "next");
    assert_eq!(text_of(&file), "next");
}
