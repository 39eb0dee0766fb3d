//! Options on files, on the region of a job in them, and on the amount of data.

use std::ops::RangeInclusive;

use super::{
    Job,
    distribution::{Distribution, distribution},
    option::{Subject, option, switch},
};
use crate::{
    size::Size,
    units::KbBase,
    values::{Fault, NOT_SUPPORTED, Value, one_of, put, unless_zero},
};

#[rustfmt::skip]
pub(crate) const SUBJECT: Subject = Subject {
    heading: "Files and amounts of data",
    options: &[
        option("size", &[], |job, v| put(&mut job.region.size, v.size().map(unless_nothing)), "a size or a percentage", "all of the files or the device", "The region of the job, and the bytes that it moves unless `io_size` is given."),
        option("io_size", &["io_limit"], |job, v| put(&mut job.amount.io_size, v.size().map(unless_nothing)), "a size, or a percentage of the size", "`size`", "The bytes to move. If they are more than the files have, the job begins again at the end of the files."),
        option("filesize", &[], |job, v| put(&mut job.region.filesize, v.range(|part| part.count(1)).map(Some)), "a size or `LOW-HIGH`", "`size` divided among the files", "The size of each file."),
        option("offset", &["fileoffset"], |job, v| put(&mut job.region.offset, v.size()), "a size or a percentage", "`0`", "The start of the region."),
        option("offset_increment", &[], |job, v| put(&mut job.region.offset_increment, v.size()), "a size or a percentage", "`0`", "What is added to `offset` for each further clone."),
        option("offset_align", &[], |job, v| put(&mut job.region.offset_align, v.count(0)), "a size", "the smallest block size", "The bytes that an offset in percent is rounded up to."),
        option("filename", &[], |job, v| names(v).map(|names| job.files.filename.extend(names)), "names separated by colons", "made from `filename_format`", "The files or devices. Names of a section are added to those of the sections above."),
        option("filename_format", &[], |job, v| put(&mut job.files.filename_format, Ok(v.text.into())), "text", "`$jobname.$jobnum.$filenum`", "The pattern of the names of files without `filename`."),
        option("directory", &[], |job, v| put(&mut job.files.directory, names(v)), "names separated by colons", "none", "The directories of the files; clones take turns."),
        option("nrfiles", &["nr_files"], |job, v| put(&mut job.files.nrfiles, v.count_u32(0).map(|files| files.max(1))), "a number", "`1`", "The number of files of each clone, at least 1 unless files are named."),
        option("openfiles", &[], |job, v| put(&mut job.files.openfiles, v.count_u32(0)), "a number", "all", "The maximum number of files that are open at a time."),
        option("file_service_type", &[], |job, v| put(&mut job.files.file_service, file_service(v)), "`roundrobin`, `random`, `sequential`, `zipf`, `pareto`, `normal`, each with `:NUMBER`", "`roundrobin:1`", "The choice of the next file, and after how many requests it is chosen."),
        option("number_ios", &[], |job, v| put(&mut job.amount.number_ios, v.count(0).map(unless_zero)), "a number", "no limit", "The requests after which the job ends, times `loops`."),
        option("loops", &[], |job, v| put(&mut job.amount.loops, v.count_u32(0).map(|loops| loops.max(1))), "a number", "`1`", "The number of runs of the job."),
        option("fill_device", &["fill_fs"], |job, v| set_fill_device(&mut job.region, v), "`0`, `1`", "`0`", "The file is as large as 95 % of the drive, less the other files."),
        switch("overwrite", &[], |job| &mut job.files.overwrite, "`0`", "The files have written data before the job starts, like files that a job reads. `fdatasync` after an overwrite then has no new blocks to commit to a journal."),
        switch("unlink", &[], |job| &mut job.files.unlink, "`0`", "The job ends with the removal of its files."),
        switch("unlink_each_loop", &[], |job| &mut job.files.unlink_each_loop, "`0`", "Each of the `loops` ends with the removal of the files."),
        switch("create_only", &[], |job| &mut job.files.create_only, "`0`", "The job is left out: its files exist from the start."),
        option("pre_read", &[], set_pre_read, "`0`, `1`", "`0`", "The files are in memory before the job starts."),
        option("kb_base", &[], |job, v| put(&mut job.kb_base, v.word(&[("1000", KbBase::Standard), ("1024", KbBase::Compatible)])), "`1000`, `1024`", "`1024`", "The base of the prefixes `k`, `m`, ... of all sizes; with 1000, `ki` is 1024."),
    ],
};

/// The part of its files that a job works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Size of the region, and the bytes to move unless `io_size` is set. Without it `filesize` or
    /// the device named by `filename` decides; `fill_device` makes it 100 %.
    pub size: Option<Size>,
    /// The size of each file, in bytes.
    pub filesize: Option<RangeInclusive<u64>>,
    /// Start of the region. A percentage is of the file.
    pub offset: Size,
    /// Increment of `offset` from one clone of the job to the next.
    pub offset_increment: Size,
    /// Bytes that a percentage offset is rounded up to; 0 means the smallest block size.
    pub offset_align: u64,
    /// True if the job goes on until the drive is full (`fill_device`).
    pub fill_device: bool,
}

/// The bytes and requests of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amount {
    /// The bytes to move, if not `size`. A percentage is of `size`.
    pub io_size: Option<Size>,
    /// Number of requests after which the job ends.
    pub number_ios: Option<u64>,
    /// Number of runs of the job, at least 1.
    pub loops: u32,
}

/// The files or devices of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Files {
    /// The files or devices; empty if names are generated ([`Job::files_of_clone`]).
    pub filename: Vec<String>,
    /// The pattern of generated names.
    pub filename_format: String,
    /// Directories of the files; clones take turns.
    pub directory: Vec<String>,
    /// Number of files, at least 1; without effect if `filename` is given.
    pub nrfiles: u32,
    /// Most files that are open at a time; 0 means all.
    pub openfiles: u32,
    /// The choice of the next file.
    pub file_service: FileService,
    /// True if the files have written data before the job starts, also if no job reads them.
    pub overwrite: bool,
    /// True if the files are in memory before the job starts (`pre_read`).
    pub pre_read: bool,
    /// True if the job ends with the removal of its files.
    pub unlink: bool,
    /// True if each pass ends with the removal of the files.
    pub unlink_each_loop: bool,
    /// True if the job only creates its files, and is left out.
    pub create_only: bool,
}

impl Default for Region {
    fn default() -> Self {
        Region {
            size: None,
            filesize: None,
            offset: Size::Bytes(0),
            offset_increment: Size::Bytes(0),
            offset_align: 0,
            fill_device: false,
        }
    }
}

impl Default for Amount {
    fn default() -> Self {
        Amount { io_size: None, number_ios: None, loops: 1 }
    }
}

impl Default for Files {
    fn default() -> Self {
        Files {
            filename: Vec::new(),
            filename_format: "$jobname.$jobnum.$filenum".into(),
            directory: Vec::new(),
            nrfiles: 1,
            openfiles: 0,
            file_service: FileService::RoundRobin(1),
            overwrite: false,
            pre_read: false,
            unlink: false,
            unlink_each_loop: false,
            create_only: false,
        }
    }
}

impl Region {
    /// The size; all of the files or the device if none was given.
    pub fn size_or_all(&self) -> Size {
        self.size.unwrap_or(Size::Percent(100))
    }
}

impl Files {
    /// The number of files of each process.
    pub fn count(&self) -> u64 {
        if self.filename.is_empty() { u64::from(self.nrfiles) } else { self.filename.len() as u64 }
    }
}

/// The choice of the next file: fio's `file_service_type`.
#[derive(Clone, Debug, PartialEq)]
pub enum FileService {
    /// `roundrobin:N`: files take turns of so many requests.
    RoundRobin(u32),
    /// `sequential`: each file is finished before the next.
    Sequential,
    /// `random:N`: a file is drawn, for so many requests.
    Random(u32),
    /// `zipf`, `pareto` and `normal`: a file is drawn by this distribution for each request.
    Drawn(Distribution),
}

/// Zero is fio's default, and means that nothing was given.
fn unless_nothing(size: Size) -> Option<Size> {
    (size != Size::Bytes(0)).then_some(size)
}

/// A device that is filled has a size: all of it.
fn set_fill_device(region: &mut Region, v: Value) -> Result<(), Fault> {
    region.fill_device = v.boolean()?;
    if region.fill_device {
        region.size.get_or_insert(Size::Percent(100));
    }
    Ok(())
}

fn set_pre_read(job: &mut Job, v: Value) -> Result<(), Fault> {
    job.files.pre_read = v.boolean()?;
    job.cache.invalidate &= !job.files.pre_read;
    Ok(())
}

/// Parses the choice of files: a word with a number of requests, or with the parameter of a
/// distribution.
fn file_service(v: Value) -> Result<FileService, Fault> {
    let (kind, parameter) = v.text.split_once(':').map_or((v.text, None), |(kind, rest)| (kind, Some(rest)));
    let requests = || parameter.map_or(Ok(1), |text| v.part(text).count_u32(1));
    match kind {
        "roundrobin" => Ok(FileService::RoundRobin(requests()?)),
        "random" => Ok(FileService::Random(requests()?)),
        "sequential" => Ok(FileService::Sequential),
        "zipf" | "pareto" | "normal" | "gauss" => {
            let (name, default) = match kind {
                "zipf" => ("zipf", "1.1"),
                "pareto" => ("pareto", "0.2"),
                _ => ("normal", "20"),
            };
            distribution(v.part(&format!("{name}:{}", parameter.unwrap_or(default)))).map(FileService::Drawn)
        }
        other => Err(one_of(other, &["roundrobin", "random", "sequential", "zipf", "pareto", "normal", "gauss"])),
    }
}

/// Parses names separated by colons; a backslash escapes a colon within a name.
fn names(v: Value) -> Result<Vec<String>, Fault> {
    let mut names = vec![String::new()];
    let mut chars = v.text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&':') => {
                chars.next();
                push(&mut names, ':');
            }
            ':' => names.push(String::new()),
            c => push(&mut names, c),
        }
    }
    names.retain(|name| !name.is_empty());
    match names.iter().any(|name| name == "-") {
        true => {
            Err(Fault::with_help(format!("the name `-` (standard input) is {NOT_SUPPORTED}"), "name a file or device"))
        }
        false if names.is_empty() => Err(Fault::new("the value is empty")),
        false => Ok(names),
    }
}

fn push(names: &mut [String], c: char) {
    if let Some(last) = names.last_mut() {
        last.push(c);
    }
}
