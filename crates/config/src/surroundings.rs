//! The machine as a configuration meets it: files that it names, the folder for sockets.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// The longest file that is read as a configuration or a drive's profile: 1 MiB.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// What a configuration asks of the machine while it is checked. Nothing is changed by it.
pub trait Surroundings {
    /// The text of a file.
    ///
    /// # Errors
    /// What the system says.
    fn read(&self, path: &Path) -> io::Result<String>;

    /// The size of a file or block device in bytes.
    ///
    /// # Errors
    /// When it is not there, or neither of the two.
    fn bytes(&self, path: &Path) -> io::Result<u64>;

    /// The same path for the same file.
    fn identity(&self, path: &Path) -> PathBuf;

    /// Where sockets are made for which no path was told.
    fn socket_folder(&self) -> PathBuf;
}

/// The real one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine;

impl Surroundings for Machine {
    fn read(&self, path: &Path) -> io::Result<String> {
        text_of(path)
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

    fn socket_folder(&self) -> PathBuf {
        let user = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
        user.unwrap_or_else(|| PathBuf::from("/run"))
    }
}

/// The text of a regular file of at most [`FILE_BYTES_MAX`].
///
/// # Errors
/// What the system says, and a file that is none, too long, or not UTF-8.
pub fn text_of(path: &Path) -> io::Result<String> {
    let wrong = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
    // A pipe would be waited for; it is told by its kind, before it is opened.
    if !fs::metadata(path)?.is_file() {
        return Err(wrong("it is no regular file"));
    }
    let mut text = String::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong("it is longer than 1 MiB"));
    }
    Ok(text)
}
