//! Identities of acquisitions and owners as the server keeps them: in text that is as short as possible, because each lock has several.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const LENGTH: usize = 22;

/// Returns an identity as text, without spaces and never a single dash: both have a meaning in the scripts.
pub(crate) fn text(identity: u128) -> [u8; LENGTH] {
    let mut text = [0; LENGTH];
    URL_SAFE_NO_PAD.encode_slice(identity.to_be_bytes(), &mut text).expect("sixteen bytes fit");
    text
}

/// Reads an identity that [`text`] wrote.
pub(crate) fn read(text: &str) -> Option<u128> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    Some(u128::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        for identity in [0, 1, u128::MAX, 0xfb_ff00_0000_0000] {
            let text = text(identity);
            let text = std::str::from_utf8(&text).unwrap();
            assert!(!text.contains(' '), "{text}");
            assert_eq!(read(text), Some(identity));
        }
        assert_eq!((read("-"), read(""), read("stranger")), (None, None, None));
    }
}
