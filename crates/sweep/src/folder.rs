//! A folder of results.
//!
//! ```text
//! DIR/points/NAME.parquet   a row for each point of a batch
//! DIR/jobs/NAME.parquet     a row for each job of these points
//! DIR/sweeps/NAME.toml      each sweep that wrote here, with everything that it names
//! DIR/lock                  locked while a sweep writes here
//! ```
//!
//! The names are hashes of the contents' points, so the results of two machines are merged by
//! copying one folder into the other. A file appears complete or not at all, that of the jobs
//! before that of the points.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::batch::BatchFiles;
use crate::file_name::file_name;
use crate::parquet_file;
use crate::plan::Plan;
use crate::point::{LIBRARY, PointId};

/// Begin of the names of files that are being written.
const UNFINISHED: &str = ".unfinished-";

/// A folder of results that this process writes.
#[derive(Debug)]
pub struct ResultFolder {
    path: PathBuf,
    /// The points that have a result, with the error of those that failed.
    done: HashMap<PointId, Option<Box<str>>>,
    /// Locked while the folder is in use.
    _lock: File,
}

/// Reasons for which results cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file or directory cannot be read or written.
    #[error("{}: {action}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// What failed, as in `cannot write`.
        action: &'static str,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Another sweep writes to the folder.
    #[error("{}: another sweep writes here: wait for it, or name another folder", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// A file is not one of results.
    #[error("{}: this is no file of results: {problem}; remove it, and its points are simulated again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// The folder has results of another version.
    #[error(
        "{}: this file has results of hoistway {found}, and this is {LIBRARY}: versions may differ in their results; name another folder",
        path.display()
    )]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// The version.
        found: String,
    },
}

fn io(path: &Path, action: &'static str) -> impl FnOnce(std::io::Error) -> FolderError + use<> {
    let path = path.to_owned();
    move |source| FolderError::Io { path, action, source }
}

impl ResultFolder {
    /// Opens a folder, or creates it, and reads which points have a result. Remains of a process
    /// that was killed are removed.
    ///
    /// # Errors
    /// [`FolderError`]; nothing is changed then.
    pub fn open(path: &Path) -> Result<ResultFolder, FolderError> {
        for part in [path.to_owned(), path.join("points"), path.join("jobs"), path.join("sweeps")] {
            fs::create_dir_all(&part).map_err(io(&part, "cannot create the directory"))?;
        }
        let lock_path = path.join("lock");
        let lock = File::create(&lock_path).map_err(io(&lock_path, "cannot create the lock"))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(FolderError::InUse { path: path.to_owned() }),
            Err(error) => return Err(io(&lock_path, "cannot lock")(error.into())),
        }
        let mut done = HashMap::new();
        for file in files(&path.join("points"))? {
            read_points(&file, &mut done)?;
        }
        remove_unfinished(path)?;
        Ok(ResultFolder { path: path.to_owned(), done, _lock: lock })
    }

    /// Returns true if a point had a result when the folder was opened.
    pub fn has(&self, point: PointId) -> bool {
        self.done.contains_key(&point)
    }

    /// The error of a point that had a result when the folder was opened, but no figures.
    pub fn error_of(&self, point: PointId) -> Option<&str> {
        self.done.get(&point)?.as_deref()
    }

    /// The number of points that had a result when the folder was opened.
    pub fn points(&self) -> usize {
        self.done.len()
    }

    /// Writes the sweep itself, so that its results can be made again.
    ///
    /// # Errors
    /// [`FolderError::Io`].
    pub fn write_sweep(&self, plan: &Plan) -> Result<(), FolderError> {
        let text = plan.spec().self_contained.as_bytes();
        let name = file_name(Sha256::new_with_prefix(text));
        self.write("sweeps", &format!("{name}.toml"), text)
    }

    /// Writes the results of a batch.
    ///
    /// # Errors
    /// [`FolderError::Io`]; the files that are there already stay as they are.
    pub fn write_batch(&self, files: &BatchFiles) -> Result<(), FolderError> {
        let name = format!("{}.parquet", files.name);
        self.write("jobs", &name, &files.jobs)?;
        self.write("points", &name, &files.points)
    }

    fn write(&self, directory: &str, name: &str, bytes: &[u8]) -> Result<(), FolderError> {
        let directory = self.path.join(directory);
        let path = directory.join(name);
        let write = || {
            let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&directory)?;
            file.write_all(bytes)?;
            file.as_file().sync_data()?;
            file.persist(&path)?;
            Ok(())
        };
        write().map_err(io(&path, "cannot write"))
    }
}

/// The Parquet files of a directory, in the order of their names.
pub(crate) fn files(directory: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "parquet") {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    };
    list().map_err(io(directory, "cannot list the directory"))
}

/// Reads the points in a file of results.
fn read_points(path: &Path, done: &mut HashMap<PointId, Option<Box<str>>>) -> Result<(), FolderError> {
    let damaged = |problem: String| FolderError::Damaged { path: path.to_owned(), problem };
    let names = ["point", "library", "error"];
    let columns =
        parquet_file::read(path, &|name| names.contains(&name)).map_err(|error| damaged(error.to_string()))?;
    let column = |name: &str| {
        let found = columns.iter().find(|column| column.name == name);
        found.ok_or_else(|| damaged(format!("it has no column `{name}`")))
    };
    let [points, libraries, errors] = [column("point")?, column("library")?, column("error")?];
    for row in 0..points.cells.len() {
        let library = libraries.cells.text(row).unwrap_or_default();
        if library != LIBRARY {
            return Err(FolderError::OtherVersion { path: path.to_owned(), found: library });
        }
        let point = points.cells.text(row).unwrap_or_default();
        let id = PointId::parse(&point).ok_or_else(|| damaged(format!("`{point}` is no point")))?;
        done.insert(id, errors.cells.text(row).map(String::into_boxed_str));
    }
    Ok(())
}

/// Removes the files that a killed process left unfinished.
fn remove_unfinished(path: &Path) -> Result<(), FolderError> {
    for part in ["points", "jobs", "sweeps"] {
        let directory = path.join(part);
        let entries = fs::read_dir(&directory).map_err(io(&directory, "cannot list the directory"))?;
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                let path = entry.path();
                fs::remove_file(&path).map_err(io(&path, "cannot remove the unfinished file"))?;
            }
        }
    }
    Ok(())
}
