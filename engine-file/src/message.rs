//! What clients tell each other's waiters.

use ylock_core::StoreToken;
use ylock_core::engine::AcquisitionId;
use ylock_core::environment::Moment;

/// The bytes of one message. So short a message is written as a whole or not at all, and a pipe has room for a whole number of them.
pub(crate) const MESSAGE: usize = 32;
/// The bit of a message's second number that says whether the lock is contended. Tokens are smaller.
const CONTENDED: u64 = 1 << 63;

/// What a waiter is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) waiter: AcquisitionId,
    /// How it was let in; nothing if it is to look.
    pub(crate) let_in: Option<LetIn>,
}

/// How a waiter was let in by the client that made room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LetIn {
    pub(crate) token: StoreToken,
    /// From when the lease counts. All clients of a folder go by one clock.
    pub(crate) sent: Moment,
    pub(crate) contended: bool,
}

impl Message {
    pub(crate) fn to_bytes(self) -> [u8; MESSAGE] {
        let (token, sent) = self.let_in.map_or((0, 0), |let_in| {
            let contended = if let_in.contended { CONTENDED } else { 0 };
            (let_in.token.get() | contended, let_in.sent.as_nanos())
        });
        let mut bytes = [0; MESSAGE];
        bytes[..16].copy_from_slice(&self.waiter.as_u128().to_be_bytes());
        bytes[16..24].copy_from_slice(&token.to_be_bytes());
        bytes[24..].copy_from_slice(&sent.to_be_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; MESSAGE]) -> Self {
        let (waiter, rest) = bytes.split_at(16);
        let (token, sent) = rest.split_at(8);
        let waiter = waiter.iter().fold(0, |number, byte| number << 8 | u128::from(*byte));
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let (token, sent) = (number(token), Moment::from_nanos(number(sent)));
        let let_in = StoreToken::new(token & !CONTENDED).map(|store_token| LetIn {
            token: store_token,
            sent,
            contended: token & CONTENDED != 0,
        });
        Self { waiter: AcquisitionId::from_u128(waiter), let_in }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_back() {
        let waiter = AcquisitionId::from_u128(0x0123_4567_89ab_cdef_0011_2233_4455_6677);
        let (token, sent) = (StoreToken::new(StoreToken::MAX).unwrap(), Moment::from_nanos(u64::MAX - 1));
        let let_in = |contended| Some(LetIn { token, sent, contended });
        for let_in in [None, let_in(true), let_in(false)] {
            let message = Message { waiter, let_in };
            assert_eq!(Message::from_bytes(&message.to_bytes()), message);
        }
    }
}
