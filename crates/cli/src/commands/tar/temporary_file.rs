//! The temporary file of an archive, which replaces another file when it is complete and is removed
//! when a signal ends the program.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use hoistway_report::atomic_file::create_beside;
use rustix::buffer::spare_capacity;
use rustix::fs::{XattrFlags, fremovexattr, fsetxattr, getxattr};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tempfile::TempPath;

use crate::failure::print_message;

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
