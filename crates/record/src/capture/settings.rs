//! Settings of the machine that a recording changes: written down before, put back behind.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hoistway_machine::{ProcessFiles, Root};
use serde::{Deserialize, Serialize};

use super::CaptureError;
use super::tracing_files::KernelFiles;

/// Where recordings write down what they change. Root alone may write there: what is read from it
/// decides what root writes.
const JOURNALS: &str = "/run/hoistway";
const PREFIX: &str = "hoistway-trace-record-";

/// What a recording changed.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Journal {
    /// Who changed it, and since when it runs, so that another process with its number is told from
    /// it.
    pid: u32,
    started: u64,
    changes: Vec<Change>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Change {
    /// A file of tracefs said `was`, and now says `set`.
    Tracing { name: String, was: String, set: String },
    /// So did one elsewhere.
    File { path: PathBuf, was: String, set: String },
    /// A directory of tracefs was made.
    Instance { name: String },
    /// The ioctl `BLKTRACESETUP` was made on a device.
    Ioctl { device: PathBuf },
}

/// Settings that were changed, in order. They are put back in the other order when this is dropped.
#[derive(Debug)]
pub(super) struct Settings {
    journal: Journal,
    path: PathBuf,
}

/// What a recording that was killed has left behind.
#[derive(Debug)]
pub struct LeftBehind {
    journal: Journal,
    path: PathBuf,
}

impl Settings {
    /// Nothing changed yet. `what` tells it from others of this process.
    ///
    /// # Errors
    /// When what is changed cannot be written down.
    pub fn new(what: &str) -> Result<Settings, CaptureError> {
        Settings::noted_in(Path::new(JOURNALS), what)
    }

    fn noted_in(directory: &Path, what: &str) -> Result<Settings, CaptureError> {
        let failed = |path: &Path, cause| CaptureError::of(path.display().to_string(), cause);
        if !directory.is_dir() {
            let made = fs::DirBuilder::new().mode(0o700).recursive(true).create(directory);
            made.map_err(|cause| failed(directory, cause))?;
        }
        let pid = std::process::id();
        let journal = Journal { pid, started: started(pid).unwrap_or(0), changes: Vec::new() };
        let settings = Settings { journal, path: directory.join(format!("{PREFIX}{pid}-{what}.json")) };
        settings.write_down().map_err(|cause| failed(&settings.path, cause))?;
        Ok(settings)
    }

    /// Sets a file of tracefs. One that says so already is left alone; one that says nothing
    /// (`trace`) is not put back.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn set(&mut self, files: &KernelFiles, name: &str, value: &str) -> Result<(), CaptureError> {
        let was = chosen(&files.read(name)?);
        if was == value {
            return Ok(());
        }
        self.note(Change::Tracing { name: name.to_owned(), was, set: value.to_owned() })?;
        write(&files.path(name), value).map_err(|cause| CaptureError::of(format!("{name} = {value}"), cause))?;
        // The kernel rounds sizes: what it made of the value is what tells later that nobody has
        // changed it since.
        let became = chosen(&files.read(name)?);
        if let Some(Change::Tracing { set, .. }) = self.journal.changes.last_mut()
            && became != value
        {
            *set = became;
            self.write_down().map_err(|cause| CaptureError::of(self.path.display().to_string(), cause))?;
        }
        Ok(())
    }

    /// The same of a file elsewhere.
    ///
    /// # Errors
    /// The same.
    pub fn set_file(&mut self, path: &Path, value: &str) -> Result<(), CaptureError> {
        let failed = |cause| CaptureError::of(format!("{} = {value}", path.display()), cause);
        let was = chosen(fs::read_to_string(path).map_err(failed)?.trim());
        if was == value {
            return Ok(());
        }
        self.note(Change::File { path: path.into(), was, set: value.to_owned() })?;
        write(path, value).map_err(failed)
    }

    /// Makes a directory of tracefs, which is a buffer of its own.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make_instance(&mut self, files: &KernelFiles, name: &str) -> Result<(), CaptureError> {
        self.note(Change::Instance { name: name.to_owned() })?;
        fs::create_dir(files.path(name)).map_err(|cause| CaptureError::of(name, cause))
    }

    /// Removes what [`Settings::make_instance`] has made last.
    pub fn remove_instance(&mut self, files: &KernelFiles, name: &str) {
        if let Err(error) = fs::remove_dir(files.path(name)) {
            tracing::warn!(name, %error, "an instance of tracefs cannot be removed");
            return;
        }
        self.journal.changes.retain(|change| !matches!(change, Change::Instance { name: made } if made == name));
        let _ = self.write_down();
    }

    /// Notes that a device is about to be traced by ioctl.
    ///
    /// # Errors
    /// When that cannot be written down.
    pub fn will_setup(&mut self, device: &Path) -> Result<(), CaptureError> {
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
        let left = LeftBehind { journal: std::mem::take(&mut self.journal), path: std::mem::take(&mut self.path) };
        for failed in left.put_back() {
            tracing::error!("not put back: {failed}");
        }
    }
}

/// What recordings that are not there any more have left behind.
pub fn left_behind() -> Vec<LeftBehind> {
    left_behind_in(Path::new(JOURNALS))
}

fn left_behind_in(directory: &Path) -> Vec<LeftBehind> {
    // Nobody else may say what is to be written where.
    if !is_ours_alone(directory) {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.starts_with(PREFIX) || !is_ours_alone(&path) {
            continue;
        }
        let journal = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Journal>(&bytes).ok());
        if let Some(journal) = journal.filter(|journal| started(journal.pid) != Some(journal.started)) {
            found.push(LeftBehind { journal, path });
        }
    }
    found
}

/// Whether nobody but the user of this process, or root, can write it.
fn is_ours_alone(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| {
        let owner = metadata.uid();
        !metadata.is_symlink()
            && (owner == 0 || owner == rustix::process::geteuid().as_raw())
            && metadata.mode() & 0o022 == 0
    })
}

impl LeftBehind {
    /// The number of the process that left it.
    pub fn pid(&self) -> u32 {
        self.journal.pid
    }

    /// What it left, a line each: as commands that would undo it.
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

    /// Puts it back. What somebody has set to something else meanwhile stays. Answers what could
    /// not be put back, as sentences.
    pub fn put_back(self) -> Vec<String> {
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
                (Change::Tracing { name, was, set }, Some(files)) => put_back(&files.path(name), was, set),
                (Change::File { path, was, set }, _) => put_back(path, was, set),
                (Change::Instance { name }, Some(files)) => gone(fs::remove_dir(files.path(name))),
                (Change::Ioctl { device }, _) => super::by_ioctl::tear_down(device),
                (Change::Tracing { .. } | Change::Instance { .. }, None) => continue,
            };
            if let Err(error) = undone {
                failed.push(format!("{change:?}: {error}"));
            }
        }
        if failed.is_empty()
            && let Err(error) = gone(fs::remove_file(&self.path))
        {
            failed.push(format!("{}: {error}", self.path.display()));
        }
        failed
    }
}

fn put_back(path: &Path, was: &str, set: &str) -> io::Result<()> {
    let now = match fs::read_to_string(path) {
        // A device that is gone, or an option of a tracer that is no longer chosen.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        read => chosen(read?.trim()),
    };
    if now == set && !was.is_empty() { write(path, was) } else { Ok(()) }
}

/// That something is not there is as good as that it was removed.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn write(path: &Path, value: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    io::Write::write_all(&mut file, value.as_bytes())
}

/// The value that a file of settings says: of `[local] global mono` the one in brackets, of `7
/// (expanded: 1408)` the latter.
fn chosen(text: &str) -> String {
    if let Some((_, rest)) = text.split_once("(expanded: ") {
        return rest.trim_end_matches(')').to_owned();
    }
    match text.split_once('[').and_then(|(_, rest)| rest.split_once(']')) {
        Some((inside, _)) => inside.to_owned(),
        None => text.to_owned(),
    }
}

/// Returns the start time of a running process in clock ticks since the machine started. With the
/// process ID it identifies the process. `None` if the process has ended.
fn started(pid: u32) -> Option<u64> {
    let stat = ProcessFiles::new(&Root::machine(), pid).stat()?;
    (!stat.has_ended).then_some(stat.start_ticks)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_chosen_value_is_found_in_what_the_kernel_says() {
        assert_eq!(chosen("[local] global counter mono"), "local");
        assert_eq!(chosen("local global [mono]"), "mono");
        assert_eq!(chosen("7 (expanded: 1408)"), "1408");
        assert_eq!(chosen("nop"), "nop");
    }

    #[test]
    fn a_setting_is_put_back_and_one_that_somebody_changed_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        fs::write(&one, "1\n").unwrap();
        fs::write(&other, "5\n").unwrap();
        let mut settings = Settings::noted_in(&folder.path().join("journals"), "test").unwrap();
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
    fn what_a_process_that_is_gone_left_is_found_and_that_of_a_running_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("setting");
        fs::write(&file, "set").unwrap();
        let change = Change::File { path: file.clone(), was: "was".into(), set: "set".into() };
        let journal = Journal { pid: std::process::id(), started: 1, changes: vec![change] };
        let path = folder.path().join(format!("{PREFIX}1.json"));
        fs::write(&path, serde_json::to_vec(&journal).unwrap()).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(left_behind_in(folder.path()).is_empty(), "anybody may have written it");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let found = left_behind_in(folder.path()).pop().expect("this process began later");
        assert_eq!(found.lines(), [format!("echo was > {}   (it was set to set)", file.display())]);
        assert_eq!(found.put_back(), Vec::<String>::new());
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), path.exists()), ("was", false));
    }
}
