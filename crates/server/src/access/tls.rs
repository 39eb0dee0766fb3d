//! Certificates and keys from files.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use hoistway_config::{TlsConfig, read_text};

/// Why certificates or keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}: cannot read the {what}: {source}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The kind of the file: "certificate", "key", "client authority".
        what: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file has an invalid content.
    #[error("{}: not a valid {what}: {problem}", path.display())]
    Wrong {
        /// The path of the file.
        path: PathBuf,
        /// The kind of the file.
        what: &'static str,
        /// The fault, and the content that is expected.
        problem: String,
    },
    /// The certificate and the key are valid but do not belong together.
    #[error("{} and {} do not match: {problem}", certificate.display(), key.display())]
    Mismatch {
        /// The path of the certificate.
        certificate: PathBuf,
        /// The path of the key.
        key: PathBuf,
        /// The error of the TLS library.
        problem: String,
    },
}

/// The TLS configuration of the server, read from files.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The configuration for new connections.
    pub server: Arc<ServerConfig>,
    /// Warnings about the files.
    pub warnings: Vec<String>,
}

/// Reads certificates and key, and builds the configuration for TLS 1.2 and 1.3.
///
/// # Errors
/// [`TlsError`], which names the file.
pub fn tls_server(config: &TlsConfig) -> Result<TlsFiles, TlsError> {
    let certificates = certificates(&config.certificate, "certificate")?;
    let key = key(&config.key)?;
    let provider = Arc::new(ring::default_provider());
    let mismatch = |error: rustls::Error| TlsError::Mismatch {
        certificate: config.certificate.clone(),
        key: config.key.clone(),
        problem: error.to_string(),
    };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(mismatch)?;
    let builder = match &config.client_authority {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(authorities(path)?), provider).build();
            let verifier = verifier.map_err(|error| wrong(path, AUTHORITY, error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let server = builder.with_single_cert(certificates, key).map_err(mismatch)?;
    Ok(TlsFiles { server: Arc::new(server), warnings: readable_by_others(&config.key).into_iter().collect() })
}

/// The name of the client authority in errors.
const AUTHORITY: &str = "client authority";

/// Reads all certificates of a file.
fn certificates(path: &Path, what: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(path, what)?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let certificates = read.map_err(|error| wrong(path, what, error.to_string()))?;
    if certificates.is_empty() {
        return Err(wrong(path, what, "no -----BEGIN CERTIFICATE----- found".into()));
    }
    Ok(certificates)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let text = read(path, "key")?;
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound if text.contains("BEGIN ENCRYPTED PRIVATE KEY") => {
            wrong(path, "key", "it is encrypted with a password: store it without one".into())
        }
        rustls::pki_types::pem::Error::NoItemsFound => {
            wrong(path, "key", "no -----BEGIN PRIVATE KEY----- (or RSA, or EC) found".into())
        }
        error => wrong(path, "key", error.to_string()),
    })
}

fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, AUTHORITY)? {
        roots.add(certificate).map_err(|error| wrong(path, AUTHORITY, error.to_string()))?;
    }
    Ok(roots)
}

fn read(path: &Path, what: &'static str) -> Result<String, TlsError> {
    read_text(path).map_err(|source| TlsError::Read { path: path.to_owned(), what, source })
}

fn wrong(path: &Path, what: &'static str, problem: String) -> TlsError {
    TlsError::Wrong { path: path.to_owned(), what, problem }
}

/// Returns a warning if users beside the owner and the group of a key can read it.
fn readable_by_others(path: &Path) -> Option<String> {
    let mode = fs::metadata(path).ok()?.mode() & 0o777;
    let text =
        || format!("{}: all users of this machine can read the key (mode {mode:04o}): chmod o-r", path.display());
    (mode & 0o004 != 0).then(text)
}
