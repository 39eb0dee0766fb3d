//! The names in a client's certificate.

use rustls::pki_types::CertificateDer;
use x509_cert::Certificate;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::der::Decode as _;
use x509_cert::der::asn1::{Ia5StringRef, ObjectIdentifier, PrintableStringRef, TeletexStringRef, Utf8StringRef};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// The attribute type of a common name (RFC 4519, section 2.3).
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// Returns the names by which rules identify the owner of a certificate: the subject's common
/// names, then DNS names and e-mail addresses of the alternative names. Returns none if the
/// certificate cannot be parsed, which its verification rules out.
pub fn names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok(certificate) = Certificate::from_der(certificate) else { return Vec::new() };
    let certificate = certificate.tbs_certificate();
    let attributes = certificate.subject().iter().filter(|attribute| attribute.oid == COMMON_NAME);
    let mut names: Vec<String> = attributes.filter_map(text).collect();
    if let Ok(Some((_, alternative))) = certificate.get_extension::<SubjectAltName>() {
        names.extend(alternative.0.iter().filter_map(|name| match name {
            GeneralName::DnsName(name) | GeneralName::Rfc822Name(name) => Some(name.as_str().to_owned()),
            _ => None,
        }));
    }
    names
}

/// Returns the text of an attribute, whichever of the usual string types it has.
fn text(attribute: &AttributeTypeAndValue) -> Option<String> {
    let value = &attribute.value;
    if let Ok(text) = value.decode_as::<Utf8StringRef<'_>>() {
        return Some(text.as_str().to_owned());
    }
    if let Ok(text) = value.decode_as::<PrintableStringRef<'_>>() {
        return Some(text.as_str().to_owned());
    }
    if let Ok(text) = value.decode_as::<Ia5StringRef<'_>>() {
        return Some(text.as_str().to_owned());
    }
    value.decode_as::<TeletexStringRef<'_>>().ok().map(|text| text.as_str().to_owned())
}
