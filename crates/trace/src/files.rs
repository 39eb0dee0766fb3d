//! Resolves the names of traces: single files, globs, the files of all CPUs of a trace, folders of
//! Parquet files, standard input, and the sample in the library.

use std::cmp::Ordering;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::parquet::EXTENSION;
use crate::stream::{Input, Stream};

/// Name of the sample in the library.
pub const SAMPLE: &str = "sample:two-readers";
/// Recording of `examples/two-readers`: 743 requests of two processes, 17 kB.
const SAMPLE_BYTES: &[u8] = include_bytes!("../data/two-readers.blktrace.0.xz");
/// The beginning of names of samples.
const SAMPLE_PREFIX: &str = "sample:";
/// Name of standard input.
pub const STANDARD_INPUT: &str = "-";

/// The part of a file name between the name of a trace and the number of a CPU.
const INFIX: &str = ".blktrace.";
/// Suffixes of compressed files.
const COMPRESSED: [&str; 3] = [".gz", ".zst", ".xz"];

/// Error of resolving the name of a trace.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The name is a directory without Parquet files.
    #[error("{0} is a folder without Parquet files (*.parquet): name its files, as in '{0}/*'", .path.display())]
    Directory {
        /// The name.
        path: PathBuf,
    },
    /// The name is an invalid glob pattern.
    #[error("{pattern}: {source}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Description of the error.
        source: glob::PatternError,
    },
    /// No file matches the name.
    #[error("{0}: there is no such file, and none called {0}{INFIX}0", .path.display())]
    NotFound {
        /// The name.
        path: PathBuf,
    },
    /// Two files hold the records of the same CPU, usually a file and its compressed form.
    #[error("{0}: {1} holds the same CPU: move one of them away, or name the files to read", .first.display(), .second.display())]
    Duplicate {
        /// One of the files.
        first: PathBuf,
        /// The other file.
        second: PathBuf,
    },
    /// Standard input is named more than once.
    #[error("standard input ({STANDARD_INPUT}) can be read only once")]
    StandardInputTwice,
    /// The library has no sample of this name.
    #[error("there is no {name}: {SAMPLE} is the sample")]
    UnknownSample {
        /// The name.
        name: String,
    },
    /// A directory cannot be read.
    #[error("{0}: {source}", .path.display())]
    Io {
        /// The directory or file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl ResolveError {
    /// Returns true if the argument is wrong: an invalid pattern, a directory that is no set of
    /// Parquet files, an unknown sample, or standard input twice. Other errors depend on the files
    /// that exist.
    pub fn is_usage_error(&self) -> bool {
        match self {
            ResolveError::Directory { .. }
            | ResolveError::Pattern { .. }
            | ResolveError::StandardInputTwice
            | ResolveError::UnknownSample { .. } => true,
            ResolveError::NotFound { .. } | ResolveError::Duplicate { .. } | ResolveError::Io { .. } => false,
        }
    }
}

/// An input that a name of a trace stands for; it opens nothing yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedInput {
    /// A file.
    File(PathBuf),
    /// The sample in the library.
    Sample,
    /// Standard input, which can be read once.
    StandardInput,
}

impl NamedInput {
    /// Returns the input for [`open`](crate::open()).
    pub fn input(&self) -> Input {
        match self {
            NamedInput::File(path) => Input::Path(path.clone()),
            NamedInput::Sample => Input::Stream(Stream { name: SAMPLE.into(), read: Box::new(SAMPLE_BYTES) }),
            NamedInput::StandardInput => {
                Input::Stream(Stream { name: "standard input".into(), read: Box::new(io::stdin()) })
            }
        }
    }
}

/// The inputs of a trace, and its own name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTrace {
    /// Name of the trace: that of its folder of Parquet files, or of its first file without the
    /// suffix of blktrace; `-` for standard input alone.
    pub name: String,
    /// The inputs in the order of their names.
    pub inputs: Vec<NamedInput>,
}

impl NamedTrace {
    /// Resolves the names of one trace: each is a file, the argument of blktrace's `-o`, a folder
    /// of Parquet files, a glob pattern, `-` for standard input, or [`SAMPLE`].
    ///
    /// # Errors
    /// Fails as [`resolve`] does, for an unknown sample, and if standard input is named twice.
    pub fn resolve(names: &[PathBuf]) -> Result<NamedTrace, ResolveError> {
        let mut inputs = Vec::new();
        let mut own_name = None;
        for name in names {
            if name == Path::new(STANDARD_INPUT) {
                if inputs.contains(&NamedInput::StandardInput) {
                    return Err(ResolveError::StandardInputTwice);
                }
                inputs.push(NamedInput::StandardInput);
            } else if let Some(sample) = name.to_str().filter(|name| name.starts_with(SAMPLE_PREFIX)) {
                if sample != SAMPLE {
                    return Err(ResolveError::UnknownSample { name: sample.to_owned() });
                }
                own_name.get_or_insert_with(|| SAMPLE.trim_start_matches(SAMPLE_PREFIX).to_owned());
                inputs.push(NamedInput::Sample);
            } else {
                let files = resolve(name)?;
                let folder = name.file_name().filter(|_| name.is_dir());
                let folder = folder.map(|folder| folder.to_string_lossy().into_owned());
                own_name = own_name.or(folder).or_else(|| files.first().map(|file| trace_name(file)));
                inputs.extend(files.into_iter().map(NamedInput::File));
            }
        }
        Ok(NamedTrace { name: own_name.unwrap_or_else(|| STANDARD_INPUT.to_owned()), inputs })
    }

    /// Returns the inputs for [`open`](crate::open()).
    pub fn inputs(&self) -> Vec<Input> {
        self.inputs.iter().map(NamedInput::input).collect()
    }

    /// Returns the files among the inputs.
    pub fn files(&self) -> Vec<PathBuf> {
        let file = |input: &NamedInput| match input {
            NamedInput::File(path) => Some(path.clone()),
            NamedInput::Sample | NamedInput::StandardInput => None,
        };
        self.inputs.iter().filter_map(file).collect()
    }
}

/// Resolves a name to files in order of CPU: an existing file, the argument of blktrace's `-o`
/// (`NAME` for `NAME.blktrace.0`, `.1`, ...), a directory of Parquet files, or a glob pattern.
///
/// # Errors
/// Fails if the name is a directory without Parquet files, matches no file, or matches two files of
/// the same CPU.
pub fn resolve(name: &Path) -> Result<Vec<PathBuf>, ResolveError> {
    if name.is_dir() {
        let mut files = Vec::new();
        add_parquet_files(name, &mut files)?;
        if files.is_empty() {
            return Err(ResolveError::Directory { path: name.to_owned() });
        }
        files.sort();
        return Ok(files);
    }
    if name.exists() {
        return Ok(vec![name.to_owned()]);
    }
    let mut files = cpu_files(name)?;
    let pattern = name.to_str().filter(|text| text.contains(['*', '?', '[']));
    if let (Some(pattern), true) = (pattern, files.is_empty()) {
        files = matches(pattern)?;
    }
    files.sort_by(|one, other| compare(one, other).then_with(|| one.cmp(other)));
    check_duplicates(&files)?;
    if files.is_empty() {
        return Err(ResolveError::NotFound { path: name.to_owned() });
    }
    Ok(files)
}

/// Returns the name of a trace from one of its files: without the suffix of blktrace.
pub fn trace_name(file: &Path) -> String {
    match split(file) {
        Some((name, _)) => name.to_owned(),
        None => file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned(),
    }
}

/// For a file of one CPU: returns the number of files of its trace and the name that stands for all
/// of them.
pub fn siblings(file: &Path) -> Option<(usize, PathBuf)> {
    let (name, _) = split(file).filter(|_| file.is_file())?;
    let all = file.with_file_name(name);
    Some((cpu_files(&all).ok()?.len(), all))
}

fn matches(pattern: &str) -> Result<Vec<PathBuf>, ResolveError> {
    let paths = glob::glob(pattern).map_err(|source| ResolveError::Pattern { pattern: pattern.to_owned(), source })?;
    let mut files = Vec::new();
    for path in paths {
        let path = path.map_err(|error| ResolveError::Io { path: error.path().to_owned(), source: error.into() })?;
        if path.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}

/// Adds the Parquet files of a directory and of the directories in it. Names that begin with a dot
/// or an underscore are those of unfinished files, by the convention of Spark and Dask.
fn add_parquet_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), ResolveError> {
    let failed = |source| ResolveError::Io { path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (name, path) = (entry.file_name(), entry.path());
        if name.as_encoded_bytes().starts_with(b".") || name.as_encoded_bytes().starts_with(b"_") {
            continue;
        }
        // Links to directories are not followed: they could lead in a circle.
        if entry.file_type().map_err(failed)?.is_dir() {
            add_parquet_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == EXTENSION) {
            files.push(path);
        }
    }
    Ok(())
}

/// A file and its compressed form hold the same events.
fn check_duplicates(files: &[PathBuf]) -> Result<(), ResolveError> {
    for (first, second) in files.iter().zip(files.iter().skip(1)) {
        if first.parent() == second.parent() && split(first).is_some_and(|cpu| Some(cpu) == split(second)) {
            return Err(ResolveError::Duplicate { first: first.clone(), second: second.clone() });
        }
    }
    Ok(())
}

/// Returns the files of all CPUs of the trace with this name.
fn cpu_files(name: &Path) -> Result<Vec<PathBuf>, ResolveError> {
    let Some(stem) = name.file_name().and_then(|name| name.to_str()) else { return Ok(Vec::new()) };
    let folder = name.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|source| ResolveError::Io { path: folder.to_owned(), source })?.path();
        if split(&path).is_some_and(|(name, _)| name == stem) {
            files.push(path.strip_prefix("./").map_or_else(|_| path.clone(), Path::to_path_buf));
        }
    }
    Ok(files)
}

/// Splits a file name of blktrace, compressed or not, into the name of the trace and the number of
/// the CPU.
fn split(file: &Path) -> Option<(&str, u32)> {
    let name = file.file_name()?.to_str()?;
    let name = COMPRESSED.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
    let (stem, cpu) = name.rsplit_once(INFIX)?;
    Some((stem, cpu.parse().ok()?))
}

/// Orders files by name and number of the CPU: CPU 2 comes before CPU 10.
fn compare(one: &Path, other: &Path) -> Ordering {
    match (split(one), split(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => one.cmp(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_resolves_to_the_files_of_all_cpus_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["sda.blktrace.10", "sda.blktrace.2", "sda.blktrace.0.xz", "sdb.blktrace.0", "sda.blktrace.txt"] {
            fs::write(path(name), "").unwrap();
        }
        let expected = ["sda.blktrace.0.xz", "sda.blktrace.2", "sda.blktrace.10"].map(path);
        assert_eq!(resolve(&path("sda")).unwrap(), expected);
        assert_eq!(resolve(&path("sd[ab].blktrace.0*")).unwrap(), ["sda.blktrace.0.xz", "sdb.blktrace.0"].map(path));
        assert_eq!(resolve(&path("sdb.blktrace.0")).unwrap(), [path("sdb.blktrace.0")]);
        assert_eq!(trace_name(&expected[0]), "sda");
        assert_eq!(siblings(&expected[1]), Some((3, path("sda"))));
        fs::write(path("sda.blktrace.2.gz"), "").unwrap();
        let duplicate = resolve(&path("sda")).unwrap_err().to_string();
        assert!(duplicate.contains("sda.blktrace.2.gz holds the same CPU"), "{duplicate}");
        let missing = resolve(&path("sdc")).unwrap_err().to_string();
        assert!(missing.ends_with("/sdc.blktrace.0"), "{missing}");
        assert!(matches!(resolve(folder.path()), Err(ResolveError::Directory { .. })));
        fs::create_dir(path("hour=1")).unwrap();
        for name in ["hour=1/b.parquet", "a.parquet", ".c.parquet", "_d.parquet"] {
            fs::write(path(name), "").unwrap();
        }
        assert_eq!(resolve(folder.path()).unwrap(), ["a.parquet", "hour=1/b.parquet"].map(path));
    }

    #[test]
    fn a_trace_has_the_name_of_its_folder_or_of_its_first_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("set")).unwrap();
        for name in ["set/a.parquet", "sda.blktrace.0"] {
            fs::write(path(name), "").unwrap();
        }
        let named = |names: &[PathBuf]| NamedTrace::resolve(names).map(|trace| trace.name);
        assert_eq!(named(&[path("set")]).unwrap(), "set");
        assert_eq!(named(&["-".into(), path("sda"), path("set")]).unwrap(), "sda");
        assert_eq!(named(&[SAMPLE.into()]).unwrap(), "two-readers");
        assert_eq!(named(&["-".into()]).unwrap(), "-");
        let trace = NamedTrace::resolve(&[path("set"), SAMPLE.into()]).unwrap();
        assert_eq!(trace.inputs, [NamedInput::File(path("set/a.parquet")), NamedInput::Sample]);
        assert_eq!(trace.files(), [path("set/a.parquet")]);
    }

    #[test]
    fn standard_input_twice_and_unknown_samples_are_usage_errors() {
        let error = |names: &[&str]| {
            let names: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
            NamedTrace::resolve(&names).unwrap_err()
        };
        let (twice, unknown) = (error(&["-", "-"]), error(&["sample:two-writers"]));
        assert_eq!(twice.to_string(), "standard input (-) can be read only once");
        assert_eq!(unknown.to_string(), "there is no sample:two-writers: sample:two-readers is the sample");
        assert!(twice.is_usage_error() && unknown.is_usage_error());
    }
}
