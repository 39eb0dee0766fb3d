//! Reading a recording from a file.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::csv::parse_any;
use super::{Record, RecordingError};

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reasons for which a recording cannot be read from a file.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The operating system cannot read the file.
    #[error("{}: cannot read the trace", path.display())]
    Read {
        /// The path as given.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file is not UTF-8 text, or its gzip stream is damaged.
    #[error("{}: the trace is not text", path.display())]
    NotText {
        /// The path as given.
        path: PathBuf,
        /// The decoding error.
        source: std::io::Error,
    },
    /// A line of the file is not a request.
    #[error(transparent)]
    Line(#[from] RecordingError),
}

/// Reads a recording in either format, as text or compressed with gzip.
///
/// # Errors
/// [`LoadError`] if the file cannot be read, is not text, or has a line that is not a request.
pub fn load(path: &Path) -> Result<Vec<Record>, LoadError> {
    let bytes = fs::read(path).map_err(|source| LoadError::Read { path: path.to_path_buf(), source })?;
    let mut text = String::new();
    let read = if bytes.starts_with(&GZIP) {
        MultiGzDecoder::new(bytes.as_slice()).read_to_string(&mut text)
    } else {
        bytes.as_slice().read_to_string(&mut text)
    };
    read.map_err(|source| LoadError::NotText { path: path.to_path_buf(), source })?;
    Ok(parse_any(&text, &path.display().to_string())?)
}
