//! The names in a client's certificate.

use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

/// Returns the names by which rules identify the owner of a certificate: the subject's common
/// names, then DNS names and e-mail addresses of the alternative names. Returns none if the
/// certificate cannot be parsed, which its verification rules out.
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
