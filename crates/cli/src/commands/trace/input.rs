//! What the commands that read traces open: files, globs, what blktrace's `-o` was given, standard input.

use std::cmp::Ordering;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hoistway_trace::{Batch, Input, Notice, OpenOptions, ReadError, Source, Stream};

use crate::cli::trace::TraceInput;
use crate::failure::{UsageError, tell};

/// What stands between a trace's name and its CPUs' numbers.
const INFIX: &str = ".blktrace.";

/// A trace that is being read.
pub struct Opened {
    source: Box<dyn Source + Send>,
    /// What the trace is called: its first file's name, without what blktrace appends.
    pub name: String,
    /// The files that are read; none for standard input.
    pub files: Vec<PathBuf>,
}

/// Opens what was named.
pub fn open(input: &TraceInput) -> Result<Opened> {
    let options = OpenOptions { format: input.format, time_unit: input.time_unit, sector_bytes: input.sector_bytes };
    let mut inputs = Vec::new();
    let mut files = Vec::new();
    for named in &input.files {
        if named == Path::new("-") {
            if inputs.iter().any(|input| matches!(input, Input::Stream(_))) {
                return Err(UsageError("standard input (-) can be read only once".into()).into());
            }
            inputs.push(Input::Stream(Stream { name: "standard input".into(), read: Box::new(io::stdin()) }));
            continue;
        }
        let found = find(named)?;
        inputs.extend(found.iter().cloned().map(Input::Path));
        files.extend(found);
    }
    let name = files.first().map_or_else(|| "-".to_owned(), |file| name_of(file));
    tell_of_siblings(&input.files);
    Ok(Opened { source: hoistway_trace::open(inputs, &options)?, name, files })
}

impl Source for Opened {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        self.source.next(batch)
    }

    fn notices(&mut self) -> Vec<Notice> {
        self.source.notices()
    }
}

/// Tells on standard error what was noticed of a trace; to be called once it is read.
pub fn tell_notices(source: &mut dyn Source) {
    source.notices().iter().for_each(|notice| tell(&format!("note: {notice}")));
}

/// The files that a name stands for.
fn find(named: &Path) -> Result<Vec<PathBuf>> {
    if named.is_dir() {
        let files = named.display();
        return Err(UsageError(format!("{files} is a folder: name its files, as in '{files}/*'")).into());
    }
    if named.exists() {
        return Ok(vec![named.to_owned()]);
    }
    let mut files = of_cpus(named)?;
    let pattern = named.to_str().filter(|text| text.contains(['*', '?', '[']));
    if let (Some(pattern), true) = (pattern, files.is_empty()) {
        let matches = glob::glob(pattern).map_err(|error| UsageError(format!("{pattern}: {error}")))?;
        files = matches.collect::<Result<_, _>>()?;
        files.retain(|file| file.is_file());
    }
    files.sort_by(|one, other| in_order(one, other).then_with(|| one.cmp(other)));
    refuse_twice(&files)?;
    if files.is_empty() {
        bail!("{name}: there is no such file, and none called {name}{INFIX}0", name = named.display());
    }
    Ok(files)
}

/// A file and what it was packed into, or unpacked from, hold the same events.
fn refuse_twice(files: &[PathBuf]) -> Result<()> {
    for (one, other) in files.iter().zip(files.iter().skip(1)) {
        if one.parent() == other.parent() && split(one).is_some_and(|cpu| Some(cpu) == split(other)) {
            let (one, other) = (one.display(), other.display());
            bail!("{one}: {other} is there as well, of the same CPU: move one of them away, or name the files to read");
        }
    }
    Ok(())
}

/// The files of the CPUs of a trace of this name.
fn of_cpus(named: &Path) -> Result<Vec<PathBuf>> {
    let Some(stem) = named.file_name().and_then(|name| name.to_str()) else { return Ok(Vec::new()) };
    let folder = named.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| folder.display().to_string())?.path();
        if split(&path).is_some_and(|(name, _)| name == stem) {
            files.push(path.strip_prefix("./").map_or_else(|_| path.clone(), Path::to_path_buf));
        }
    }
    Ok(files)
}

/// The name of a trace and the CPU's number, of a file as blktrace calls them, compressed or not.
fn split(file: &Path) -> Option<(&str, u32)> {
    let name = file.file_name()?.to_str()?;
    let name = [".gz", ".zst", ".xz"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
    let (stem, cpu) = name.rsplit_once(INFIX)?;
    Some((stem, cpu.parse().ok()?))
}

/// What the trace of a file is called.
fn name_of(file: &Path) -> String {
    match split(file) {
        Some((name, _)) => name.to_owned(),
        None => file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned(),
    }
}

/// CPU 2 comes before CPU 10.
fn in_order(one: &Path, other: &Path) -> Ordering {
    let key = |file: &Path| split(file).map(|(name, cpu)| (name.to_owned(), cpu));
    match (key(one), key(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => one.cmp(other),
    }
}

/// Whoever names one file of a CPU and no other has perhaps forgotten the others.
fn tell_of_siblings(named: &[PathBuf]) {
    let [file] = named else { return };
    let Some((name, _)) = split(file).filter(|_| file.is_file()) else { return };
    let all = file.with_file_name(name);
    if let Ok(files) = of_cpus(&all)
        && files.len() > 1
    {
        let (count, all) = (files.len(), all.display());
        tell(&format!("note: {}: one of {count} CPUs; `{all}` reads them all", file.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_the_files_of_all_cpus_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["sda.blktrace.10", "sda.blktrace.2", "sda.blktrace.0.xz", "sdb.blktrace.0", "sda.blktrace.txt"] {
            fs::write(path(name), "").unwrap();
        }
        let expected = ["sda.blktrace.0.xz", "sda.blktrace.2", "sda.blktrace.10"].map(path);
        assert_eq!(find(&path("sda")).unwrap(), expected);
        assert_eq!(find(&path("sd[ab].blktrace.0*")).unwrap(), ["sda.blktrace.0.xz", "sdb.blktrace.0"].map(path));
        assert_eq!(find(&path("sdb.blktrace.0")).unwrap(), [path("sdb.blktrace.0")]);
        assert_eq!(name_of(&expected[0]), "sda");
        fs::write(path("sda.blktrace.2.gz"), "").unwrap();
        let twice = find(&path("sda")).unwrap_err().to_string();
        assert!(twice.contains("sda.blktrace.2.gz is there as well, of the same CPU"), "{twice}");
        let error = find(&path("sdc")).unwrap_err().to_string();
        assert!(error.ends_with("/sdc.blktrace.0"), "{error}");
        assert!(find(folder.path()).unwrap_err().is::<UsageError>());
    }
}
