//! Writes the summary at the end of blkparse's text.

use std::io::Write as _;

use crate::event::{Action, Event, Rwbs};

/// Maximum number of CPUs with separate sections; other CPUs count only in the total. Linux has at
/// most 8,192.
const CPUS_MAX: usize = 8192;
/// Largest number that is printed in full; greater numbers are printed in thousands.
const PLAIN_MAX: u64 = 1_000_000;

/// Counts of each CPU and of all CPUs.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// Counts by CPU number, in ascending order.
    cpus: Vec<(u32, Counts)>,
    /// Index of the CPU of the last event.
    last: usize,
    total: Counts,
    events: u64,
    /// Number of read and write requests in the device.
    depth: [u64; 2],
    /// Maximum of `depth`.
    depth_max: [u64; 2],
    /// Time of the first and of the last event, in ns.
    span: Option<(u64, u64)>,
}

/// Counts of one CPU; each pair is for reads and for writes.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    queued: [Sum; 2],
    issued: [Sum; 2],
    requeued: [Sum; 2],
    completed: [Sum; 2],
    merged: [Sum; 2],
    commands: Commands,
    unplugs: u64,
    timer_unplugs: u64,
}

/// Counts of passed-through commands.
#[derive(Clone, Copy, Debug, Default)]
struct Commands {
    is_any: bool,
    queued: [Sum; 2],
    issued: [Sum; 2],
    requeued: [Sum; 2],
    completed: [Sum; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    /// Requeued bytes are subtracted from issued bytes, so that the sum can be negative.
    bytes: i64,
}

impl Summary {
    /// Time of the first counted event, in ns.
    pub fn begin_ns(&self) -> Option<u64> {
        self.span.map(|(begin_ns, _)| begin_ns)
    }

    /// Counts an event that is printed or that blkparse counts without printing.
    #[inline]
    pub fn count(&mut self, event: &Event) {
        self.events += 1;
        self.span = Some((self.span.map_or(event.time_ns, |(begin_ns, _)| begin_ns), event.time_ns));
        let way = usize::from(event.op.has(Rwbs::WRITE) || event.op.has(Rwbs::DISCARD));
        self.total.count(event, way);
        if let Some(counts) = self.cpu(event.cpu) {
            counts.count(event, way);
        }
        let (depth, depth_max) = (&mut self.depth[way], &mut self.depth_max[way]);
        match event.action {
            Action::Issue => {
                *depth += 1;
                *depth_max = (*depth).max(*depth_max);
            }
            Action::Complete | Action::Requeue => *depth = depth.saturating_sub(1),
            _ => {}
        }
    }

    fn cpu(&mut self, cpu: u32) -> Option<&mut Counts> {
        if self.cpus.get(self.last).is_none_or(|(other, _)| *other != cpu) {
            self.last = match self.cpus.binary_search_by_key(&cpu, |(other, _)| *other) {
                Ok(at) => at,
                Err(_) if self.cpus.len() >= CPUS_MAX => return None,
                Err(at) => {
                    self.cpus.insert(at, (cpu, Counts::default()));
                    at
                }
            };
        }
        self.cpus.get_mut(self.last).map(|(_, counts)| counts)
    }

    /// Writes the summary of the trace called `name`.
    pub fn write(&self, name: &str, out: &mut Vec<u8>) {
        for (cpu, counts) in &self.cpus {
            // Writing to memory does not fail.
            let _ = writeln!(out, "CPU{cpu} ({name}):");
            counts.write(Some(self.depth_max), out);
        }
        if self.cpus.len() > 1 {
            let _ = writeln!(out, "\nTotal ({name}):");
            self.total.write(None, out);
        }
        let [read, written] = self.total.completed.map(|sum| self.throughput(sum));
        let _ = write!(
            out,
            "\nThroughput (R/W): {read}KiB/s / {written}KiB/s\nEvents ({name}): {} entries\n\
             Skips: 0 forward (0 -   0.0%)\n",
            self.events
        );
    }

    /// Returns the throughput in KiB/s over whole ms.
    fn throughput(&self, sum: Sum) -> u64 {
        let ms = self.span.map_or(0, |(begin_ns, end_ns)| end_ns.wrapping_sub(begin_ns) / 1_000_000);
        1000u64.wrapping_mul(sum.kib()).checked_div(ms).unwrap_or(0)
    }
}

impl Counts {
    #[inline]
    fn count(&mut self, event: &Event, way: usize) {
        if event.op.has(Rwbs::PASS_THROUGH) {
            return self.count_command(event, way);
        }
        let bytes = i64::from(event.bytes);
        match event.action {
            Action::Queue => self.queued[way].add(bytes),
            Action::Issue => self.issued[way].add(bytes),
            Action::Complete => self.completed[way].add(bytes),
            Action::BackMerge | Action::FrontMerge => self.merged[way].add(bytes),
            Action::Requeue => {
                self.requeued[way].count += 1;
                self.issued[way].bytes -= bytes;
            }
            Action::Unplug => self.unplugs += 1,
            Action::UnplugTimer => self.timer_unplugs += 1,
            _ => {}
        }
    }

    fn count_command(&mut self, event: &Event, way: usize) {
        let (bytes, commands) = (i64::from(event.bytes), &mut self.commands);
        match event.action {
            Action::Queue => {
                commands.queued[way].count += 1;
                // blkparse adds the bytes of read commands to the other reads.
                if way == 0 { self.queued[0].bytes += bytes } else { commands.queued[way].bytes += bytes }
            }
            Action::Issue => commands.issued[way].add(bytes),
            Action::Complete => commands.completed[way].count += 1,
            Action::Requeue => {
                commands.requeued[way].count += 1;
                commands.issued[way].bytes -= bytes;
            }
            _ => return,
        }
        commands.is_any = true;
    }

    fn write(&self, depth_max: Option<[u64; 2]>, out: &mut Vec<u8>) {
        both(out, ["Reads Queued:", "Writes Queued:"], self.queued);
        both(out, ["Read Dispatches:", "Write Dispatches:"], self.issued);
        counts(out, ["Reads Requeued:", "Writes Requeued:"], self.requeued);
        both(out, ["Reads Completed:", "Writes Completed:"], self.completed);
        both(out, ["Read Merges:", "Write Merges:"], self.merged);
        if let Some([reads, writes]) = depth_max {
            plain(out, ["Read depth:", "Write depth:"], [reads, writes]);
        }
        if self.commands.is_any {
            both(out, ["PC Reads Queued:", "PC Writes Queued:"], self.commands.queued);
            both(out, ["PC Read Disp.:", "PC Write Disp.:"], self.commands.issued);
            counts(out, ["PC Reads Req.:", "PC Writes Req.:"], self.commands.requeued);
            counts(out, ["PC Reads Compl.:", "PC Writes Compl.:"], self.commands.completed);
        }
        plain(out, ["IO unplugs:", "Timer unplugs:"], [self.unplugs, self.timer_unplugs]);
    }
}

impl Sum {
    #[inline]
    fn add(&mut self, bytes: i64) {
        self.count += 1;
        self.bytes += bytes;
    }

    fn kib(self) -> u64 {
        (self.bytes / 1024) as u64
    }
}

/// Writes a line of counts and sizes.
fn both(out: &mut Vec<u8>, [reads, writes]: [&str; 2], sums: [Sum; 2]) {
    let [read, write] = sums.map(|sum| {
        let (count, unit) = scaled(sum.count, 0);
        let (kib, unit_of_kib) = scaled(sum.kib(), 1);
        format!("{count:8}{unit}, {kib:8}{unit_of_kib}iB")
    });
    let _ = writeln!(out, " {reads:17}{read}\t {writes:18}{write}");
}

/// Write a line of counts.
fn counts(out: &mut Vec<u8>, [reads, writes]: [&str; 2], sums: [Sum; 2]) {
    let [read, write] = sums.map(|sum| {
        let (count, unit) = scaled(sum.count, 0);
        format!("{count:8}{unit}")
    });
    let _ = writeln!(out, " {reads:17}{read}\t\t {writes:18}{write}");
}

/// Writes a line of numbers without scaling.
fn plain(out: &mut Vec<u8>, [first, second]: [&str; 2], [one, other]: [u64; 2]) {
    let _ = writeln!(out, " {first:17}{one:8}        \t {second:18}{other:8}");
}

/// Divides a number by 1,000 until it is small enough and returns the unit letter. blkparse has no
/// T.
fn scaled(number: u64, unit: usize) -> (u64, &'static str) {
    const UNITS: [&str; 5] = ["", "K", "M", "G", "P"];
    let (mut number, mut unit) = (number, unit);
    while number > PLAIN_MAX && unit + 1 < UNITS.len() {
        number /= 1000;
        unit += 1;
    }
    (number, UNITS.get(unit).copied().unwrap_or_default())
}
