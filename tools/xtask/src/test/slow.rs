//! Notices tests that are slow, while they run: libtest warns of them, but what a program prints is shown when others have ended.

use std::mem;

#[derive(Debug, Default)]
pub(crate) struct Slow {
    unfinished_line: Vec<u8>,
}

impl Slow {
    /// Reads along, and tells the name of each test that libtest warns about. Libtest does so once, and not if it runs one test at a time.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut tell: impl FnMut(&str)) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.unfinished_line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = mem::take(&mut self.unfinished_line);
                if let Some((name, _)) = String::from_utf8_lossy(&line).split_once(WARNING) {
                    tell(name.trim_start_matches("test "));
                }
            }
        }
    }
}

/// What libtest says after the name of a test that has run for a minute.
pub(super) const WARNING: &str = " has been running for over ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_told_however_the_output_is_cut() {
        let printed =
            b"test a ... ok\ntest held::b has been running for over 60 seconds\ntest held::b ... ok\n";
        for chunk in [1, 7, 4096] {
            let (mut slow, mut told) = (Slow::default(), Vec::new());
            printed.chunks(chunk).for_each(|bytes| slow.feed(bytes, |name| told.push(name.to_owned())));
            assert_eq!(told, ["held::b"]);
        }
    }
}
