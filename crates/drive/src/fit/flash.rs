//! Fits the profile of a flash drive to requests that were issued one at a time.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::command::Op;
use crate::recording::Record;

use super::evidence;
use super::result::{Finding, FitProfileError, FittedProfile, Notes, finish, quoted};
use super::stats::{line, percentile};
use crate::replay::replay_on_drive;

/// The assumed share of the controller in a read if no buffered write determines it. One request at
/// a time cannot separate it from the page read.
const INTERFACE_SHARE: f64 = 0.1;
/// Kinds of pages, that is steps of the distribution of read times.
const KINDS: usize = 16;
/// A write below this time in us was only buffered: no flash programs as fast.
const BUFFERED_US: f64 = 150.0;
/// The assumed structure of the drive.
const CHANNELS: u64 = 8;
const DIES: u64 = 16;
const PAGE_BYTES: u64 = 16_384;
const BLOCK_PAGES: u64 = 256;
/// The shortest transfer of a sector over a channel in us: 1200 MB/s.
const CHANNEL_SECTOR_US: f64 = 0.427;
/// A link of negligible time, in MB/s.
const FAST_LINK_MB_S: f64 = 10_000.0;
const SPARE_FACTOR: f64 = 0.12;
/// The smallest drive in sectors: 8 GiB. A trace may touch less.
const CAPACITY_MIN: u64 = 1 << 24;
/// The largest number of simulated blocks of a plane.
const SLICE_BLOCKS: u64 = 256;

/// Service time as a linear function of the size.
#[derive(Debug, Clone, Copy)]
struct Line {
    fixed_us: f64,
    sector_us: f64,
    requests: usize,
    sizes: usize,
}

/// The fitted times.
struct Flash {
    capacity_sectors: u64,
    interface_us: f64,
    link_mb_s: f64,
    channel_mb_s: f64,
    page_read_us: Vec<f64>,
    /// `None` without writes, or if writes were only buffered.
    program_us: Option<f64>,
}

/// Fits to `half` and measures the errors of all records.
pub(super) fn fit(half: &[Record], records: &[Record], name: &str) -> Result<FittedProfile, FitProfileError> {
    let end = |record: &Record| record.access.end();
    let last = records.iter().map(end).max().unwrap_or(1);
    let [reads, writes] = [Op::Read, Op::Write].map(|op| by_size(half, op));
    let buffered = writes.requests > 0 && writes.fixed_us < BUFFERED_US;
    let of = if reads.requests > 0 { reads } else { writes };
    let interface_us = if buffered { writes.fixed_us.min(of.fixed_us) } else { of.fixed_us * INTERFACE_SHARE };
    // A sector crosses a channel and the link. Their shares of the time cannot be separated.
    let channel_us = if reads.requests > 0 { (of.sector_us / 2.0).min(CHANNEL_SECTOR_US) } else { 0.0 };
    let mb_s = |sector_us: f64| if sector_us > 0.0 { (512.0 / sector_us).min(FAST_LINK_MB_S) } else { FAST_LINK_MB_S };
    let flash = Flash {
        capacity_sectors: last.max(CAPACITY_MIN).next_multiple_of(8),
        interface_us,
        link_mb_s: mb_s(of.sector_us - channel_us),
        channel_mb_s: mb_s(channel_us),
        page_read_us: kinds(half, of, interface_us),
        program_us: (writes.requests > 0 && !buffered).then_some((writes.fixed_us - interface_us).max(1.0)),
    };
    let mut found = Vec::new();
    for (what, line, op) in [("reads", reads, "reads"), ("writes", writes, "writes")] {
        if line.requests > 0 {
            let value = format!("{:.2} us and {:.3} us a sector", line.fixed_us, line.sector_us);
            let from = format!("the fastest quarter of {} {op} of {} sizes", line.requests, line.sizes);
            found.push(Finding { what, value, from });
        }
    }
    if reads.requests > 0 {
        let [first, last] =
            [flash.page_read_us.first(), flash.page_read_us.last()].map(|us| us.copied().unwrap_or(0.0));
        let value = format!("{first:.1} to {last:.1} us in {KINDS} kinds");
        found.push(Finding {
            what: "page reads",
            value,
            from: "the distribution of reads around that line".to_string(),
        });
    }
    let notes = Notes {
        undetermined: flash.undetermined(),
        warnings: evidence::of_flash(reads.sizes, reads.requests, writes.requests, buffered),
    };
    finish(flash.toml(name), name, found, notes, |profile| replay_on_drive(profile, records))
}

/// Page read times as steps of the distribution of reads, without transfer and controller.
fn kinds(records: &[Record], reads: Line, interface_us: f64) -> Vec<f64> {
    let page_us = |record: &Record| {
        let size_us = f64::from(record.access.sectors) * reads.sector_us;
        record.service_ns as f64 / 1000.0 - size_us - interface_us
    };
    let times: Vec<f64> = records.iter().filter(|record| record.access.op == Op::Read).map(page_us).collect();
    let step = |kind: usize| percentile(&times, (kind as f64 + 0.5) / KINDS as f64).max(0.0);
    if times.is_empty() { vec![0.0] } else { (0..KINDS).map(step).collect() }
}

impl Flash {
    fn toml(&self, name: &str) -> String {
        let units = self.capacity_sectors / 8;
        let block_units = BLOCK_PAGES * PAGE_BYTES / 4096;
        let data = (units as f64 / (1.0 - SPARE_FACTOR) / (DIES * block_units) as f64).ceil() as u64;
        let reads: Vec<String> = self.page_read_us.iter().map(|us| format!("{us:.2}")).collect();
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "# Fitted to a trace of requests and their service times.\nname = {}\nwhat = \"a flash drive, fitted to a trace\"\n\
             source = \"\"\"\nFitted to a trace. {}\"\"\"\n\
             inputs = [\"every figure: fitted to one trace, or assumed where the text says so\"]\n\n\
             [flash]\ndepth = 32\ncapacity_sectors = {}\ncommand_us = 0.0\ninterface_us = {:.3}\nlink_mb_s = {:.1}\n\
             channels = {CHANNELS}\nchannel_mb_s = {:.1}\ndies = {DIES}\nblocks_per_plane = {}\npages_per_block = {BLOCK_PAGES}\n\
             page_bytes = {PAGE_BYTES}\npage_read_us = [{}]\nprogram_us = {:.2}\nerase_us = 3500.0\nspare_factor = {SPARE_FACTOR}\n\
             precondition = \"sequential\"\nbuffer_kib = {}",
            quoted(name),
            self.undetermined().join(" "),
            self.capacity_sectors,
            self.interface_us,
            self.link_mb_s,
            self.channel_mb_s,
            data + 16,
            reads.join(", "),
            self.program_us.unwrap_or(700.0),
            if self.program_us.is_some() { 0 } else { 4096 }
        );
        if data > SLICE_BLOCKS {
            let _ = writeln!(text, "slice_blocks = {SLICE_BLOCKS}");
        }
        text
    }

    fn undetermined(&self) -> Vec<String> {
        let mut undetermined = vec![
            format!(
                "{CHANNELS} channels, {DIES} dies, {PAGE_BYTES} bytes a page, {BLOCK_PAGES} pages a block, 32 commands at once and {} % of \
                 spare flash are assumed: they show when requests overlap, and when garbage is collected.",
                SPARE_FACTOR * 100.0
            ),
            "The division of a sector's time between channel and link is assumed.".to_string(),
        ];
        if self.program_us.is_none() {
            undetermined
                .push("No write waited for its program: 700 us a program and 4 MiB of buffer are assumed.".to_string());
        } else {
            let share = INTERFACE_SHARE * 100.0;
            undetermined.push(format!("{share:.0} % of a command is assumed to be the controller's."));
        }
        undetermined
    }
}

/// The line through the fastest quarter of each size. Requests that waited for background work are
/// above it.
fn by_size(records: &[Record], op: Op) -> Line {
    let mut sizes: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.access.op == op) {
        sizes.entry(record.access.sectors).or_default().push(record.service_ns as f64 / 1000.0);
    }
    let requests = sizes.values().map(Vec::len).sum();
    let quarters = sizes.iter().flat_map(|(sectors, times)| {
        let quarter = percentile(times, 0.25);
        std::iter::repeat_n((f64::from(*sectors), quarter), times.len())
    });
    let (fixed_us, sector_us) = line(&quarters.collect::<Vec<_>>());
    Line { fixed_us: fixed_us.max(0.0), sector_us: sector_us.max(0.0), requests, sizes: sizes.len() }
}
