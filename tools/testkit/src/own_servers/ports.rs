//! Ports for the servers of tests.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The ports of servers that tests start. Linux gives those from 32 768 on to outgoing connections, and a server cannot listen on a port that such a
/// connection has got between the choice of the port and the start of the server, or between two starts.
const OF_TESTS: Range<u16> = 18_000..32_000;
/// Those of servers that stay when the process ends which has chosen their ports, not all of which are listened on all the time.
#[allow(dead_code, reason = "for xtask")]
pub(crate) const OF_XTASK: Range<u16> = 15_000..18_000;

/// Those that this process has chosen, until it ends: no other process chooses a port whose UDP side is taken. The servers of tests have no use
/// for that side.
static CHOSEN: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());

/// Returns a port of this address that no server listens on, and that no other call returns, in any process, while this one lives.
///
/// # Panics
/// If there is no such address, or no port left.
#[allow(dead_code, reason = "for tests")]
pub fn free_port(ip: &str) -> u16 {
    free_port_of(OF_TESTS, ip)
}

pub(crate) fn free_port_of(range: Range<u16>, ip: &str) -> u16 {
    let ip: IpAddr = ip.parse().expect("an address");
    let count = range.end - range.start;
    // Anywhere: processes that begin at one place would try each other's ports first.
    let first = RandomState::new().build_hasher().finish() % u64::from(count);
    let first = u16::try_from(first).expect("less than the count");
    let mut ports = (0..count).map(|step| range.start + (first + step) % count);
    ports.find(|port| take(ip, *port)).expect("a port")
}

/// Takes a port if no process has it.
fn take(ip: IpAddr, port: u16) -> bool {
    let Ok(chosen) = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)) else { return false };
    let is_free = TcpListener::bind((ip, port)).is_ok();
    if is_free {
        CHOSEN.lock().unwrap_or_else(PoisonError::into_inner).push(chosen);
    }
    is_free
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_port_is_chosen_twice_nor_given_to_a_connection() {
        let ports: Vec<_> = (0..100).map(|_| free_port("127.0.0.1")).collect();
        assert_eq!(ports.iter().collect::<HashSet<_>>().len(), ports.len());
        assert!(ports.iter().all(|port| OF_TESTS.contains(port)));
        // As for another process.
        assert!(!ports.iter().any(|port| take(Ipv4Addr::LOCALHOST.into(), *port)));
    }

    #[test]
    fn a_port_on_which_a_server_listens_is_not_free() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert!(!take(Ipv4Addr::LOCALHOST.into(), server.local_addr().unwrap().port()));
    }
}
