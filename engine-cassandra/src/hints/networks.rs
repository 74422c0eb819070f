//! Addresses, as options have them, and where to datagrams may be sent.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use ylock_core::options::OptionValue;

/// The ports below this are those of the system's services: no client receives hints there.
pub(crate) const FIRST_PORT: u16 = 1024;

/// An address and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub(crate) SocketAddr);

/// Networks: `10.0.0.0/8,fd00::/8`. A single address is a network of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(Vec<Network>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    prefix: u32,
}

/// Returns whether a datagram to this address reaches one program, and none of the system's services.
pub(crate) fn is_unicast(to: SocketAddr) -> bool {
    let ip = to.ip().to_canonical();
    let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    !(ip.is_unspecified() || ip.is_multicast() || is_broadcast || to.port() < FIRST_PORT)
}

/// The loopback networks, and those that are not routed on the Internet: private ones (RFC 1918, RFC 4193), and what providers share (RFC 6598).
const LOOPBACK: &str = "127.0.0.0/8,::1";
const PRIVATE: &str = "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,fc00::/7";

impl Networks {
    /// Returns the networks in which a client with this address tells others, and is told, without being asked to: the loopback networks, or the private
    /// ones, of its family. Nothing for any other address.
    pub(crate) fn around(ip: IpAddr) -> Option<Self> {
        let ip = ip.to_canonical();
        let kinds = [LOOPBACK, PRIVATE].map(|text| {
            let networks = text.split(',').filter_map(Network::read);
            Self(networks.filter(|network| network.address.is_ipv4() == ip.is_ipv4()).collect())
        });
        kinds.into_iter().find(|networks| networks.contain(ip))
    }

    /// Returns whether this address is in one of the networks.
    pub(crate) fn contain(&self, ip: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(ip.to_canonical()))
    }
}

impl Network {
    fn contains(self, ip: IpAddr) -> bool {
        match (self.address, ip) {
            (IpAddr::V4(own), IpAddr::V4(ip)) => {
                (own.to_bits() ^ ip.to_bits()).leading_zeros() >= self.prefix
            }
            (IpAddr::V6(own), IpAddr::V6(ip)) => {
                (own.to_bits() ^ ip.to_bits()).leading_zeros() >= self.prefix
            }
            _ => false,
        }
    }

    fn read(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(ip, len)| (ip, Some(len)));
        let address: IpAddr = address.parse().ok()?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix: u32 = prefix.map_or(Some(longest), |prefix| prefix.parse().ok())?;
        if prefix > longest {
            return None;
        }
        match address.to_canonical() {
            // What is compared with it is of version 4.
            IpAddr::V4(mapped) if address.is_ipv6() => {
                Some(Self { address: mapped.into(), prefix: prefix.checked_sub(96)? })
            }
            _ => Some(Self { address, prefix }),
        }
    }
}

impl OptionValue for Address {
    fn from_text(text: &str) -> Result<Self, String> {
        let no_address = |_| "not an IP address and a port, such as 10.1.2.3:7000 or [fd00::1]:0".to_owned();
        text.parse().map(Self).map_err(no_address)
    }
}

impl OptionValue for Networks {
    fn from_text(text: &str) -> Result<Self, String> {
        let networks: Option<Vec<_>> = text.split(',').map(Network::read).collect();
        networks.map(Self).ok_or_else(|| "not networks such as 10.0.0.0/8,192.168.1.7".to_owned())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_go_to_single_programs_only() {
        for (to, goes) in [
            ("10.1.2.3:1024", true),
            ("127.0.0.1:40000", true),
            ("[fd00::1]:7000", true),
            ("10.1.2.3:1023", false),
            ("10.1.2.3:53", false),
            ("0.0.0.0:7000", false),
            ("[::]:7000", false),
            ("255.255.255.255:7000", false),
            ("224.0.0.1:7000", false),
            ("239.255.255.250:1900", false),
            ("[ff02::1]:7000", false),
            ("[::ffff:224.0.0.1]:7000", false),
            ("[::ffff:255.255.255.255]:7000", false),
        ] {
            assert_eq!(is_unicast(to.parse().unwrap()), goes, "{to}");
        }
    }

    #[test]
    fn networks_contain_what_begins_like_them() {
        let networks = Networks::from_text("10.0.0.0/8,192.168.1.7,fd00::/9").unwrap();
        for (ip, is_in) in [
            ("10.255.0.1", true),
            ("::ffff:10.255.0.1", true),
            ("11.0.0.1", false),
            ("192.168.1.7", true),
            ("192.168.1.6", false),
            ("fd7f::1", true),
            ("fd80::1", false),
        ] {
            assert_eq!(networks.contain(ip.parse().unwrap()), is_in, "{ip}");
        }
        assert!(Networks::from_text("0.0.0.0/0").unwrap().contain("1.2.3.4".parse().unwrap()));
        assert!(!Networks::from_text("0.0.0.0/0").unwrap().contain("::1".parse().unwrap()));
    }

    #[test]
    fn around_an_address_is_its_machine_or_what_is_private() {
        let around = |ip: &str| Networks::around(ip.parse().unwrap());
        assert!(around("::1").unwrap().contain("::1".parse().unwrap()));
        assert!(around("fd00::1").unwrap().contain("fd7f::1".parse().unwrap()));
        assert_eq!(around("::ffff:10.1.2.3"), around("192.168.0.1"));
        let (machine, private) = (around("127.0.0.1").unwrap(), around("192.168.0.1").unwrap());
        for (ip, is_private) in [
            ("127.0.0.2", false),
            ("172.16.0.1", true),
            ("172.32.0.1", false),
            ("100.64.0.1", true),
            ("169.254.169.254", false),
            ("8.8.8.8", false),
            ("::1", false),
            ("fe80::1", false),
            ("2001:db8::1", false),
        ] {
            let ip: IpAddr = ip.parse().unwrap();
            assert_eq!(private.contain(ip), is_private, "{ip}");
            assert_eq!(machine.contain(ip), ip.is_loopback() && ip.is_ipv4(), "{ip}");
            assert_eq!(Networks::around(ip).is_some(), is_private || ip.is_loopback(), "{ip}");
        }
    }

    #[test]
    fn a_mapped_network_is_one_of_version_4() {
        let networks = Networks::from_text("::ffff:10.0.0.0/104,::ffff:192.168.1.7").unwrap();
        assert_eq!(networks, Networks::from_text("10.0.0.0/8,192.168.1.7").unwrap());
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in [
            "",
            "10.0.0.0/33",
            "fd00::/129",
            "host",
            "10.0.0.0/8,",
            "10.0.0.0/-1",
            "10.0.0.0/x",
            "::ffff:10.0.0.0/95",
        ] {
            assert!(Networks::from_text(text).is_err(), "{text}");
        }
    }
}
