//! Random changes of a file by all available operations, compared with a model in memory.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hoistway_mount::Buffer;
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;
use rustix::fs::{
    Advice, CWD, FallocateFlags, Mode, OFlags, copy_file_range, fadvise, fallocate, fdatasync, fsync, ftruncate, openat,
};
use rustix::io::{Errno, pread, pwrite};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

/// Maximum size of the file in bytes.
const LARGEST: usize = 600_000;

/// A run of random operations on one file.
pub struct Exercise {
    path: PathBuf,
    file: OwnedFd,
    /// The file was opened with `O_APPEND`.
    appends: bool,
    model: Vec<u8>,
    random: Pcg64,
    done: Vec<String>,
    count: u64,
}

/// Returns a seed that no other process or call has used.
pub fn new_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one("a seed")
}

impl Exercise {
    pub fn new(path: &Path, seed: u64) -> Exercise {
        let file = open(path, OFlags::CREATE | OFlags::EXCL);
        let random = Pcg64::seed_from_u64(seed);
        Exercise { path: path.into(), file, appends: false, model: Vec::new(), random, done: Vec::new(), count: 0 }
    }

    /// Runs for a while, at least one round. Returns the number of operations, or the first
    /// mismatch.
    pub fn run(&mut self, time: Duration) -> Result<u64, String> {
        let until = Instant::now() + time;
        loop {
            for _ in 0..50 {
                self.count += 1;
                self.step().map_err(|wrong| self.report(&wrong))?;
            }
            self.compare_all().map_err(|wrong| self.report(&wrong))?;
            if Instant::now() >= until {
                return Ok(self.count);
            }
        }
    }

    fn report(&self, wrong: &str) -> String {
        let last = &self.done[self.done.len().saturating_sub(30)..];
        format!("operation {}: {wrong}; the last operations:\n{}", self.count, last.join("\n"))
    }

    fn step(&mut self) -> Result<(), String> {
        match self.random.random_range(0..100) {
            0..20 => self.read(),
            20..40 => self.write(),
            40..48 => self.read_mapped(),
            48..58 => self.write_mapped(),
            58..66 => self.truncate(),
            66..71 => self.punch(),
            71..76 => self.zero(),
            76..80 => self.allocate(),
            80..85 => self.copy(),
            85..88 => self.direct(),
            88..91 => self.reopen(),
            91..94 => self.append(),
            94..97 => self.sync(),
            _ => self.forget(),
        }
    }

    fn note(&mut self, text: String) {
        if self.done.len() > 200 {
            self.done.drain(..100);
        }
        self.done.push(format!("{}: {text} (size {})", self.count, self.model.len()));
    }

    /// Returns a range that starts within the file, most often a short one.
    fn range(&mut self) -> (usize, usize) {
        let start = self.random.random_range(0..=self.model.len());
        let most = if self.random.random_ratio(1, 4) { LARGEST } else { 9_000 };
        (start, self.random.random_range(1..=most).min(self.model.len() - start))
    }

    /// Returns a range that may exceed the end of the file.
    fn wide_range(&mut self) -> (usize, usize) {
        let start = self.random.random_range(0..(self.model.len() + 20_000).min(LARGEST - 1));
        let most = if self.random.random_ratio(1, 4) { 200_000 } else { 9_000 };
        (start, self.random.random_range(1..=most).min(LARGEST - start))
    }

    fn fresh(&mut self, length: usize) -> Vec<u8> {
        let mut data = vec![0; length];
        self.random.fill_bytes(&mut data);
        data
    }

    fn put(&mut self, at: usize, data: &[u8]) {
        let end = at + data.len();
        if end > self.model.len() {
            self.model.resize(end, 0);
        }
        self.model[at..end].copy_from_slice(data);
    }

    fn compare(&self, what: &str, at: usize, found: &[u8]) -> Result<(), String> {
        let expected = &self.model[at..at + found.len()];
        match found.iter().zip(expected).position(|(found, expected)| found != expected) {
            None => Ok(()),
            Some(first) => {
                let wrong = found.iter().zip(expected).filter(|(found, expected)| found != expected).count();
                let (is, should) = (found[first], expected[first]);
                Err(format!(
                    "{what} at {at}: byte {} is {is:#x} and should be {should:#x}; {wrong} of {} are wrong",
                    at + first,
                    found.len()
                ))
            }
        }
    }

    fn read(&mut self) -> Result<(), String> {
        let (at, length) = self.range();
        self.note(format!("read {at} {length}"));
        let mut buffer = vec![0; length + 100];
        let read = read_all(&self.file, &mut buffer, at)?;
        let expected = buffer.len().min(self.model.len() - at);
        if read != expected {
            return Err(format!("{read} bytes were read at {at}, not {expected}"));
        }
        self.compare("read", at, &buffer[..read])
    }

    fn write(&mut self) -> Result<(), String> {
        if self.appends {
            return self.append();
        }
        let (at, length) = self.wide_range();
        self.note(format!("write {at} {length}"));
        let data = self.fresh(length);
        write_all(&self.file, &data, at)?;
        self.put(at, &data);
        Ok(())
    }

    fn append(&mut self) -> Result<(), String> {
        if self.model.len() > LARGEST - 10_000 {
            return self.truncate();
        }
        let length = self.random.random_range(1..8_000);
        self.note(format!("append {length}"));
        let data = self.fresh(length);
        let file = openat(CWD, &self.path, OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC, Mode::empty())
            .map_err(failed("open"))?;
        let written = rustix::io::write(&file, &data).map_err(failed("append"))?;
        if written != length {
            return Err(format!("{written} of {length} bytes were appended"));
        }
        let at = self.model.len();
        self.put(at, &data);
        Ok(())
    }

    fn mapped(
        &mut self,
        protection: ProtFlags,
        act: impl FnOnce(&mut Self, &mut [u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        let length = self.model.len();
        if length == 0 {
            return Ok(());
        }
        // SAFETY: a new mapping at an address of the kernel's choice; it is unmapped below, and the
        // file is not truncated meanwhile.
        let start = unsafe { mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, &self.file, 0) }
            .map_err(failed("mmap"))?;
        // SAFETY: the mapping has this length, and no other reference to it exists.
        let pages = unsafe { std::slice::from_raw_parts_mut(start.cast::<u8>(), length) };
        let result = act(self, pages);
        if protection.contains(ProtFlags::WRITE) && self.random.random_ratio(1, 2) {
            // SAFETY: the range is inside the mapping.
            unsafe { msync(start, length, MsyncFlags::SYNC) }.map_err(failed("msync"))?;
        }
        // SAFETY: the mapping is not used after this.
        unsafe { munmap(start, length) }.map_err(failed("munmap"))?;
        result
    }

    fn read_mapped(&mut self) -> Result<(), String> {
        let (at, length) = self.range();
        self.note(format!("read mapped {at} {length}"));
        self.mapped(ProtFlags::READ, |this, pages| this.compare("a mapping", at, &pages[at..at + length]))
    }

    fn write_mapped(&mut self) -> Result<(), String> {
        let (at, length) = self.range();
        self.note(format!("write mapped {at} {length}"));
        let data = self.fresh(length);
        self.mapped(ProtFlags::READ | ProtFlags::WRITE, |this, pages| {
            pages[at..at + length].copy_from_slice(&data);
            this.put(at, &data);
            Ok(())
        })
    }

    fn truncate(&mut self) -> Result<(), String> {
        let size = if self.random.random_ratio(1, 10) { 0 } else { self.random.random_range(0..LARGEST) };
        self.note(format!("truncate {size}"));
        if self.random.random_ratio(1, 2) {
            ftruncate(&self.file, size as u64).map_err(failed("ftruncate"))?;
        } else {
            File::options()
                .write(true)
                .open(&self.path)
                .and_then(|file| file.set_len(size as u64))
                .map_err(|error| error.to_string())?;
        }
        self.model.resize(size, 0);
        Ok(())
    }

    fn punch(&mut self) -> Result<(), String> {
        let (at, length) = self.range();
        if length == 0
            || !self.fallocates("punch", FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, length)?
        {
            return Ok(());
        }
        self.model[at..at + length].fill(0);
        Ok(())
    }

    fn zero(&mut self) -> Result<(), String> {
        let (at, length) = self.wide_range();
        if self.fallocates("zero", FallocateFlags::ZERO_RANGE, at, length)? {
            self.put(at, &vec![0; length]);
        }
        Ok(())
    }

    fn allocate(&mut self) -> Result<(), String> {
        let (at, length) = self.wide_range();
        if self.fallocates("allocate", FallocateFlags::empty(), at, length)? && at + length > self.model.len() {
            self.model.resize(at + length, 0);
        }
        Ok(())
    }

    /// Returns true if the file system supports the operation.
    fn fallocates(&mut self, what: &str, flags: FallocateFlags, at: usize, length: usize) -> Result<bool, String> {
        self.note(format!("{what} {at} {length}"));
        match fallocate(&self.file, flags, at as u64, length as u64) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP) => Ok(false),
            Err(error) => Err(format!("{what}: {error}")),
        }
    }

    fn copy(&mut self) -> Result<(), String> {
        let (from, length) = self.range();
        let to = self.random.random_range(0..LARGEST - length);
        if self.appends || length == 0 || (from < to + length && to < from + length) {
            return Ok(());
        }
        self.note(format!("copy {from} {length} to {to}"));
        let (mut at, mut into, mut done) = (from as u64, to as u64, 0);
        while done < length {
            match copy_file_range(&self.file, Some(&mut at), &self.file, Some(&mut into), length - done)
                .map_err(failed("copy_file_range"))?
            {
                0 => return Err(format!("the copy stopped after {done} of {length}")),
                more => done += more,
            }
        }
        let data = self.model[from..from + length].to_vec();
        self.put(to, &data);
        Ok(())
    }

    fn direct(&mut self) -> Result<(), String> {
        const BLOCK: usize = 4096;
        let blocks = self.model.len() / BLOCK;
        let file = match openat(CWD, &self.path, OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC, Mode::empty()) {
            Err(Errno::INVAL) => return Ok(()),
            file => file.map_err(failed("open"))?,
        };
        if blocks == 0 {
            return Ok(());
        }
        let at = self.random.random_range(0..blocks) * BLOCK;
        let length = self.random.random_range(1..=(blocks - at / BLOCK).min(16)) * BLOCK;
        if self.random.random_ratio(1, 2) {
            self.note(format!("direct read {at} {length}"));
            let mut buffer = Buffer::new(length);
            let read = read_all(&file, &mut buffer, at)?;
            if read != length {
                return Err(format!("{read} of {length} bytes were read directly"));
            }
            return self.compare("a direct read", at, &buffer);
        }
        self.note(format!("direct write {at} {length}"));
        let data = self.fresh(length);
        write_all(&file, &Buffer::from(&data[..]), at)?;
        self.put(at, &data);
        Ok(())
    }

    fn reopen(&mut self) -> Result<(), String> {
        self.appends = self.random.random_ratio(1, 8);
        self.note(format!("reopen, append {}", self.appends));
        self.file = open(&self.path, if self.appends { OFlags::APPEND } else { OFlags::empty() });
        Ok(())
    }

    fn sync(&mut self) -> Result<(), String> {
        self.note("sync".into());
        if self.random.random_ratio(1, 2) { fsync(&self.file) } else { fdatasync(&self.file) }.map_err(failed("sync"))
    }

    /// Drops the cached pages of the file.
    fn forget(&mut self) -> Result<(), String> {
        self.note("forget".into());
        fdatasync(&self.file).map_err(failed("fdatasync"))?;
        fadvise(&self.file, 0, None, Advice::DontNeed).map_err(failed("fadvise"))
    }

    /// Compares the whole file with the model.
    pub fn compare_all(&self) -> Result<(), String> {
        let size = rustix::fs::fstat(&self.file).map_err(failed("fstat"))?.st_size as usize;
        if size != self.model.len() {
            return Err(format!("the size is {size} and should be {}", self.model.len()));
        }
        let mut buffer = vec![0; size + 1];
        let read = read_all(&self.file, &mut buffer, 0)?;
        if read != size {
            return Err(format!("{read} of {size} bytes were read"));
        }
        self.compare("the whole file", 0, &buffer[..size])
    }

    /// Returns the expected contents of the file.
    pub fn model(&self) -> &[u8] {
        &self.model
    }
}

fn open(path: &Path, flags: OFlags) -> OwnedFd {
    openat(CWD, path, flags | OFlags::RDWR | OFlags::CLOEXEC, Mode::from_raw_mode(0o644)).expect("the file opens")
}

fn failed(what: &'static str) -> impl Fn(Errno) -> String {
    move |error| format!("{what}: {error}")
}

fn read_all(file: impl AsFd, buffer: &mut [u8], at: usize) -> Result<usize, String> {
    let mut done = 0;
    while done < buffer.len() {
        match pread(&file, &mut buffer[done..], (at + done) as u64).map_err(failed("pread"))? {
            0 => break,
            more => done += more,
        }
    }
    Ok(done)
}

fn write_all(file: impl AsFd, data: &[u8], at: usize) -> Result<(), String> {
    let mut done = 0;
    while done < data.len() {
        done += pwrite(&file, &data[done..], (at + done) as u64).map_err(failed("pwrite"))?;
    }
    Ok(())
}
