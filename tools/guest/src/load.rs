//! Verified load: threads that write cells to a device and threads that read them back.
//!
//! Each writer has a region of the device. A table has, for every cell, the sequence numbers of the
//! last submitted and of the last completed write; a buffered write is complete after fsync. A
//! reader compares a cell with the table if no write to it was in flight before or after the read.
//! At the end all cells are compared. A write that failed leaves its cells undetermined until the
//! next one succeeds.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::cell::{self, SIZE};
use crate::prng::Prng;
use crate::protocol::Counts;
use crate::system::{self, AlignedBuffer, Caching};

/// The most cells of one write or read.
const RUN_MAX: u64 = 64;
/// The messages about damage that are kept.
const MESSAGES_MAX: usize = 12;
/// The time between two requests of a thread in the I/O class of real time.
const REAL_TIME_PAUSE: Duration = Duration::from_millis(20);
/// The time between two requests of a thread after an error, so that a device without a disk is not
/// asked in a busy loop.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(5);

/// The parameters of a load.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The device.
    pub path: PathBuf,
    /// The bytes of the device that are used.
    pub bytes: u64,
    /// The number of writers; a third of them write through the page cache and fsync.
    pub writers: u64,
    /// The number of readers.
    pub readers: u64,
    /// True if errors of reads and writes are expected.
    pub errors_allowed: bool,
    /// The seed of the random choices.
    pub seed: u64,
    /// A fault of the load itself that the verification must find.
    pub planted: Option<Planted>,
}

/// A fault of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A write is left out.
    Lost,
    /// A cell is written to the next address.
    Misplaced,
}

impl Setup {
    /// Twelve writers and twelve readers on the first 24 MiB of a device.
    pub fn new(path: &Path, seed: u64) -> Setup {
        Setup {
            path: path.to_owned(),
            bytes: 24 << 20,
            writers: 12,
            readers: 12,
            errors_allowed: false,
            seed,
            planted: None,
        }
    }
}

/// The state of a cell: the sequence numbers of its last submitted and last completed write.
#[derive(Debug, Default)]
struct CellState {
    submitted: AtomicU64,
    completed: AtomicU64,
}

impl CellState {
    /// The sequence number if no write is in flight or undetermined.
    fn settled(&self) -> Option<u64> {
        let completed = self.completed.load(Ordering::SeqCst);
        (self.submitted.load(Ordering::SeqCst) == completed).then_some(completed)
    }
}

#[derive(Debug, Default)]
struct Figures {
    reads: AtomicU64,
    writes: AtomicU64,
    flushes: AtomicU64,
    checked: AtomicU64,
    undetermined: AtomicU64,
    errors: AtomicU64,
    longest_ms: AtomicU64,
}

#[derive(Debug)]
struct Shared {
    setup: Setup,
    cells: Vec<CellState>,
    stop: AtomicBool,
    figures: Figures,
    messages: Mutex<Vec<String>>,
}

/// A load that runs until it is stopped.
#[derive(Debug)]
pub struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Writes all cells once and starts the threads.
    pub fn start(setup: Setup) -> Outcome<Load> {
        let cells = (0..setup.bytes / SIZE as u64).map(|_| CellState::default()).collect();
        let shared = Arc::new(Shared {
            setup,
            cells,
            stop: AtomicBool::new(false),
            figures: Figures::default(),
            messages: Mutex::default(),
        });
        shared.fill()?;
        let mut threads = Vec::new();
        for number in 0..shared.setup.writers + shared.setup.readers {
            let shared = Arc::clone(&shared);
            let spawned = thread::Builder::new().stack_size(128 << 10).spawn(move || {
                if let Err(message) = shared.work(number) {
                    shared.report(message);
                }
            });
            threads.push(spawned.map_err(|error| format!("cannot start a thread: {error}"))?);
        }
        Ok(Load { shared, threads })
    }

    /// Returns true if damage or an error was found so far.
    pub fn has_failed(&self) -> bool {
        !self.shared.messages.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Stops the threads without reading all cells: for a device that has disappeared.
    pub fn abandon(self) -> Outcome<Counts> {
        self.end(false)
    }

    /// Stops the threads and compares all cells with the table.
    pub fn finish(self) -> Outcome<Counts> {
        self.end(true)
    }

    fn end(self, compare: bool) -> Outcome<Counts> {
        self.shared.stop.store(true, Ordering::SeqCst);
        for thread in self.threads {
            if thread.join().is_err() {
                self.shared.report("a thread of the load panicked".to_owned());
            }
        }
        if compare && let Err(message) = self.shared.compare_all() {
            self.shared.report(message);
        }
        let messages = self.shared.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if messages.is_empty() { Ok(self.shared.counts()) } else { Err(messages.join("\n")) }
    }
}

impl Shared {
    fn report(&self, message: String) {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if messages.len() < MESSAGES_MAX {
            messages.push(message);
        }
    }

    fn counts(&self) -> Counts {
        let figures = &self.figures;
        let count = |name: &str, figure: &AtomicU64| (name.to_owned(), figure.load(Ordering::SeqCst));
        Counts::from([
            count("reads", &figures.reads),
            count("writes", &figures.writes),
            count("flushes", &figures.flushes),
            count("checked_cells", &figures.checked),
            count("undetermined_cells", &figures.undetermined),
            count("io_errors", &figures.errors),
            count("longest_ms", &figures.longest_ms),
        ])
    }

    /// Writes all cells with the sequence number 1.
    fn fill(&self) -> Outcome<()> {
        let file = system::open_device(&self.setup.path, Caching::Direct)?;
        let mut buffer = AlignedBuffer::new(256 * SIZE);
        let mut at = 0u64;
        for states in self.cells.chunks(256) {
            let bytes = buffer.first(states.len() * SIZE);
            for (address, cell) in (at..).zip(bytes.chunks_exact_mut(SIZE)) {
                cell::fill(cell, address, 1);
            }
            file.write_all_at(bytes, at * SIZE as u64).map_err(|error| format!("the first write at {at}: {error}"))?;
            for state in states {
                state.submitted.store(1, Ordering::SeqCst);
                state.completed.store(1, Ordering::SeqCst);
            }
            at += states.len() as u64;
        }
        Ok(())
    }

    fn work(&self, number: u64) -> Outcome<()> {
        let prng = Prng::new(self.setup.seed.wrapping_mul(1_000_003).wrapping_add(number));
        // The class and the level differ between the threads, as between the processes of a system.
        let class = [2, 2, 2, 1, 2, 3][number as usize % 6];
        // Only a privileged process has the class of real time.
        let real_time = class == 1 && system::set_io_priority(class, number % 8).is_ok();
        if class != 1 {
            system::set_io_priority(class, number % 8)?;
        }
        // A thread of that class that always has a request may starve all others.
        let pause = if real_time { REAL_TIME_PAUSE } else { Duration::ZERO };
        if number >= self.setup.writers {
            return self.read(prng, pause);
        }
        let share = self.cells.len() as u64 / self.setup.writers;
        let region = (number * share, share);
        if number % 3 == 2 { self.write_buffered(region, prng) } else { self.write_directly(region, prng, pause) }
    }

    /// Counts the outcome of a request. Returns false after an error that is expected.
    fn outcome(&self, result: std::io::Result<()>, begun: Instant, what: impl Fn() -> String) -> Outcome<bool> {
        let elapsed = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.figures.longest_ms.fetch_max(elapsed, Ordering::SeqCst);
        match result {
            Ok(()) => Ok(true),
            Err(_) if self.setup.errors_allowed => {
                self.figures.errors.fetch_add(1, Ordering::SeqCst);
                thread::sleep(PAUSE_AFTER_ERROR);
                Ok(false)
            }
            Err(error) => Err(format!("{}: {error}", what())),
        }
    }

    fn states(&self, first: u64, cells: u64) -> &[CellState] {
        let (first, cells) = (first as usize, cells as usize);
        self.cells.get(first..first + cells).unwrap_or_default()
    }

    /// Writes the next sequence numbers of a run of cells. The write is not yet complete.
    fn write_run(&self, file: &File, buffer: &mut AlignedBuffer, first: u64, cells: u64) -> Outcome<bool> {
        let bytes = buffer.first(cells as usize * SIZE);
        for ((address, state), cell) in (first..).zip(self.states(first, cells)).zip(bytes.chunks_exact_mut(SIZE)) {
            let sequence = state.submitted.fetch_add(1, Ordering::SeqCst) + 1;
            cell::fill(cell, address, sequence);
        }
        let number = self.figures.writes.fetch_add(1, Ordering::SeqCst);
        let offset = match self.setup.planted {
            Some(Planted::Lost) if number % 20 == 19 => return Ok(true),
            Some(Planted::Misplaced) if number % 20 == 19 => first + 1,
            _ => first,
        } * SIZE as u64;
        let begun = Instant::now();
        self.outcome(file.write_all_at(bytes, offset), begun, || format!("write of {cells} cells at {first}"))
    }

    fn complete(&self, first: u64, cells: u64) {
        for state in self.states(first, cells) {
            state.completed.store(state.submitted.load(Ordering::SeqCst), Ordering::SeqCst);
        }
    }

    fn write_directly(&self, (start, share): (u64, u64), mut prng: Prng, pause: Duration) -> Outcome<()> {
        let file = system::open_device(&self.setup.path, Caching::Direct)?;
        let mut buffer = AlignedBuffer::new(RUN_MAX as usize * SIZE);
        let mut next = start;
        while !self.stop.load(Ordering::SeqCst) {
            let cells = run_length(&mut prng);
            // Half of the writes continue where the previous one ended, so that requests merge.
            let first = match prng.below(2) {
                0 if next + cells <= start + share => next,
                _ => start + prng.below(share - cells),
            };
            if self.write_run(&file, &mut buffer, first, cells)? {
                self.complete(first, cells);
            }
            next = first + cells;
            thread::sleep(pause);
        }
        Ok(())
    }

    fn write_buffered(&self, (start, share): (u64, u64), mut prng: Prng) -> Outcome<()> {
        let file = system::open_device(&self.setup.path, Caching::Buffered)?;
        let direct = system::open_device(&self.setup.path, Caching::Direct)?;
        let mut buffer = AlignedBuffer::new(RUN_MAX as usize * SIZE);
        while !self.stop.load(Ordering::SeqCst) {
            let mut runs = Vec::new();
            let mut written = true;
            for _ in 0..prng.between(1, 16) {
                let cells = run_length(&mut prng);
                let first = start + prng.below(share - cells);
                written &= self.write_run(&file, &mut buffer, first, cells)?;
                runs.push((first, cells));
            }
            let begun = Instant::now();
            self.figures.flushes.fetch_add(1, Ordering::SeqCst);
            written &= self.outcome(file.sync_data(), begun, || format!("fdatasync of the region at {start}"))?;
            if !written {
                continue;
            }
            for (first, cells) in &runs {
                self.complete(*first, *cells);
            }
            let Some((first, cells)) = prng.pick(&runs).copied() else { continue };
            self.read_run(&direct, &mut buffer, first, cells)?;
        }
        Ok(())
    }

    fn read(&self, mut prng: Prng, pause: Duration) -> Outcome<()> {
        let file = system::open_device(&self.setup.path, Caching::Direct)?;
        let mut buffer = AlignedBuffer::new(RUN_MAX as usize * SIZE);
        let all = self.cells.len() as u64;
        let mut next = 0;
        while !self.stop.load(Ordering::SeqCst) {
            let cells = run_length(&mut prng);
            let first = match prng.below(3) {
                0 => prng.below(all - cells),
                _ if next + cells <= all => next,
                _ => 0,
            };
            self.read_run(&file, &mut buffer, first, cells)?;
            next = first + cells;
            thread::sleep(pause);
        }
        Ok(())
    }

    /// Reads a run of cells and checks those without a write in flight.
    fn read_run(&self, file: &File, buffer: &mut AlignedBuffer, first: u64, cells: u64) -> Outcome<()> {
        let states = self.states(first, cells);
        let before: Vec<Option<u64>> = states.iter().map(CellState::settled).collect();
        let bytes = buffer.first(cells as usize * SIZE);
        let begun = Instant::now();
        self.figures.reads.fetch_add(1, Ordering::SeqCst);
        let what = || format!("read of {cells} cells at {first}");
        if !self.outcome(file.read_exact_at(bytes, first * SIZE as u64), begun, what)? {
            return Ok(());
        }
        let mut checked = 0;
        for (((address, state), before), cell) in (first..).zip(states).zip(before).zip(bytes.chunks_exact(SIZE)) {
            let Some(sequence) = before.filter(|_| state.settled() == before) else { continue };
            checked += 1;
            if let Err(damage) = cell::check(cell, address, sequence) {
                self.report(format!("cell {address} of {}: {damage}", self.setup.path.display()));
            }
        }
        self.figures.checked.fetch_add(checked, Ordering::SeqCst);
        Ok(())
    }

    /// Reads all cells from the device, not from the cache.
    fn compare_all(&self) -> Outcome<()> {
        system::drop_caches()?;
        let file = system::open_device(&self.setup.path, Caching::Direct)?;
        let mut buffer = AlignedBuffer::new(RUN_MAX as usize * SIZE);
        let all = self.cells.len() as u64;
        let mut first = 0;
        while first < all {
            let cells = RUN_MAX.min(all - first);
            self.read_run(&file, &mut buffer, first, cells)?;
            first += cells;
        }
        let undetermined = self.cells.iter().filter(|state| state.settled().is_none()).count() as u64;
        self.figures.undetermined.store(undetermined, Ordering::SeqCst);
        if undetermined > 0 && !self.setup.errors_allowed {
            return Err(format!("{undetermined} cells have a write that did not complete"));
        }
        Ok(())
    }
}

/// The cells of a request: mostly few, at times many.
fn run_length(prng: &mut Prng) -> u64 {
    prng.pick(&[1, 1, 1, 2, 4, 8, 16, 32, RUN_MAX]).copied().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a load on a file. Its file system takes direct I/O or the test has nothing to show.
    fn run(planted: Option<Planted>) -> Option<Outcome<Counts>> {
        let name = format!("load-{planted:?}-{}", std::process::id());
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(name);
        let file = File::create(&path).expect("the target directory is writable");
        file.set_len(4 << 20).expect("the file system has room");
        if system::open_device(&path, Caching::Direct).is_err() {
            println!("SKIPPED: the file system of {} has no direct I/O", path.display());
            return None;
        }
        let setup = Setup { bytes: 4 << 20, writers: 3, readers: 2, planted, ..Setup::new(&path, 1) };
        let load = Load::start(setup).expect("the file can be written");
        let begun = Instant::now();
        while !load.has_shown(planted) && begun.elapsed() < Duration::from_secs(120) {
            thread::sleep(Duration::from_millis(10));
        }
        load.shared.stop.store(true, Ordering::SeqCst);
        let outcome = load.abandon_compared();
        let _ = std::fs::remove_file(&path);
        Some(outcome)
    }

    /// What the verification says of a planted fault.
    fn damage_of(planted: Planted) -> &'static str {
        match planted {
            Planted::Lost => "lost write: sequence",
            Planted::Misplaced => "misplaced: the cell of address",
        }
    }

    impl Load {
        /// Returns true if the load did enough to judge it, or has found the planted fault.
        fn has_shown(&self, planted: Option<Planted>) -> bool {
            let messages = self.shared.messages.lock().expect("no thread panics");
            let figures = &self.shared.figures;
            let at_least = |figure: &AtomicU64, least| figure.load(Ordering::SeqCst) >= least;
            match planted {
                Some(planted) => messages.iter().any(|message| message.contains(damage_of(planted))),
                None if !messages.is_empty() => true,
                None => at_least(&figures.writes, 100) && at_least(&figures.reads, 10) && at_least(&figures.checked, 1),
            }
        }

        /// Ends like [`Load::finish`], without the caches of the whole machine.
        fn abandon_compared(mut self) -> Outcome<Counts> {
            for thread in self.threads.drain(..) {
                thread.join().expect("no thread panics");
            }
            let file = system::open_device(&self.shared.setup.path, Caching::Direct)?;
            let mut buffer = AlignedBuffer::new(SIZE);
            for first in 0..self.shared.cells.len() as u64 {
                self.shared.read_run(&file, &mut buffer, first, 1)?;
            }
            self.end(false)
        }
    }

    #[test]
    fn a_load_on_a_sound_file_finds_no_damage() {
        if let Some(outcome) = run(None) {
            let counts = outcome.expect("a file keeps what is written");
            assert!(counts["writes"] > 0 && counts["reads"] > 0 && counts["checked_cells"] > 1024, "{counts:?}");
        }
    }

    #[test]
    fn a_write_that_is_left_out_is_found_as_lost() {
        if let Some(outcome) = run(Some(Planted::Lost)) {
            let message = outcome.expect_err("a write was left out");
            assert!(message.contains(damage_of(Planted::Lost)), "{message}");
        }
    }

    #[test]
    fn a_write_to_another_address_is_found_as_misplaced() {
        if let Some(outcome) = run(Some(Planted::Misplaced)) {
            let message = outcome.expect_err("a write went to another address");
            assert!(message.contains(damage_of(Planted::Misplaced)), "{message}");
        }
    }
}
