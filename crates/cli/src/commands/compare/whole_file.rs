//! Atomic output files: written beside the destination and renamed, so that the final name is
//! either complete or absent.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow, bail};
use tempfile::{Builder, NamedTempFile};

use crate::failure::Interrupted;

/// The destination of an output file, checked before the run: a run of minutes must not end with an
/// unwritable page.
#[derive(Debug)]
pub struct WholeFile {
    path: PathBuf,
    folder: PathBuf,
}

impl WholeFile {
    /// Checks that a file can be written at this path.
    ///
    /// # Errors
    /// If the path is a folder or a device, or if its folder is not writable.
    pub fn new(path: &Path) -> Result<WholeFile> {
        let shown = path.display();
        if path.as_os_str().is_empty() {
            bail!("--report is empty: it takes the name of a file, as in report.html");
        }
        let path = match fs::metadata(path) {
            Ok(is) if is.is_dir() => {
                bail!("{shown}: the file cannot be written there: it is a folder; name a file in it")
            }
            // A rename would replace the device by a file.
            Ok(is) if !is.is_file() => bail!("{shown}: the file cannot be written there: it is no ordinary file"),
            // The destination of a symbolic link is the linked file.
            Ok(_) => fs::canonicalize(path).with_context(|| format!("{shown}: the file cannot be written there"))?,
            Err(_) => path.to_owned(),
        };
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        let file = WholeFile { path, folder };
        // Creating a temporary file is the proof; the file is removed at once.
        file.temporary()?;
        Ok(file)
    }

    /// Writes the file, unless `cancelled` is true before the rename.
    ///
    /// # Errors
    /// The error of the operating system, or [`Interrupted`]; the file under the final name is
    /// unchanged then.
    pub fn write(&self, text: &str, cancelled: &AtomicBool) -> Result<()> {
        let failed = || format!("{}: the file cannot be written", self.path.display());
        let mut temporary = self.temporary()?;
        temporary.write_all(text.as_bytes()).with_context(failed)?;
        temporary.as_file().sync_all().with_context(failed)?;
        if cancelled.load(Ordering::Relaxed) {
            return Err(Interrupted.into());
        }
        temporary.persist(&self.path).map_err(|error| error.error).with_context(failed)?;
        Ok(())
    }

    fn temporary(&self) -> Result<NamedTempFile> {
        let mut builder = Builder::new();
        builder.prefix(".hoistway-");
        #[cfg(unix)]
        {
            // The usual permissions of new files: the umask applies.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        builder.tempfile_in(&self.folder).map_err(|error| {
            let (path, folder) = (self.path.display(), self.folder.display());
            // The error itself names the temporary file, which is unknown to the user.
            match error.kind() {
                ErrorKind::NotFound => {
                    anyhow!("{path}: the file cannot be written there: there is no folder {folder}; make it first")
                }
                kind => anyhow!("{path}: the file cannot be written there: {kind} (folder {folder})"),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_appears_whole_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        let file = WholeFile::new(&path).unwrap();
        assert!(!path.exists());
        file.write("<html>", &AtomicBool::new(false)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "<html>");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_interrupted_page_leaves_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        fs::write(&path, "old").unwrap();
        let error = WholeFile::new(&path).unwrap().write("new", &AtomicBool::new(true)).unwrap_err();
        assert!(error.is::<Interrupted>());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn folders_devices_and_places_that_are_not_there_are_refused_beforehand() {
        let folder = tempfile::tempdir().unwrap();
        assert!(WholeFile::new(folder.path()).unwrap_err().to_string().contains("it is a folder"));
        assert!(WholeFile::new(Path::new("/dev/null")).unwrap_err().to_string().contains("no ordinary file"));
        let nowhere = folder.path().join("not/there.html");
        let said = WholeFile::new(&nowhere).unwrap_err().to_string();
        assert!(said.contains("there.html") && said.contains("there is no folder"), "{said}");
    }
}
