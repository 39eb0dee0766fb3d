//! Files that appear under their name only when they are complete.
//!
//! The data are written to a temporary file in the same directory. The temporary file is synced and
//! renamed at the end. [`ReportFile`] writes a text in one call; [`TemporaryFile`] is for output
//! that is written in pieces and must be removed when a signal ends the program.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, Result, anyhow, bail};
use rustix::buffer::spare_capacity;
use rustix::fs::{XattrFlags, fremovexattr, fsetxattr, getxattr};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tempfile::{NamedTempFile, TempPath};

use crate::failure::{InterruptedWrite, print_message};

/// Longest part of the target's name in the name of the temporary file, in bytes. The rest of the
/// 255 bytes is for dots, random letters and the suffix.
const NAME_BYTES: usize = 200;

/// Creates a temporary file beside `target`, named `.NAME.XXXXXX.partial`. Its mode is 0666 without
/// the umask, as for any new file.
fn create_beside(target: &Path) -> io::Result<NamedTempFile> {
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
pub fn sync(file: &File) -> io::Result<()> {
    if !file.metadata()?.is_file() {
        return Ok(());
    }
    match file.sync_all() {
        // Some file systems do not support fsync.
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => Ok(()),
        synced => synced,
    }
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
    /// If the path is a directory or a device, or if no file can be created in its directory.
    pub fn new(path: &Path) -> Result<ReportFile> {
        let shown = path.display();
        if path.as_os_str().is_empty() {
            bail!("--report is empty: it takes the name of a file, as in report.html");
        }
        let path = match fs::metadata(path) {
            Ok(is) if is.is_dir() => {
                bail!("{shown}: the file cannot be written there: it is a folder; name a file in it")
            }
            // A rename would replace the device by the report.
            Ok(is) if !is.is_file() => {
                bail!("{shown}: the file cannot be written there: it is no ordinary file")
            }
            // Replace the target of a link, not the link.
            Ok(_) => fs::canonicalize(path).with_context(|| format!("{shown}: the file cannot be written there"))?,
            Err(_) => path.to_owned(),
        };
        let file = ReportFile { path };
        // A trial; the temporary file is removed at once.
        file.temporary()?;
        Ok(file)
    }

    /// Writes the file, unless `cancelled` is true at the end.
    ///
    /// # Errors
    /// The failed operation, or [`InterruptedWrite`]. The previous file is then unchanged.
    pub fn write(&self, text: &str, cancelled: &AtomicBool) -> Result<()> {
        let failed = || format!("{}: the file cannot be written", self.path.display());
        let mut temporary = self.temporary()?;
        temporary.write_all(text.as_bytes()).with_context(failed)?;
        sync(temporary.as_file()).with_context(failed)?;
        if cancelled.load(Ordering::Relaxed) {
            return Err(InterruptedWrite(self.path.clone()).into());
        }
        temporary.persist(&self.path).map_err(|error| error.error).with_context(failed)?;
        Ok(())
    }

    fn temporary(&self) -> Result<NamedTempFile> {
        create_beside(&self.path).map_err(|error| {
            let (path, folder) = (self.path.display(), directory_of(&self.path).display());
            // The message of the error has the name of the temporary file.
            match error.kind() {
                ErrorKind::NotFound => {
                    anyhow!("{path}: the file cannot be written there: there is no folder {folder}; make it first")
                }
                kind => anyhow!("{path}: the file cannot be written there: {kind} (folder {folder})"),
            }
        })
    }
}

/// Largest number of links that a path lookup follows.
const LINKS_MAX: usize = 40;

/// Resolves the links of a path, so that the target of a link is replaced and not the link.
pub fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&at) {
            Ok(to) => at = at.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => return Ok(fs::canonicalize(&at).unwrap_or(at)),
        }
    }
    Err(Errno::LOOP.into())
}

const ACCESS_LIST: &CStr = c"system.posix_acl_access";

/// Gives a new file the owner, mode and access ACL of the file that it replaces, as far as the
/// process may. The new file never grants more access than the old one.
pub fn copy_access(file: &File, old: &Metadata, target: &Path) -> io::Result<()> {
    let made = file.metadata()?;
    let is_same_owner = (made.uid(), made.gid()) == (old.uid(), old.gid());
    let mut mode = old.mode() & 0o7777;
    let has_group = is_same_owner
        || fchown(file, Some(old.uid()), Some(old.gid())).is_ok()
        || fchown(file, None, Some(old.gid())).is_ok();
    if !has_group {
        // The group differs: it gets the permissions of others.
        mode = mode & !0o070 | (mode & 0o007) << 3;
    }
    let mut list = Vec::with_capacity(LIST_BYTES);
    let listed = getxattr(target, ACCESS_LIST, spare_capacity(&mut list));
    if listed.is_ok() && has_group {
        let _ = fsetxattr(file, ACCESS_LIST, &list, XattrFlags::empty());
    } else {
        // The directory may have a default ACL.
        let _ = fremovexattr(file, ACCESS_LIST);
    }
    file.set_permissions(Permissions::from_mode(mode))
}

/// Largest size of an extended attribute in bytes.
const LIST_BYTES: usize = 64 << 10;

/// A temporary file that replaces another file when it is complete. It is removed if the program
/// ends before, also by a signal.
pub struct TemporaryFile {
    name: OsString,
    state: Arc<Mutex<State>>,
}

/// The state of the temporary file, for the signal thread.
enum State {
    /// Not created yet, or removed.
    Absent,
    Created(TempPath),
    /// Renamed, or never created.
    Released,
}

impl TemporaryFile {
    /// Creates a temporary file beside `target` and starts a thread that removes it on a signal.
    pub fn beside(target: &Path) -> io::Result<(File, TemporaryFile)> {
        let state = Arc::new(Mutex::new(State::Absent));
        // A signal waits until the file is known.
        let mut created = state.lock().unwrap_or_else(PoisonError::into_inner);
        remove_on_signal(&state)?;
        match create_beside(target) {
            Ok(file) => {
                let (file, path) = file.into_parts();
                let name = path.file_name().unwrap_or_default().to_owned();
                *created = State::Created(path);
                drop(created);
                Ok((file, TemporaryFile { name, state }))
            }
            Err(error) => {
                *created = State::Released;
                Err(error)
            }
        }
    }

    /// Returns the name of the temporary file.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Renames the temporary file to `target`.
    pub fn keep(&self, target: &Path) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Released) {
            State::Created(path) => path.persist(target).map_err(|error| error.error),
            State::Absent | State::Released => Ok(()),
        }
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Created(_) = *state {
            *state = State::Absent;
        }
    }
}

/// Starts a thread that removes the file and ends the program on SIGINT, SIGTERM or SIGHUP. Signals
/// that the caller ignores stay ignored, as under `nohup`.
fn remove_on_signal(state: &Arc<Mutex<State>>) -> io::Result<()> {
    let ignored = ignored();
    let handled = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = Signals::new(handled)?;
    let watched = Arc::clone(state);
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let mut state = watched.lock().unwrap_or_else(PoisonError::into_inner);
            if !matches!(*state, State::Released) {
                *state = State::Absent;
                print_message("hoistway tar: interrupted: nothing is left of the archive");
            }
            // The exit code that a shell reports for a program that a signal ended.
            std::process::exit(128 + signal);
        }
    })?;
    Ok(())
}

/// Returns the mask of signals that were ignored at the start: bit 0 is signal 1.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
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
        assert!(error.is::<InterruptedWrite>());
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
