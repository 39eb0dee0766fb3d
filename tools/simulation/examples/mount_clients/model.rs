//! What a client recorded about its files, and the contents that a crash may leave.

use std::collections::BTreeMap;
use std::time::Instant;

/// A change or a sync that a client begins. [`Record`] adds its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Writes `data(id, offset, length)`; with `durable` its end promises durable data.
    Write { file: String, offset: usize, length: usize, id: u64, durable: bool },
    /// Changes the size of a file.
    Truncate { file: String, size: usize },
    /// Makes a file durable.
    Sync { file: String },
    /// Gives a complete and durable file with `data(id, 0, length)` this name.
    Rename { name: String, id: u64, length: usize },
    /// Removes a name.
    Remove { name: String },
    /// Makes the names of the directory durable.
    SyncNames,
}

/// A line of a client's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    Begin(Step),
    /// The step that began last has ended: 0, or its `errno`.
    End(i32),
}

impl Step {
    fn line(&self) -> String {
        match self {
            Step::Write { file, offset, length, id, durable } => {
                format!("write {file} {offset} {length} {id} {}", u8::from(*durable))
            }
            Step::Truncate { file, size } => format!("truncate {file} {size}"),
            Step::Sync { file } => format!("sync {file}"),
            Step::Rename { name, id, length } => format!("rename {name} {id} {length}"),
            Step::Remove { name } => format!("remove {name}"),
            Step::SyncNames => "names".to_owned(),
        }
    }
}

impl Record {
    pub fn line(&self) -> String {
        match self {
            Record::Begin(step) => format!("{}\n", step.line()),
            Record::End(errno) => format!("end {errno}\n"),
        }
    }

    pub fn parse(line: &str) -> Option<Record> {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        let size = |at: usize| words.get(at)?.parse::<usize>().ok();
        let text = |at: usize| words.get(at).map(|word| (*word).to_owned());
        let step = match *words.first()? {
            "end" => return Some(Record::End(words.get(1)?.parse().ok()?)),
            "write" => Step::Write {
                file: text(1)?,
                offset: size(2)?,
                length: size(3)?,
                id: number(4)?,
                durable: number(5)? == 1,
            },
            "truncate" => Step::Truncate { file: text(1)?, size: size(2)? },
            "sync" => Step::Sync { file: text(1)? },
            "rename" => Step::Rename { name: text(1)?, id: number(2)?, length: size(3)? },
            "remove" => Step::Remove { name: text(1)? },
            "names" => Step::SyncNames,
            _ => return None,
        };
        Some(Record::Begin(step))
    }
}

/// The byte that the change `id` writes at an offset.
fn byte(id: u64, offset: usize) -> u8 {
    let mut word = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (offset as u64 >> 3).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 29).wrapping_mul(0x94d0_49bb_1331_11eb);
    (word >> (8 * (offset & 7))) as u8
}

/// The data that the change `id` writes.
pub fn data(id: u64, offset: usize, length: usize) -> Vec<u8> {
    (offset..offset + length).map(|at| byte(id, at)).collect()
}

/// The guarantee on which a comparison insists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Synced data are there.
    Synced,
    /// Every change that ended without an error is there.
    Acknowledged,
}

/// A file as one client changed it.
#[derive(Default)]
struct Contents {
    now: Vec<u8>,
    /// The contents that must be there, and for each byte the number of changes before them.
    floor: Vec<u8>,
    floor_at: Vec<usize>,
    size_min: usize,
    size_max: usize,
    changes: Vec<Step>,
    /// When each change and each sync began and ended, with the number of changes so far.
    history: Vec<(Instant, usize, Record)>,
}

impl Contents {
    fn of(base: Vec<u8>) -> Contents {
        let size = base.len();
        let mut contents = Contents { now: base, size_min: size, size_max: size, ..Contents::default() };
        contents.settle();
        contents
    }

    /// All changes so far are promised.
    fn settle(&mut self) {
        self.floor.clone_from(&self.now);
        self.floor_at = vec![self.changes.len(); self.now.len()];
        (self.size_min, self.size_max) = (self.now.len(), self.now.len());
    }

    fn begin(&mut self, step: &Step) {
        let size = match step {
            Step::Write { offset, length, .. } => self.now.len().max(offset + length),
            Step::Truncate { size, .. } => *size,
            _ => return,
        };
        self.size_min = self.size_min.min(size);
        self.size_max = self.size_max.max(size);
        self.changes.push(step.clone());
    }

    fn end(&mut self, step: &Step) {
        match step {
            Step::Write { offset, length, id, durable, .. } => {
                let (offset, end, data) = (*offset, offset + length, data(*id, *offset, *length));
                self.now.resize(self.now.len().max(end), 0);
                self.now[offset..end].copy_from_slice(&data);
                if *durable {
                    let before = self.floor.len();
                    self.floor.resize(before.max(end), 0);
                    self.floor_at.resize(before.max(end), 0);
                    self.floor[offset..end].copy_from_slice(&data);
                    self.floor_at[offset..end].fill(self.changes.len());
                    self.size_min = self.size_min.max(end);
                }
            }
            Step::Truncate { size, .. } => self.now.resize(*size, 0),
            _ => {}
        }
    }

    /// Returns true if a change that is not promised may have left this byte.
    fn permits(&self, at: usize, found: u8) -> bool {
        let since = self.floor_at.get(at).copied().unwrap_or(0);
        // A size may be durable without the data before it.
        let beyond = at >= self.floor.len() && found == 0;
        beyond
            || self.changes[since..].iter().any(|change| match change {
                Step::Write { offset, length, id, .. } => {
                    (*offset..offset + length).contains(&at) && byte(*id, at) == found
                }
                Step::Truncate { size, .. } => *size <= at && found == 0,
                _ => false,
            })
    }

    fn check(&self, name: &str, found: Option<&[u8]>, explain: impl Fn(&str, usize) -> String) -> Result<(), String> {
        let found = found.ok_or_else(|| format!("the file {name} is gone"))?;
        if !(self.size_min..=self.size_max).contains(&found.len()) {
            let (size, low, high) = (found.len(), self.size_min, self.size_max);
            return Err(format!("{name} has {size} bytes and should have {low} to {high}"));
        }
        let wrong = |at: &usize| self.floor.get(*at) != Some(&found[*at]) && !self.permits(*at, found[*at]);
        let Some(first) = (0..found.len()).find(wrong) else { return Ok(()) };
        let count = (first..found.len()).filter(wrong).count();
        Err(format!(
            "{name}: {count} of {} bytes are lost, the first at {first}: it is {:#x}, and should be {:?}, or of a \
             change from {:?} on of {}:{}{}",
            found.len(),
            found[first],
            self.floor.get(first),
            self.floor_at.get(first),
            self.changes.len(),
            self.history_of(first),
            explain(name, first),
        ))
    }

    /// Adds a record to the history.
    fn note(&mut self, record: Record) {
        self.history.push((Instant::now(), self.changes.len(), record));
    }

    /// Describes what the client did to a byte, with the times before now.
    fn history_of(&self, at: usize) -> String {
        let now = Instant::now();
        let mut lines = String::new();
        let mut is_open = false;
        for (time, number, record) in &self.history {
            let text = match record {
                Record::Begin(Step::Write { offset, length, .. }) if !(*offset..offset + length).contains(&at) => {
                    is_open = false;
                    continue;
                }
                Record::Begin(step @ Step::Write { id, .. }) => format!("{step:?} with {:#x}", byte(*id, at)),
                Record::Begin(step) => format!("{step:?}"),
                Record::End(_) if !is_open => continue,
                Record::End(errno) => format!("ended with {errno}"),
            };
            is_open = matches!(record, Record::Begin(_));
            let age = now.saturating_duration_since(*time).as_secs_f64() * 1e3;
            lines += &format!("\n    -{age:.3} ms {number}: {text}");
        }
        lines
    }
}

/// The contents under a name: none, given bytes, or the data of a change.
enum Version {
    Given(Option<Vec<u8>>),
    Data(u64, usize),
}

impl Version {
    fn is(&self, found: Option<&[u8]>) -> bool {
        match self {
            Version::Given(base) => base.as_deref() == found,
            Version::Data(id, length) => found == Some(&data(*id, 0, *length)[..]),
        }
    }
}

/// A name that is replaced or removed as a whole.
struct Name {
    /// The versions that a crash may leave, oldest first.
    versions: Vec<Version>,
    /// The last change ended without an error.
    is_settled: bool,
}

/// All files of one client.
#[derive(Default)]
pub struct Model {
    files: BTreeMap<String, Contents>,
    names: BTreeMap<String, Name>,
    open: Option<Step>,
    /// Syncs that ended without an error.
    pub syncs: u64,
    /// Changes that ended without an error.
    pub changes: u64,
    /// Errors that the client received.
    pub errors: u64,
}

impl Model {
    /// Adds a file that is changed in place, with its durable contents.
    pub fn add_file(&mut self, name: &str, base: Vec<u8>) {
        self.files.insert(name.to_owned(), Contents::of(base));
    }

    /// Adds a name that is replaced as a whole, with its durable contents.
    pub fn add_name(&mut self, name: &str, base: Option<Vec<u8>>) {
        let name_model = Name { versions: vec![Version::Given(base)], is_settled: true };
        self.names.insert(name.to_owned(), name_model);
    }

    /// Applies a record under a promise.
    pub fn apply(&mut self, record: Record, promise: Promise) {
        self.note(&record);
        match record {
            Record::Begin(step) => {
                self.begin(&step);
                self.open = Some(step);
            }
            Record::End(0) => {
                if let Some(step) = self.open.take() {
                    self.end(&step, promise);
                }
            }
            Record::End(_) => {
                self.open = None;
                self.errors += 1;
            }
        }
    }

    /// Adds a record to the history of its file.
    fn note(&mut self, record: &Record) {
        let step = if let Record::Begin(step) = record { Some(step) } else { self.open.as_ref() };
        if let Some(Step::Write { file, .. } | Step::Truncate { file, .. } | Step::Sync { file }) = step
            && let Some(contents) = self.files.get_mut(file)
        {
            contents.note(record.clone());
        }
    }

    fn begin(&mut self, step: &Step) {
        match step {
            Step::Write { file, .. } | Step::Truncate { file, .. } => {
                if let Some(contents) = self.files.get_mut(file) {
                    contents.begin(step);
                }
            }
            Step::Rename { name, id, length } => self.add_version(name, Version::Data(*id, *length)),
            Step::Remove { name } => self.add_version(name, Version::Given(None)),
            Step::Sync { .. } | Step::SyncNames => {}
        }
    }

    fn add_version(&mut self, name: &str, version: Version) {
        if let Some(name) = self.names.get_mut(name) {
            name.versions.push(version);
            name.is_settled = false;
        }
    }

    fn end(&mut self, step: &Step, promise: Promise) {
        let keeps_last = |name: &mut Name| drop(name.versions.drain(..name.versions.len() - 1));
        match step {
            Step::Write { file, .. } | Step::Truncate { file, .. } => {
                self.changes += 1;
                let Some(contents) = self.files.get_mut(file) else { return };
                contents.end(step);
                if promise == Promise::Acknowledged {
                    contents.settle();
                }
            }
            Step::Sync { file } => {
                self.syncs += 1;
                self.files.get_mut(file).into_iter().for_each(Contents::settle);
            }
            Step::Rename { name, .. } | Step::Remove { name } => {
                self.changes += 1;
                let Some(name) = self.names.get_mut(name) else { return };
                name.is_settled = true;
                if promise == Promise::Acknowledged {
                    keeps_last(name);
                }
            }
            Step::SyncNames => {
                self.syncs += 1;
                self.names.values_mut().filter(|name| name.is_settled).for_each(keeps_last);
            }
        }
    }

    /// Compares what a crash left with the records. `explain` describes what happened to a byte.
    ///
    /// # Errors
    /// The first file that has lost data, or has older ones.
    pub fn check(
        &self,
        read: impl Fn(&str) -> Option<Vec<u8>>,
        explain: impl Fn(&str, usize) -> String,
    ) -> Result<(), String> {
        for (name, contents) in &self.files {
            contents.check(name, read(name).as_deref(), &explain)?;
        }
        for (name, known) in &self.names {
            let found = read(name);
            if !known.versions.iter().any(|version| version.is(found.as_deref())) {
                let size = found.map_or("gone".to_owned(), |found| format!("{} bytes of another version", found.len()));
                return Err(format!("{name} is {size}; {} versions are permitted", known.versions.len()));
            }
        }
        Ok(())
    }
}
