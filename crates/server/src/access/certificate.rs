//! The names in a client's certificate.

use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

/// The names by which rules can know the owner of a certificate: the subject's common names, then
/// DNS names and e-mail addresses of the alternative names. None if it cannot be read; whoever
/// verified it has read it.
pub fn names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else { return Vec::new() };
    let common = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    let mut names: Vec<String> = common.map(str::to_owned).collect();
    if let Ok(Some(alternative)) = certificate.subject_alternative_name() {
        names.extend(alternative.value.general_names.iter().filter_map(|name| match name {
            GeneralName::DNSName(name) | GeneralName::RFC822Name(name) => Some((*name).to_owned()),
            _ => None,
        }));
    }
    names
}
