//! Creates a certificate authority for one start of one node. The key of the authority is forgotten at once.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose, SanType,
};

/// Certificates and keys, in PEM.
#[derive(Debug)]
pub(crate) struct Certificates {
    pub(crate) ca: String,
    /// Key, certificate and CA in one file: what Cassandra calls a keystore.
    pub(crate) node: String,
}

pub(crate) fn make(address: Ipv4Addr) -> Result<Certificates> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "ylock test CA");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "ylock test node");
    params.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(address))];
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &ca)?;
    let node = [key.serialize_pem(), certificate.pem(), ca.pem()].concat();
    Ok(Certificates { ca: ca.pem(), node })
}
