//! Ports for the servers of tests.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Below the ports that systems give to the near end of a connection (Linux from 32 768 on, others from 49 152): a server cannot listen where a
/// connection has come before it, and between the choice and the server's start, or between its end and its next start, one may.
const RANGE: Range<u16> = 15_000..32_000;

/// Those that this process has chosen, until it ends: no other process chooses a port whose UDP side is taken. The servers of tests have no use
/// for that side.
static CHOSEN: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());

/// Returns a port of this address that no server listens on, and that no other call returns, in no process, while this one lives.
///
/// # Panics
/// If there is no such address, or no port left.
pub fn free_port(ip: &str) -> u16 {
    let ip: IpAddr = ip.parse().expect("an address");
    let count = RANGE.end - RANGE.start;
    // Anywhere: processes that begin at one place would try each other's ports first.
    let first = RandomState::new().build_hasher().finish() % u64::from(count);
    let first = u16::try_from(first).expect("less than the count");
    let ports = (0..count).map(|step| RANGE.start + (first + step) % count);
    ports.into_iter().find(|port| take(ip, *port)).expect("a port")
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
        assert!(ports.iter().all(|port| RANGE.contains(port)));
        // As for another process.
        assert!(!ports.iter().any(|port| take(Ipv4Addr::LOCALHOST.into(), *port)));
    }

    #[test]
    fn a_port_on_which_a_server_listens_is_not_free() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert!(!take(Ipv4Addr::LOCALHOST.into(), server.local_addr().unwrap().port()));
    }
}
