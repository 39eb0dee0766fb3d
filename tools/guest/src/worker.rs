//! The worker processes of campaigns.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use crate::Outcome;
use crate::cell::{self, SIZE};
use crate::kernel_log::LogReader;
use crate::player;
use crate::prng::Prng;
use crate::system::{self, AlignedBuffer, Caching};

/// The time of a player that does not count.
const START: Duration = Duration::from_secs(3);
/// The cells of the slice of a worker.
pub const SLICE_CELLS: u64 = 8;

/// Runs a worker by its arguments.
pub fn run(arguments: &[String]) -> Outcome<()> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is not a number"));
    match arguments.as_slice() {
        ["worker", device, index, operations, seed, mode] => {
            verify_slice(Path::new(device), number(index)?, number(operations)?, number(seed)?, mode)
        }
        ["dirty", device, start, mib, rounds] => {
            dirty(Path::new(device), number(start)?, number(mib)?, number(rounds)?)
        }
        ["copy", from, to] => player::copy(Path::new(from), Path::new(to)),
        ["play", path, rate, seconds, class] => {
            system::set_io_priority(number(class)?, 4)?;
            // A reservation and the statistics of the elevator begin with the first requests.
            player::play(Path::new(path), number(rate)?, START)?;
            let played = player::play(Path::new(path), number(rate)?, Duration::from_secs(number(seconds)?))?;
            println!("{}", played.line());
            Ok(())
        }
        ["hog", mib] => hog(number(mib)?),
        ["log"] => {
            for report in LogReader::open()?.reports() {
                println!("{}: {}", report.kind, report.text);
            }
            Ok(())
        }
        _ => Err(format!(
            "this is the first process of a virtual machine; as a worker it takes `worker DEVICE INDEX OPERATIONS SEED \
             MODE`, `dirty DEVICE START_MIB MIB ROUNDS`, `copy FROM TO`, `play FILE RATE SECONDS CLASS`, `hog MIB` or \
             `log`, not `{}`",
            arguments.join(" ")
        )),
    }
}

/// Writes cells of its own slice, reads them back and compares them. The I/O class changes at
/// random.
fn verify_slice(device: &Path, index: u64, operations: u64, seed: u64, mode: &str) -> Outcome<()> {
    let caching = match mode {
        "stable" => Caching::Stable,
        "flush" => Caching::Buffered,
        _ => Caching::Direct,
    };
    let file = system::open_device(device, caching)?;
    let direct = system::open_device(device, Caching::Direct)?;
    let mut buffer = AlignedBuffer::new(SLICE_CELLS as usize * SIZE);
    let mut prng = Prng::new(seed);
    let start = index * SLICE_CELLS;
    for operation in 0..operations {
        if prng.below(3) == 0 {
            let class = [2, 2, 2, 1, 3].get(prng.below(5) as usize).copied().unwrap_or(2);
            system::set_io_priority(class, prng.below(8))?;
        }
        let cells = prng.between(1, SLICE_CELLS);
        let sequence = seed.wrapping_add(operation);
        let bytes = buffer.first(cells as usize * SIZE);
        for (address, cell) in (start..).zip(bytes.chunks_exact_mut(SIZE)) {
            cell::fill(cell, address, sequence);
        }
        let offset = start * SIZE as u64;
        file.write_all_at(bytes, offset).map_err(|error| format!("write at cell {start}: {error}"))?;
        if mode == "flush" {
            file.sync_data().map_err(|error| format!("fdatasync: {error}"))?;
        }
        bytes.fill(0);
        direct.read_exact_at(bytes, offset).map_err(|error| format!("read at cell {start}: {error}"))?;
        for (address, cell) in (start..).zip(bytes.chunks_exact(SIZE)) {
            cell::check(cell, address, sequence).map_err(|damage| format!("cell {address}: {damage}"))?;
        }
    }
    Ok(())
}

/// Makes a part of a device dirty in the page cache and flushes it, in rounds; then reads it from
/// the device and compares it.
fn dirty(device: &Path, start_mib: u64, mib: u64, rounds: u64) -> Outcome<()> {
    let file = system::open_device(device, Caching::Buffered)?;
    let direct = system::open_device(device, Caching::Direct)?;
    let cells = 64u64;
    let mut buffer = AlignedBuffer::new(cells as usize * SIZE);
    let (first, runs) = (start_mib * 256, mib * 256 / cells);
    for round in 0..rounds {
        for run in 0..runs {
            let bytes = buffer.first(cells as usize * SIZE);
            let start = first + run * cells;
            for (address, cell) in (start..).zip(bytes.chunks_exact_mut(SIZE)) {
                cell::fill(cell, address, round);
            }
            let written = file.write_all_at(bytes, start * SIZE as u64);
            written.map_err(|error| format!("buffered write at cell {start}: {error}"))?;
        }
        file.sync_data().map_err(|error| format!("fdatasync: {error}"))?;
        for run in 0..runs {
            let bytes = buffer.first(cells as usize * SIZE);
            let start = first + run * cells;
            let read = direct.read_exact_at(bytes, start * SIZE as u64);
            read.map_err(|error| format!("read at cell {start}: {error}"))?;
            for (address, cell) in (start..).zip(bytes.chunks_exact(SIZE)) {
                cell::check(cell, address, round).map_err(|damage| format!("cell {address}: {damage}"))?;
            }
        }
    }
    Ok(())
}

/// Holds memory and touches it until it is killed.
fn hog(mib: u64) -> Outcome<()> {
    let mut memory = vec![0u8; (mib as usize) << 20];
    loop {
        for page in memory.chunks_mut(4096) {
            if let Some(byte) = page.first_mut() {
                *byte = byte.wrapping_add(1);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
