//! Faults of certificates and of TLS handshakes, in words that say what would be right.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use rustls::{AlertDescription, CertificateError, Error, OtherError};
use x509_cert::Certificate;
use x509_cert::certificate::Version;
use x509_cert::der::{DateTime, Decode as _};

/// The text of the TLS library for a certificate of another version than 3.
const WRONG_VERSION: &str = "UnsupportedCertVersion";

/// Returns why TLS cannot use a certificate, and what would be right; `None` without a fault. A
/// certificate that cannot be parsed is left to the TLS library.
pub(crate) fn fault_of(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let version = match certificate.tbs_certificate().version() {
        Version::V1 => 1,
        Version::V2 => 2,
        Version::V3 => return None,
    };
    Some(format!("it is an X.509 version {version} certificate, {VERSION_NEEDED}"))
}

/// The end of the warning about a certificate of an old version, with the remedy.
const VERSION_NEEDED: &str = "and TLS needs version 3: issue it again with extensions, as with `openssl x509 -req -extfile FILE`, where FILE names the server (subjectAltName=DNS:...)";

/// Returns a warning if a certificate is not valid at `now`, with the effect on clients.
pub(crate) fn validity_warning(certificate: &CertificateDer<'_>, now: SystemTime) -> Option<String> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let validity = certificate.tbs_certificate().validity();
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let shown = time_text(now);
    if now > validity.not_after.to_unix_duration() {
        let end = validity.not_after.to_date_time();
        return Some(format!("expired at {end} (it is {shown})"));
    }
    if now < validity.not_before.to_unix_duration() {
        let start = validity.not_before.to_date_time();
        return Some(format!("is not valid before {start} (it is {shown} by the clock of this machine)"));
    }
    None
}

/// Returns an error of the TLS library as text for the log.
pub fn tls_error_text(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(fault) => certificate_error_text(fault),
        Error::NoCertificatesPresented => {
            "the client presented no certificate, which `client_authority` requires".to_owned()
        }
        Error::AlertReceived(alert) => match refusal_of(*alert) {
            Some(why) => format!("the client refused the server's certificate: {why}"),
            None => error.to_string(),
        },
        _ => error.to_string(),
    }
}

fn certificate_error_text(fault: &CertificateError) -> String {
    match fault {
        CertificateError::ExpiredContext { time, not_after } => {
            let (end, now) = (unix_text(not_after.as_secs()), unix_text(time.as_secs()));
            format!("the client's certificate expired at {end} (it is {now}): it has to be renewed")
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            let (start, now) = (unix_text(not_before.as_secs()), unix_text(time.as_secs()));
            format!(
                "the client's certificate is not valid before {start} (it is {now} by the clock of this machine): check both clocks"
            )
        }
        CertificateError::UnknownIssuer => {
            "the client's certificate was issued by none of the authorities in `client_authority`".to_owned()
        }
        CertificateError::BadSignature => {
            "the client's certificate was not signed by the authority in `client_authority` whose name it has"
                .to_owned()
        }
        CertificateError::Other(OtherError(other)) if other.to_string() == WRONG_VERSION => {
            format!("the client's certificate is an X.509 version 1 certificate, {VERSION_NEEDED}")
        }
        other => format!("the client's certificate is invalid: {other}"),
    }
}

/// Returns the reason of a client that ends the handshake because of the server's certificate.
fn refusal_of(alert: AlertDescription) -> Option<&'static str> {
    match alert {
        AlertDescription::CertificateExpired => Some("it has expired, or is not valid yet, by the client's clock"),
        AlertDescription::UnknownCA => Some("it does not know the authority that issued it"),
        AlertDescription::BadCertificate => Some("it is invalid, or is for another name"),
        AlertDescription::UnsupportedCertificate => Some("it is not for servers"),
        AlertDescription::CertificateRevoked => Some("it was revoked"),
        AlertDescription::CertificateUnknown => Some("no further reason"),
        _ => None,
    }
}

fn unix_text(seconds: u64) -> String {
    time_text(Duration::from_secs(seconds))
}

/// Formats a time since 1970: `2026-01-31T12:00:00Z`.
fn time_text(since_1970: Duration) -> String {
    // The type has whole seconds up to the year 9999.
    let seconds = Duration::from_secs(since_1970.as_secs());
    DateTime::from_unix_duration(seconds)
        .map_or_else(|_| format!("{} s after 1970", seconds.as_secs()), |at| at.to_string())
}
