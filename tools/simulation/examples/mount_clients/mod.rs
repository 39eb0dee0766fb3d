//! A client process of the mount's crash test: it changes files in every way, and prints each
//! change and each sync before and after the call.

pub mod model;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use hoistway_reactor::simulated::Prng;

use self::model::{Record, Step, data};

/// The size of each client's files at first, and the largest size.
pub const FILE_BYTES: usize = 64 << 10;
const FILE_BYTES_MAX: usize = 256 << 10;
const PAGE: usize = 4096;
/// Names that each client creates and removes.
pub const NAMES: u64 = 4;

/// The names of a client's files: changed in place, appended to, and replaced as a whole.
pub fn in_place(client: u64) -> String {
    format!("data.{client}")
}

pub fn appended(client: u64) -> String {
    format!("log.{client}")
}

pub fn replaced(client: u64) -> Vec<String> {
    std::iter::once(format!("doc.{client}")).chain((0..NAMES).map(|at| format!("made.{client}.{at}"))).collect()
}

/// Runs a client until the mount ends.
pub fn run(directory: &Path, number: u64, seed: u64) {
    let prng = Prng::new(seed);
    let Ok(mut client) = Client::open(directory, number, prng) else { return };
    while client.step().is_ok() {}
}

/// A file that the client changes. After an error it is not used again.
struct Target {
    name: String,
    path: PathBuf,
    file: File,
    size: usize,
    failed: bool,
}

struct Client {
    directory: PathBuf,
    number: u64,
    prng: Prng,
    data: Target,
    log: Target,
    names_failed: bool,
    changes: u64,
}

impl Target {
    fn open(directory: &Path, name: String) -> io::Result<Target> {
        let path = directory.join(&name);
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        let size = file.metadata()?.len() as usize;
        Ok(Target { name, path, file, size, failed: false })
    }

    fn open_with(&self, flags: i32) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).custom_flags(flags).open(&self.path)
    }
}

impl Client {
    fn open(directory: &Path, number: u64, prng: Prng) -> io::Result<Client> {
        Ok(Client {
            directory: directory.into(),
            number,
            prng,
            data: Target::open(directory, in_place(number))?,
            log: Target::open(directory, appended(number))?,
            names_failed: false,
            changes: 0,
        })
    }

    fn step(&mut self) -> io::Result<()> {
        let result = match self.prng.between(0, 99) {
            0..22 => self.write(0),
            22..30 => self.write(self.prng_flag(&[libc::O_DSYNC, libc::O_SYNC])),
            30..36 => self.write(libc::O_DIRECT | libc::O_DSYNC),
            36..46 => self.append(0),
            46..52 => self.append(libc::O_DSYNC),
            52..62 => self.store(),
            62..67 => self.truncate(),
            67..85 => self.sync(),
            85..92 => self.replace(),
            _ => self.make_or_remove(),
        };
        match result {
            // The target is not used again, and the client continues with others.
            Err(error) if error.raw_os_error() == Some(libc::EIO) => {
                if self.data.failed && self.log.failed && self.names_failed { Err(error) } else { Ok(()) }
            }
            result => result,
        }
    }

    fn prng_flag(&self, of: &[i32]) -> i32 {
        of[self.changes as usize % of.len()]
    }

    /// A number that no other change of any round has.
    fn next_id(&mut self) -> u64 {
        self.changes += 1;
        self.prng.any() ^ self.number << 56 ^ self.changes
    }

    /// Prints a step, carries it out, and prints its result.
    fn record(step: Step, act: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        print(&Record::Begin(step));
        let result = act();
        print(&Record::End(result.as_ref().map_or_else(|error| error.raw_os_error().unwrap_or(libc::EIO), |()| 0)));
        result
    }

    fn write(&mut self, flags: i32) -> io::Result<()> {
        if self.data.failed {
            return Ok(());
        }
        let (unit, durable) = if flags & libc::O_DIRECT != 0 { (PAGE, true) } else { (1, flags != 0) };
        let length = (self.prng.magnitude(((32 << 10) / unit) as u64) as usize * unit).max(unit);
        let limit = if durable || self.prng.permille(300) { FILE_BYTES_MAX } else { self.data.size.max(FILE_BYTES) };
        let offset = self.prng.between(0, limit.saturating_sub(length) as u64) as usize / unit * unit;
        let id = self.next_id();
        let bytes = Aligned::new(&data(id, offset, length));
        let target = &mut self.data;
        let other = if flags == 0 { None } else { Some(target.open_with(flags)?) };
        let file = other.as_ref().unwrap_or(&target.file);
        let step = Step::Write { file: target.name.clone(), offset, length, id, durable };
        let result = Self::record(step, || file.write_all_at(bytes.get(), offset as u64));
        target.failed |= result.is_err();
        target.size = target.size.max(offset + length);
        result
    }

    fn append(&mut self, flags: i32) -> io::Result<()> {
        if self.log.failed || self.log.size > FILE_BYTES_MAX {
            return Ok(());
        }
        let length = self.prng.magnitude(8 << 10).max(1) as usize;
        let id = self.next_id();
        let target = &mut self.log;
        let offset = target.size;
        let mut file = target.open_with(libc::O_APPEND | flags)?;
        let step = Step::Write { file: target.name.clone(), offset, length, id, durable: flags != 0 };
        let result = Self::record(step, || file.write_all(&data(id, offset, length)));
        target.failed |= result.is_err();
        target.size += length;
        result
    }

    /// Stores through a mapping, and syncs the pages.
    fn store(&mut self) -> io::Result<()> {
        let target = &self.data;
        if target.failed || target.size == 0 {
            return Ok(());
        }
        let start = self.prng.between(0, target.size as u64 - 1) as usize;
        let length = (self.prng.magnitude(16 << 10) as usize).clamp(1, target.size - start);
        let id = self.next_id();
        let target = &mut self.data;
        let step = Step::Write { file: target.name.clone(), offset: start, length, id, durable: true };
        let result = Self::record(step, || store(&target.file, start, &data(id, start, length)));
        target.failed |= result.is_err();
        result
    }

    fn truncate(&mut self) -> io::Result<()> {
        if self.data.failed {
            return Ok(());
        }
        let size = self.prng.between(0, FILE_BYTES_MAX as u64) as usize;
        let target = &mut self.data;
        let step = Step::Truncate { file: target.name.clone(), size };
        let result = Self::record(step, || target.file.set_len(size as u64));
        target.failed |= result.is_err();
        target.size = size;
        result
    }

    fn sync(&mut self) -> io::Result<()> {
        let only_data = self.prng.permille(500);
        let target = if self.prng.permille(500) { &mut self.data } else { &mut self.log };
        if target.failed {
            return Ok(());
        }
        let step = Step::Sync { file: target.name.clone() };
        let result = Self::record(step, || if only_data { target.file.sync_data() } else { target.file.sync_all() });
        target.failed |= result.is_err();
        result
    }

    /// Writes a new file, syncs it, and renames it over another.
    fn replace(&mut self) -> io::Result<()> {
        self.rename_to(format!("doc.{}", self.number))
    }

    fn make_or_remove(&mut self) -> io::Result<()> {
        let name = format!("made.{}.{}", self.number, self.prng.between(0, NAMES - 1));
        let path = self.directory.join(&name);
        if self.names_failed || !path.exists() {
            return self.rename_to(name);
        }
        let result = Self::record(Step::Remove { name }, || std::fs::remove_file(path));
        self.names_failed |= result.is_err();
        result?;
        self.sync_names()
    }

    fn rename_to(&mut self, name: String) -> io::Result<()> {
        if self.names_failed {
            return Ok(());
        }
        let id = self.next_id();
        let length = self.prng.magnitude(40 << 10).max(1) as usize;
        let new = self.directory.join(format!("new.{}", self.number));
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(&data(id, 0, length))?;
            file.sync_all()
        });
        self.names_failed |= written.is_err();
        written?;
        let path = self.directory.join(&name);
        let result = Self::record(Step::Rename { name, id, length }, || std::fs::rename(new, path));
        self.names_failed |= result.is_err();
        result?;
        self.sync_names()
    }

    fn sync_names(&mut self) -> io::Result<()> {
        if !self.prng.permille(400) {
            return Ok(());
        }
        let directory = File::open(&self.directory)?;
        let result = Self::record(Step::SyncNames, || directory.sync_all());
        self.names_failed |= result.is_err();
        result
    }
}

/// Prints a record. Without a reader the client has no purpose.
fn print(record: &Record) {
    let mut output = io::stdout().lock();
    if output.write_all(record.line().as_bytes()).and_then(|()| output.flush()).is_err() {
        std::process::exit(0);
    }
}

fn store(file: &File, start: usize, data: &[u8]) -> io::Result<()> {
    use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};
    let first = start / PAGE * PAGE;
    let length = start + data.len() - first;
    let flags = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice, inside the file, which only this
    // thread truncates; it is unmapped below and not used after that.
    unsafe {
        let pages = mmap(std::ptr::null_mut(), length, flags, MapFlags::SHARED, file, first as u64)?;
        std::ptr::copy_nonoverlapping(data.as_ptr(), pages.cast::<u8>().add(start - first), data.len());
        let synced = msync(pages, length, MsyncFlags::SYNC);
        munmap(pages, length)?;
        Ok(synced?)
    }
}

/// A buffer for direct I/O.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    fn new(data: &[u8]) -> Aligned {
        let mut bytes = vec![0; data.len() + PAGE];
        let start = bytes.as_ptr().align_offset(PAGE);
        bytes[start..start + data.len()].copy_from_slice(data);
        Aligned { bytes, start, length: data.len() }
    }

    fn get(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }
}
