//! Hints: datagrams by which clients tell each other to look now (`notify=auto` and `udp`).
//!
//! A hint is never an argument for entering. It carries no state; it may be lost, doubled, late or forged; and without hints everything works
//! as it does with `notify=off`, only later. What may enter is decided by the look that follows, as ever.
//!
//! - `datagram`: the bytes. A key is all that names a receiver: no name of a lock, token or owner is on the wire.
//! - `inbox`: what the hints for one own row ask for, within a `budget`.
//! - `exchange`: which key belongs to which inbox, and the counts.
//! - `networks`: where to datagrams may be sent at all.
//! - `socket`: the [`Carrier`] over UDP. A simulation brings its own.

mod budget;
mod datagram;
mod exchange;
mod inbox;
mod networks;
mod socket;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Weak;

pub use datagram::{Datagram, Hint, Key};
pub(crate) use exchange::Exchange;
pub(crate) use inbox::{Inbox, Waiter};
pub use networks::{Address, Networks};
pub(crate) use networks::{FIRST_PORT, is_unicast};
pub use socket::Socket;

/// Where one acquisition's client can be told something: the address of the client, and the key of the acquisition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// The address at which the client receives datagrams.
    pub address: SocketAddr,
    /// The key: only a client that may read the table knows it.
    pub key: Key,
}

/// Takes datagrams from one client to another. Any of them may be lost.
pub trait Carrier: fmt::Debug + Send + Sync + 'static {
    /// Returns the address at which other clients reach this one.
    fn address(&self) -> SocketAddr;

    /// Sends a datagram without waiting, or loses it.
    fn send(&self, to: SocketAddr, datagram: &Datagram);

    /// Hands what arrives to `receiver` from now on.
    fn deliver_to(&self, receiver: Weak<dyn Receiver>);
}

/// Receives datagrams.
pub trait Receiver: Send + Sync {
    /// Takes a datagram that came from this address: any bytes, from any program.
    fn receive(&self, from: SocketAddr, bytes: &[u8]);
}

/// How many hints a client has sent and received since it was made.
///
/// They say why waiters are slow: if many are missed, or none is received, then a firewall, NAT or an address that other
/// clients do not reach is the first thing to look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HintCounts {
    /// Hints that were sent.
    pub sent: u64,
    /// Hints that were received for an acquisition of this client.
    pub received: u64,
    /// Turns of which no hint told although hints had worked there: found by a waiter's own look, half a second later, or more far behind in the queue.
    pub missed: u64,
    /// Datagrams that were not followed: malformed, with an unknown key, or more than the budget allows.
    pub dropped: u64,
}
