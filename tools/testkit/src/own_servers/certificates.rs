//! Certificates for servers that speak TLS.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose, SanType,
};
use ylock_core::options::ClientCertificate;

/// A folder with an authority (`ca.pem`) and a certificate for 127.0.0.1 that it vouches for: `certificate.pem` and `key.pem`, and
/// `server.pem` with all three; and that of a client, see [`of_client`](Self::of_client). Removed when dropped.
#[derive(Debug)]
pub struct Certificates(PathBuf);

impl Certificates {
    /// The name in the certificate of the client.
    pub const CLIENT: &'static str = "app";

    /// Creates certificates with new keys.
    ///
    /// # Panics
    /// If they cannot be written.
    pub fn make() -> Self {
        let folder = std::env::temp_dir().join(format!("ylock-certificates-{}", ylock_core::Owner::new()));
        fs::create_dir_all(&folder).expect("a folder");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("an authority");
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &authority).expect("a certificate");
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, Self::CLIENT);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let client_key = KeyPair::generate().expect("a key");
        let client = params.signed_by(&client_key, &authority).expect("a certificate");
        let (ca, key, certificate) = (authority.pem(), key.serialize_pem(), certificate.pem());
        let server = format!("{key}{certificate}{ca}");
        let certificates = Self(folder);
        for (name, text) in [
            ("ca.pem", ca),
            ("key.pem", key),
            ("certificate.pem", certificate),
            ("server.pem", server),
            ("client.pem", client.pem()),
            ("client-key.pem", client_key.serialize_pem()),
        ] {
            fs::write(certificates.file(name), text).expect("written");
        }
        certificates
    }

    /// Returns the files of a certificate that the authority vouches for, of a client with the name [`CLIENT`](Self::CLIENT).
    pub fn of_client(&self) -> ClientCertificate {
        ClientCertificate { certificate: self.0.join("client.pem"), key: self.0.join("client-key.pem") }
    }

    /// Returns the path of the file of this name.
    pub fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
