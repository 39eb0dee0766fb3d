//! Certificates and keys from files.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, InconsistentKeys, RootCertStore, ServerConfig};

use hoistway_config::{RemoteTlsConfig, TlsConfig, read_text};

use crate::validity::{fault_of, validity_warning};

/// Why certificates or keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}: cannot read the {what}: {cause}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The kind of the file: "certificate", "key", "client authority".
        what: &'static str,
        /// The error of the operating system.
        cause: io::Error,
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
    #[error(
        "{} and {} do not match: the key belongs to another certificate; the first certificate of the file has to be the owner's",
        certificate.display(),
        key.display()
    )]
    Mismatch {
        /// The path of the certificate.
        certificate: PathBuf,
        /// The path of the key.
        key: PathBuf,
    },
    /// The name of a server is neither a host name nor an address.
    #[error("{0:?} is no name that a certificate can have: a host name or an IP address is needed")]
    Name(String),
    /// The TLS library refuses its settings.
    #[error("TLS cannot be used: {0}")]
    Library(String),
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
    let certificates = certificates(&config.certificate, CERTIFICATE)?;
    if let Some(problem) = certificates.first().and_then(fault_of) {
        return Err(wrong(&config.certificate, CERTIFICATE, problem));
    }
    let key = key(&config.key)?;
    let mut warnings: Vec<String> = readable_by_others(&config.key).into_iter().collect();
    warnings.extend(validity_warnings(config, &certificates)?);
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Library(error.to_string()))?;
    let builder = match &config.client_authority {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let roots = Arc::new(authorities(path, AUTHORITY)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            let verifier = verifier.map_err(|error| wrong(path, AUTHORITY, error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let pair = (config.certificate.as_path(), config.key.as_path());
    let server = builder.with_single_cert(certificates, key).map_err(|error| pair_error(pair, error))?;
    Ok(TlsFiles { server: Arc::new(server), warnings })
}

/// The TLS configuration of connections to another server, read from files.
#[derive(Clone, Debug)]
pub struct ClientTls {
    /// The configuration for new connections.
    pub client: Arc<ClientConfig>,
    /// The name that the server's certificate must have.
    pub name: ServerName<'static>,
    /// Warnings about the files.
    pub warnings: Vec<String>,
}

/// Reads the authorities, and the client's certificate and key if there are some, and builds the
/// configuration for TLS 1.2 and 1.3. The server's certificate is always verified.
///
/// # Errors
/// [`TlsError`], which names the file.
pub fn tls_client(config: &RemoteTlsConfig) -> Result<ClientTls, TlsError> {
    let roots = authorities(&config.authority, REMOTE_AUTHORITY)?;
    let name = ServerName::try_from(config.host.clone()).map_err(|_| TlsError::Name(config.host.clone()))?;
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Library(error.to_string()))?
        .with_root_certificates(roots);
    let mut warnings = Vec::new();
    let client = match &config.identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key_path)) => {
            let chain = certificates(certificate, CERTIFICATE)?;
            let key = key(key_path)?;
            warnings.extend(readable_by_others(key_path));
            let pair = (certificate.as_path(), key_path.as_path());
            builder.with_client_auth_cert(chain, key).map_err(|error| pair_error(pair, error))?
        }
    };
    Ok(ClientTls { client: Arc::new(client), name, warnings })
}

/// The names of the files in errors.
const CERTIFICATE: &str = "certificate";
const AUTHORITY: &str = "client authority";
const REMOTE_AUTHORITY: &str = "authority of the remote";

/// Returns the error for a certificate and a key that the TLS library refuses.
fn pair_error((certificate, key): (&Path, &Path), error: rustls::Error) -> TlsError {
    match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            TlsError::Mismatch { certificate: certificate.to_owned(), key: key.to_owned() }
        }
        rustls::Error::InvalidCertificate(fault) => wrong(certificate, CERTIFICATE, fault.to_string()),
        other => wrong(key, "key", other.to_string()),
    }
}

/// Returns warnings of certificates that are not valid now. The server starts all the same: its
/// clock may be wrong, and a client that does not verify it can connect.
fn validity_warnings(config: &TlsConfig, own: &[CertificateDer<'_>]) -> Result<Vec<String>, TlsError> {
    let now = SystemTime::now();
    let mut warnings = Vec::new();
    for (index, certificate) in own.iter().enumerate() {
        if let Some(fault) = validity_warning(certificate, now) {
            let (path, number) = (config.certificate.display(), index + 1);
            warnings.push(format!(
                "{path}: certificate {number} of the chain {fault}: clients that verify it refuse the server"
            ));
        }
    }
    let Some(path) = &config.client_authority else { return Ok(warnings) };
    for (index, authority) in certificates(path, AUTHORITY)?.iter().enumerate() {
        if let Some(fault) = validity_warning(authority, now) {
            let (path, number) = (path.display(), index + 1);
            warnings.push(format!(
                "{path}: certificate {number} {fault}: the certificates of clients that it issued are accepted all the same"
            ));
        }
    }
    Ok(warnings)
}

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

fn authorities(path: &Path, what: &'static str) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, what)? {
        roots.add(certificate).map_err(|error| wrong(path, what, error.to_string()))?;
    }
    Ok(roots)
}

fn read(path: &Path, what: &'static str) -> Result<String, TlsError> {
    read_text(path).map_err(|cause| TlsError::Read { path: path.to_owned(), what, cause })
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
