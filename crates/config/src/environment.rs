//! The host as seen by the check of a configuration: the files that it names, and the directory for
//! sockets.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// The largest size in bytes of a configuration or a drive profile: 1 MiB.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// The properties of the host that the check of a configuration queries. No method changes
/// anything.
pub trait Environment {
    /// Returns the text of a file.
    ///
    /// # Errors
    /// The error of the system call.
    fn read(&self, path: &Path) -> io::Result<String>;

    /// Returns the size of a file or block device in bytes.
    ///
    /// # Errors
    /// The file is missing, or is neither a regular file nor a block device.
    fn bytes(&self, path: &Path) -> io::Result<u64>;

    /// Returns a canonical path: the same for all paths of one file.
    fn identity(&self, path: &Path) -> PathBuf;

    /// Returns the directory of sockets without a configured path.
    fn socket_directory(&self) -> PathBuf;
}

/// The host that the process runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostEnvironment;

impl Environment for HostEnvironment {
    fn read(&self, path: &Path) -> io::Result<String> {
        read_text(path)
    }

    fn bytes(&self, path: &Path) -> io::Result<u64> {
        let kind = fs::metadata(path)?.file_type();
        if kind.is_block_device() {
            return File::open(path)?.seek(SeekFrom::End(0));
        }
        if !kind.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is neither a file nor a block device"));
        }
        Ok(fs::metadata(path)?.len())
    }

    fn identity(&self, path: &Path) -> PathBuf {
        fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
    }

    fn socket_directory(&self) -> PathBuf {
        let user = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
        user.unwrap_or_else(|| PathBuf::from("/run"))
    }
}

/// Reads a regular file of at most [`FILE_BYTES_MAX`] bytes.
///
/// # Errors
/// The error of the system call; also a file that is not regular, too long, or not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let wrong = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
    // The kind is checked before the open, which would block on a pipe.
    let kind = fs::metadata(path)?.file_type();
    if !kind.is_file() {
        let what = match kind {
            _ if kind.is_dir() => "a directory",
            _ if kind.is_fifo() => "a pipe",
            _ if kind.is_socket() => "a socket",
            _ => "a device",
        };
        return Err(wrong(&format!("it is {what}, and a regular file is needed")));
    }
    let mut text = String::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong("it is longer than 1 MiB"));
    }
    Ok(text)
}
