//! Files that appear under their name only when they are complete.
//!
//! The data are written to a temporary file in the same directory, which is synced and renamed at
//! the end.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::NamedTempFile;

/// Longest part of the target's name in the name of the temporary file, in bytes. The rest of the
/// 255 bytes is for dots, random letters and the suffix.
const NAME_BYTES: usize = 200;

/// Creates a temporary file beside `target`, named `.NAME.XXXXXX.partial`. Its mode is 0666 without
/// the umask, as for any new file.
///
/// # Errors
/// The error of the operating system.
pub fn create_beside(target: &Path) -> io::Result<NamedTempFile> {
    let name = target.file_name().ok_or(ErrorKind::InvalidInput)?.as_bytes();
    let mut ends = name.len().min(NAME_BYTES);
    // Do not split a UTF-8 character.
    while ends < name.len() && name[ends] & 0xc0 == 0x80 && ends > 0 {
        ends -= 1;
    }
    let prefix = [b".", &name[..ends], b"."].concat();
    tempfile::Builder::new()
        .prefix(OsStr::from_bytes(&prefix))
        .suffix(".partial")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory_of(target))
}

/// Returns the directory of a file; "." for a bare name.
fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a file's data to the disk, so that a full disk is noticed before the rename.
///
/// # Errors
/// The error of the operating system, unless the file system does not support fsync.
pub fn sync(file: &File) -> io::Result<()> {
    if !file.metadata()?.is_file() {
        return Ok(());
    }
    match file.sync_all() {
        // EINVAL: some file systems do not support fsync.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

/// Reasons why a report cannot be written; the file of this name is unchanged then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportFileError {
    /// The name is empty.
    #[error("--report is empty: it takes the name of a file, as in report.html")]
    Empty,
    /// The path is a directory.
    #[error("{}: the file cannot be written there: it is a folder; name a file in it", path.display())]
    Folder {
        /// The path.
        path: PathBuf,
    },
    /// The path is a device, a pipe or a socket, which a rename would replace.
    #[error("{}: the file cannot be written there: it is no ordinary file", path.display())]
    NotOrdinary {
        /// The path.
        path: PathBuf,
    },
    /// The directory of the file does not exist.
    #[error("{}: the file cannot be written there: there is no folder {}; make it first", path.display(), folder.display())]
    NoFolder {
        /// The path.
        path: PathBuf,
        /// Its directory.
        folder: PathBuf,
    },
    /// No file can be created in the directory.
    #[error("{}: the file cannot be written there: {kind} (folder {})", path.display(), folder.display())]
    Create {
        /// The path.
        path: PathBuf,
        /// Its directory.
        folder: PathBuf,
        /// The kind of the error; its message has the name of the temporary file.
        kind: ErrorKind,
    },
    /// The target of a link cannot be found.
    #[error("{}: the file cannot be written there: {source}", path.display())]
    Link {
        /// The path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The text cannot be written.
    #[error("{}: the file cannot be written: {source}", path.display())]
    Write {
        /// The path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The caller cancelled the write. Files that were complete before stay.
    #[error("interrupted: {} was not written", path.display())]
    Interrupted {
        /// The path.
        path: PathBuf,
    },
}

/// A report or log. The path is checked at the start of a run, so that a run of minutes does not
/// end without a place for its report.
#[derive(Debug)]
pub struct ReportFile {
    path: PathBuf,
}

impl ReportFile {
    /// Checks that a file can be written at `path`.
    ///
    /// # Errors
    /// [`ReportFileError`] if the path is a directory or a device, or if no file can be created in
    /// its directory.
    pub fn new(path: &Path) -> Result<ReportFile, ReportFileError> {
        if path.as_os_str().is_empty() {
            return Err(ReportFileError::Empty);
        }
        let named = path.to_owned();
        let path = match fs::metadata(path) {
            Ok(is) if is.is_dir() => return Err(ReportFileError::Folder { path: named }),
            Ok(is) if !is.is_file() => return Err(ReportFileError::NotOrdinary { path: named }),
            // Replace the target of a link, not the link.
            Ok(_) => fs::canonicalize(path).map_err(|source| ReportFileError::Link { path: named, source })?,
            Err(_) => named,
        };
        let file = ReportFile { path };
        // A trial; the temporary file is removed at once.
        file.temporary()?;
        Ok(file)
    }

    /// Writes the file, unless `cancelled` is true at the end.
    ///
    /// # Errors
    /// [`ReportFileError`]; the previous file is then unchanged.
    pub fn write(&self, text: &str, cancelled: &AtomicBool) -> Result<(), ReportFileError> {
        let failed = |source: io::Error| ReportFileError::Write { path: self.path.clone(), source };
        let mut temporary = self.temporary()?;
        temporary.write_all(text.as_bytes()).map_err(failed)?;
        sync(temporary.as_file()).map_err(failed)?;
        if cancelled.load(Ordering::Relaxed) {
            return Err(ReportFileError::Interrupted { path: self.path.clone() });
        }
        temporary.persist(&self.path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    fn temporary(&self) -> Result<NamedTempFile, ReportFileError> {
        create_beside(&self.path).map_err(|error| {
            let (path, folder) = (self.path.clone(), directory_of(&self.path).to_owned());
            match error.kind() {
                ErrorKind::NotFound => ReportFileError::NoFolder { path, folder },
                kind => ReportFileError::Create { path, folder, kind },
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_appears_complete_and_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        let file = ReportFile::new(&path).unwrap();
        assert!(!path.exists());
        file.write("<html>", &AtomicBool::new(false)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "<html>");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_interrupted_write_leaves_the_old_report() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        fs::write(&path, "old").unwrap();
        let error = ReportFile::new(&path).unwrap().write("new", &AtomicBool::new(true)).unwrap_err();
        assert!(matches!(error, ReportFileError::Interrupted { .. }));
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn directories_devices_and_missing_directories_are_refused_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        assert!(ReportFile::new(folder.path()).unwrap_err().to_string().contains("it is a folder"));
        assert!(ReportFile::new(Path::new("/dev/null")).unwrap_err().to_string().contains("no ordinary file"));
        let nowhere = folder.path().join("not/there.html");
        let message = ReportFile::new(&nowhere).unwrap_err().to_string();
        assert!(message.contains("there.html") && message.contains("there is no folder"), "{message}");
    }
}
