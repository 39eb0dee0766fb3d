//! The machine's settings that a capture changes: journaled before, restored afterwards.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hoistway_machine::{ProcessFiles, Root};
use serde::{Deserialize, Serialize};

use super::CaptureError;
use super::tracing_files::KernelFiles;

/// The directory of the journals. Only root may write there, because root restores what the
/// journals say.
const JOURNALS: &str = "/run/hoistway";
const PREFIX: &str = "hoistway-trace-record-";

/// The changes of one capture.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Journal {
    /// The process that made the changes and its start time, which tells it from a later process
    /// with the same id.
    pid: u32,
    #[serde(rename = "started")]
    start_time: u64,
    changes: Vec<Change>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Change {
    /// A file of tracefs changed from `was` to `set`.
    Tracing { name: String, was: String, set: String },
    /// Any other file changed from `was` to `set`.
    File { path: PathBuf, was: String, set: String },
    /// A directory of tracefs was created.
    Instance { name: String },
    /// The ioctl `BLKTRACESETUP` was executed on a device.
    Ioctl { device: PathBuf },
}

/// The changed settings, in order. Dropping them restores them in reverse order.
#[derive(Debug)]
pub(super) struct Settings {
    journal: Journal,
    path: PathBuf,
}

/// The settings that a killed capture has left changed.
#[derive(Debug)]
pub struct StaleCapture {
    journal: Journal,
    path: PathBuf,
}

impl Settings {
    /// Creates an empty set of changes. `what` tells it from others of this process.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn new(what: &str) -> Result<Settings, CaptureError> {
        Settings::journaled_in(Path::new(JOURNALS), what)
    }

    fn journaled_in(directory: &Path, what: &str) -> Result<Settings, CaptureError> {
        let failed = |path: &Path, cause| CaptureError::of(path.display().to_string(), cause);
        if !directory.is_dir() {
            let made = fs::DirBuilder::new().mode(0o700).recursive(true).create(directory);
            made.map_err(|cause| failed(directory, cause))?;
        }
        let pid = std::process::id();
        let journal = Journal { pid, start_time: start_time(pid).unwrap_or(0), changes: Vec::new() };
        let settings = Settings { journal, path: directory.join(format!("{PREFIX}{pid}-{what}.json")) };
        settings.write_down().map_err(|cause| failed(&settings.path, cause))?;
        Ok(settings)
    }

    /// Sets a file of tracefs. A file with this value already is not changed; a file without a
    /// value (`trace`) is not restored.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn set(&mut self, files: &KernelFiles, name: &str, value: &str) -> Result<(), CaptureError> {
        let was = selected_value(&files.read(name)?);
        if was == value {
            return Ok(());
        }
        self.note(Change::Tracing { name: name.to_owned(), was, set: value.to_owned() })?;
        write(&files.path(name), value).map_err(|cause| CaptureError::of(format!("{name} = {value}"), cause))?;
        // The kernel rounds sizes. The resulting value shows later whether another process has
        // changed it since.
        let became = selected_value(&files.read(name)?);
        if let Some(Change::Tracing { set, .. }) = self.journal.changes.last_mut()
            && became != value
        {
            *set = became;
            self.write_down().map_err(|cause| CaptureError::of(self.path.display().to_string(), cause))?;
        }
        Ok(())
    }

    /// Sets a file outside of tracefs, as [`Settings::set`] does.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn set_file(&mut self, path: &Path, value: &str) -> Result<(), CaptureError> {
        let failed = |cause| CaptureError::of(format!("{} = {value}", path.display()), cause);
        let was = selected_value(fs::read_to_string(path).map_err(failed)?.trim());
        if was == value {
            return Ok(());
        }
        self.note(Change::File { path: path.into(), was, set: value.to_owned() })?;
        write(path, value).map_err(failed)
    }

    /// Creates a directory of tracefs, which is a buffer of its own.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn make_instance(&mut self, files: &KernelFiles, name: &str) -> Result<(), CaptureError> {
        self.note(Change::Instance { name: name.to_owned() })?;
        fs::create_dir(files.path(name)).map_err(|cause| CaptureError::of(name, cause))
    }

    /// Removes the directory of the last [`Settings::make_instance`].
    pub fn remove_instance(&mut self, files: &KernelFiles, name: &str) {
        if let Err(error) = fs::remove_dir(files.path(name)) {
            tracing::warn!(name, %error, "an instance of tracefs cannot be removed");
            return;
        }
        self.journal.changes.retain(|change| !matches!(change, Change::Instance { name: made } if made == name));
        let _ = self.write_down();
    }

    /// Journals that a device is about to be traced by ioctl.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn note_setup(&mut self, device: &Path) -> Result<(), CaptureError> {
        self.note(Change::Ioctl { device: device.into() })
    }

    fn note(&mut self, change: Change) -> Result<(), CaptureError> {
        self.journal.changes.push(change);
        self.write_down().map_err(|cause| CaptureError::of(self.path.display().to_string(), cause))
    }

    fn write_down(&self) -> io::Result<()> {
        let text = serde_json::to_vec(&self.journal)?;
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&self.path)?;
        io::Write::write_all(&mut file, &text)
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        let left = StaleCapture { journal: std::mem::take(&mut self.journal), path: std::mem::take(&mut self.path) };
        for failed in left.restore() {
            tracing::error!("not restored: {failed}");
        }
    }
}

/// Returns the captures whose processes have ended without restoring their settings.
pub fn stale_captures() -> Vec<StaleCapture> {
    stale_captures_in(Path::new(JOURNALS))
}

fn stale_captures_in(directory: &Path) -> Vec<StaleCapture> {
    // Other users must not control the values that are written.
    if !is_private(directory) {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.starts_with(PREFIX) || !is_private(&path) {
            continue;
        }
        let journal = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Journal>(&bytes).ok());
        if let Some(journal) = journal.filter(|journal| start_time(journal.pid) != Some(journal.start_time)) {
            found.push(StaleCapture { journal, path });
        }
    }
    found
}

/// Returns true if only the user of this process or root can write the path.
fn is_private(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| {
        let owner = metadata.uid();
        !metadata.is_symlink()
            && (owner == 0 || owner == rustix::process::geteuid().as_raw())
            && metadata.mode() & 0o022 == 0
    })
}

impl StaleCapture {
    /// Returns the id of the process that made the changes.
    pub fn pid(&self) -> u32 {
        self.journal.pid
    }

    /// Returns the changes as commands that would undo them, one per line.
    pub fn lines(&self) -> Vec<String> {
        let line = |change: &Change| match change {
            Change::Tracing { name, was, set } => {
                format!("echo {was} > /sys/kernel/tracing/{name}   (it was set to {set})")
            }
            Change::File { path, was, set } => format!("echo {was} > {}   (it was set to {set})", path.display()),
            Change::Instance { name } => format!("rmdir /sys/kernel/tracing/{name}"),
            Change::Ioctl { device } => format!("blktrace -k -d {}", device.display()),
        };
        self.journal.changes.iter().rev().map(line).collect()
    }

    /// Restores the settings, except those that have been changed again since. Returns failures as
    /// sentences.
    pub fn restore(self) -> Vec<String> {
        let mut failed = Vec::new();
        let of_tracefs = |change: &Change| matches!(change, Change::Tracing { .. } | Change::Instance { .. });
        let files = match self.journal.changes.iter().any(of_tracefs).then(KernelFiles::tracefs) {
            None => None,
            Some(Ok(files)) => Some(files),
            Some(Err(error)) => {
                failed.push(error.to_string());
                None
            }
        };
        for change in self.journal.changes.iter().rev() {
            let undone = match (change, &files) {
                (Change::Tracing { name, was, set }, Some(files)) => restore(&files.path(name), was, set),
                (Change::File { path, was, set }, _) => restore(path, was, set),
                (Change::Instance { name }, Some(files)) => ignore_missing(fs::remove_dir(files.path(name))),
                (Change::Ioctl { device }, _) => super::blktrace_ioctl::tear_down(device),
                (Change::Tracing { .. } | Change::Instance { .. }, None) => continue,
            };
            if let Err(error) = undone {
                failed.push(format!("{change:?}: {error}"));
            }
        }
        if failed.is_empty()
            && let Err(error) = ignore_missing(fs::remove_file(&self.path))
        {
            failed.push(format!("{}: {error}", self.path.display()));
        }
        failed
    }
}

fn restore(path: &Path, was: &str, set: &str) -> io::Result<()> {
    let now = match fs::read_to_string(path) {
        // The device has been removed, or the option belongs to a tracer that is not selected.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        read => selected_value(read?.trim()),
    };
    if now == set && !was.is_empty() { write(path, was) } else { Ok(()) }
}

/// Treats a missing file as removed.
fn ignore_missing(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn write(path: &Path, value: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    io::Write::write_all(&mut file, value.as_bytes())
}

/// Returns the selected value of a settings file: the value in brackets of `[local] global mono`,
/// the expanded one of `7 (expanded: 1408)`.
fn selected_value(text: &str) -> String {
    if let Some((_, rest)) = text.split_once("(expanded: ") {
        return rest.trim_end_matches(')').to_owned();
    }
    match text.split_once('[').and_then(|(_, rest)| rest.split_once(']')) {
        Some((inside, _)) => inside.to_owned(),
        None => text.to_owned(),
    }
}

/// Returns the start time of a running process in clock ticks since boot, which identifies it
/// together with its id. `None` if the process has ended, zombies included.
fn start_time(pid: u32) -> Option<u64> {
    let stat = ProcessFiles::new(&Root::machine(), pid).stat()?;
    (!stat.has_ended).then_some(stat.start_ticks)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_selected_value_is_found() {
        assert_eq!(selected_value("[local] global counter mono"), "local");
        assert_eq!(selected_value("local global [mono]"), "mono");
        assert_eq!(selected_value("7 (expanded: 1408)"), "1408");
        assert_eq!(selected_value("nop"), "nop");
    }

    #[test]
    fn a_setting_is_restored_unless_it_was_changed_again() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        fs::write(&one, "1\n").unwrap();
        fs::write(&other, "5\n").unwrap();
        let mut settings = Settings::journaled_in(&folder.path().join("journals"), "test").unwrap();
        settings.set_file(&one, "2").unwrap();
        settings.set_file(&other, "6").unwrap();
        assert_eq!(fs::read_to_string(&one).unwrap(), "2\n");
        fs::write(&other, "7\n").unwrap();
        let journal = settings.path.clone();
        assert!(journal.exists());
        drop(settings);
        assert_eq!(
            (fs::read_to_string(&one).unwrap(), fs::read_to_string(&other).unwrap()),
            ("1\n".into(), "7\n".into())
        );
        assert!(!journal.exists());
    }

    #[test]
    fn settings_of_ended_processes_only_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("setting");
        fs::write(&file, "set").unwrap();
        let change = Change::File { path: file.clone(), was: "was".into(), set: "set".into() };
        let journal = Journal { pid: std::process::id(), start_time: 1, changes: vec![change] };
        let path = folder.path().join(format!("{PREFIX}1.json"));
        fs::write(&path, serde_json::to_vec(&journal).unwrap()).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(stale_captures_in(folder.path()).is_empty(), "other users can write it");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let found = stale_captures_in(folder.path()).pop().expect("this process began later");
        assert_eq!(found.lines(), [format!("echo was > {}   (it was set to set)", file.display())]);
        assert_eq!(found.restore(), Vec::<String>::new());
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), path.exists()), ("was", false));
    }
}
