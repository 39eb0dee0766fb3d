//! The cost of reading and writing traces.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use hoistway_trace::blktrace::{self, CpuFiles, Version};
use hoistway_trace::describe::Describer;
use hoistway_trace::parquet::{self, Partition};
use hoistway_trace::{Action, Batch, DeviceId, Event, EventWriter, Input, OpenOptions, Rwbs, blkparse, csv, files};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::Serialize;

use crate::BenchError;
use crate::clock::cpu_ns_with_children;

/// Seed of the synthetic captures.
const SEED: u64 = 3;
/// Base name of the capture's files.
const NAME: &str = "synthetic";
/// Names of the processes in a capture.
const NAMES: [&str; 8] = ["fio", "postgres", "rsync", "kworker/u8:1", "jbd2/sda1-8", "cargo", "tar", "mysqld"];
/// The events of each request, with their time after the submission in ns; each step takes up to
/// twice as long.
const STEPS: [(Action, u64); 5] = [
    (Action::Queue, 0),
    (Action::Get, 700),
    (Action::Insert, 1_500),
    (Action::Issue, 20_000),
    (Action::Complete, 120_000),
];
/// Mean interval between requests, in ns.
const INTERVAL_NS: u64 = 10_000;

/// The options for all outputs of btt.
const BTT_ALL: [&str; 21] = [
    "-i", "dump", "-A", "-l", "l", "-q", "q", "-z", "z", "-s", "s", "-m", "m", "-Q", "d", "-p", "p", "-B", "b", "-I",
    "i",
];

/// The speed of an operation on a trace.
#[derive(Clone, Debug, Serialize)]
pub struct TraceCost {
    /// Name of the operation.
    pub what: String,
    /// CPU time of the fastest run, in seconds; other load of the machine does not count.
    pub cpu_seconds: f64,
    /// Wall-clock time of the fastest run, in seconds.
    pub wall_seconds: f64,
    /// Events a second of CPU time.
    pub events_per_s: f64,
}

/// Costs of operations on a capture; the document of `hoistway bench trace --json`.
#[derive(Clone, Debug, Serialize)]
pub struct TraceCosts {
    /// Version of the document's form: 1.
    pub schema: u32,
    /// Number of events in the capture.
    pub events: u64,
    /// One entry per operation.
    pub rows: Vec<TraceCost>,
}

/// Writes a capture of this many requests, five events each, as the files of two CPUs into a
/// folder. Returns the number of events.
fn generate(folder: &Path, requests: u64) -> io::Result<u64> {
    let mut random = Pcg64::seed_from_u64(SEED);
    let mut files = CpuFiles::new(&folder.join(NAME), Version::V7, true);
    let mut batch = Batch::new();
    let mut pending: BinaryHeap<Reverse<(u64, u64, usize)>> = BinaryHeap::new();
    let device = DeviceId::new(8, 0);
    for (pid, name) in (1000..).zip(NAMES) {
        let event = Event { pid, device, cpu: pid % 2, ..Event::new(1, Action::Process) };
        batch.push_with(event, name.as_bytes());
    }
    let (mut made, mut begun, mut submitted_ns) = (0, 0, 1_000_000_000);
    let mut extents: Vec<SyntheticRequest> = Vec::new();
    while made < requests * STEPS.len() as u64 {
        if begun < requests && pending.peek().is_none_or(|Reverse((time_ns, ..))| *time_ns >= submitted_ns) {
            pending.push(Reverse((submitted_ns, begun, 0)));
            extents.push(SyntheticRequest::random(&mut random));
            submitted_ns += random.random_range(1..2 * INTERVAL_NS);
            begun += 1;
        }
        let Some(Reverse((time_ns, number, step))) = pending.pop() else { break };
        let Some(((action, _), request)) = STEPS.get(step).zip(extents.get(number as usize)) else { break };
        // Completions are recorded on the other CPU.
        let cpu = if *action == Action::Complete { 1 - request.pid % 2 } else { request.pid % 2 };
        let SyntheticRequest { pid, op, sector, bytes } = *request;
        batch.push(Event { pid, op, sector, bytes, cpu, device, ..Event::new(time_ns, *action) });
        made += 1;
        if let (Some((_, before_ns)), Some((_, after_ns))) = (STEPS.get(step), STEPS.get(step + 1)) {
            let gap_ns = after_ns - before_ns;
            pending.push(Reverse((time_ns + random.random_range(gap_ns / 2..2 * gap_ns), number, step + 1)));
        }
        if batch.len() >= 4096 {
            files.write(&batch)?;
            batch.clear();
        }
    }
    files.write(&batch)?;
    files.finish()?;
    Ok(made)
}

/// A request of the capture.
#[derive(Clone, Copy)]
struct SyntheticRequest {
    pid: u32,
    op: Rwbs,
    sector: u64,
    bytes: u32,
}

impl SyntheticRequest {
    fn random(random: &mut Pcg64) -> SyntheticRequest {
        let op = if random.random_range(0..3) == 0 { Rwbs::WRITE } else { Rwbs::READ };
        SyntheticRequest {
            pid: 1000 + random.random_range(0..NAMES.len() as u32),
            op: if random.random_range(0..2) == 0 { op.with(Rwbs::SYNC) } else { op },
            sector: random.random_range(0..1 << 28) * 8,
            bytes: 4096 << random.random_range(0..6),
        }
    }
}

/// Writes a synthetic capture of `requests` requests to a temporary folder and measures operations
/// on it, each `runs` times: those of hoistway, and of blkparse and btt if they are installed.
///
/// # Errors
/// The errors of files, of the reader, and of the external tools.
pub fn measure(requests: u64, runs: u16) -> Result<TraceCosts, BenchError> {
    let folder = tempfile::tempdir().map_err(BenchError::io("a temporary folder for the capture"))?;
    let folder = folder.path();
    let events = generate(folder, requests).map_err(BenchError::io("the synthetic capture"))?;
    let mut rows = Vec::new();
    let mut row = |what: &str, run: &mut dyn FnMut() -> Result<bool, BenchError>| -> Result<bool, BenchError> {
        let (mut cpu_seconds, mut wall_seconds) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..runs.max(1) {
            let (begin, begin_cpu_ns) = (Instant::now(), cpu_ns_with_children());
            if !run()? {
                return Ok(false);
            }
            wall_seconds = wall_seconds.min(begin.elapsed().as_secs_f64());
            cpu_seconds = cpu_seconds.min((cpu_ns_with_children() - begin_cpu_ns) as f64 / 1e9);
        }
        let events_per_s = events as f64 / cpu_seconds.max(0.001);
        rows.push(TraceCost { what: what.to_owned(), cpu_seconds, wall_seconds, events_per_s });
        Ok(true)
    };
    row("hoistway: read", &mut || read(folder, &mut NullSink).map(|()| true))?;
    row("hoistway: read and write text", &mut || {
        read(folder, &mut blkparse::Writer::new(io::sink(), NAME)).map(|()| true)
    })?;
    row("hoistway: read and describe", &mut || {
        let mut described = DescribingSink(Some(Describer::new()));
        read(folder, &mut described).map(|()| true)
    })?;
    for form in StoredForm::ALL {
        row(&format!("hoistway: convert to {}", form.title()), &mut || form.write(folder).map(|()| true))?;
    }
    for form in StoredForm::ALL {
        row(&format!("hoistway: describe {}", form.title()), &mut || {
            let mut described = DescribingSink(Some(Describer::new()));
            read_path(&form.path(folder), &mut described).map(|()| true)
        })?;
    }
    row("blkparse: text", &mut || run_tool(folder, "blkparse", &["-i", NAME]))?;
    let dumped = row("blkparse -O -d: one binary file", &mut || {
        run_tool(folder, "blkparse", &["-q", "-i", NAME, "-O", "-d", "dump"])
    })?;
    if dumped {
        row("btt", &mut || run_tool(folder, "btt", &["-i", "dump"]))?;
        row("btt: all outputs", &mut || run_tool(folder, "btt", &BTT_ALL))?;
    }
    Ok(TraceCosts { schema: 1, events, rows })
}

/// A form in which a trace is stored.
#[derive(Clone, Copy, Debug)]
enum StoredForm {
    Csv,
    Blktrace,
    Parquet,
}

impl StoredForm {
    const ALL: [StoredForm; 3] = [StoredForm::Csv, StoredForm::Blktrace, StoredForm::Parquet];

    fn title(self) -> &'static str {
        match self {
            StoredForm::Csv => "CSV",
            StoredForm::Blktrace => "blktrace, one file",
            StoredForm::Parquet => "Parquet",
        }
    }

    fn path(self, folder: &Path) -> PathBuf {
        folder.join(match self {
            StoredForm::Csv => "stored.csv",
            StoredForm::Blktrace => "stored.bin",
            StoredForm::Parquet => "stored-set",
        })
    }

    /// Converts the capture to this form, in place of an earlier conversion.
    fn write(self, folder: &Path) -> Result<(), BenchError> {
        let path = self.path(folder);
        let failed = BenchError::io("the converted capture");
        let file = || File::create(&path).map(|file| BufWriter::with_capacity(256 << 10, file));
        match self {
            StoredForm::Csv => read(folder, &mut csv::Writer::new(file().map_err(failed)?)),
            StoredForm::Blktrace => read(folder, &mut blktrace::Writer::new(file().map_err(failed)?).counting()),
            StoredForm::Parquet => {
                if path.exists() {
                    fs::remove_dir_all(&path).map_err(BenchError::io("the earlier conversion"))?;
                }
                read(folder, &mut parquet::Writer::folder(&path, Partition::default()).map_err(failed)?)
            }
        }
    }
}

/// A sink that drops events.
struct NullSink;

impl EventWriter for NullSink {
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        std::hint::black_box(batch.events());
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A sink that describes the trace.
struct DescribingSink(Option<Describer>);

impl EventWriter for DescribingSink {
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        if let Some(describe) = &mut self.0 {
            describe.take(batch);
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        std::hint::black_box(self.0.take().map(Describer::finish));
        Ok(())
    }
}

fn read(folder: &Path, sink: &mut dyn EventWriter) -> Result<(), BenchError> {
    read_path(&folder.join(NAME), sink)
}

/// Reads a trace by its name.
fn read_path(path: &Path, sink: &mut dyn EventWriter) -> Result<(), BenchError> {
    let found = files::resolve(path).map_err(|error| BenchError::io("a trace")(io::Error::other(error)))?;
    let mut source = hoistway_trace::open(found.into_iter().map(Input::Path).collect(), &OpenOptions::default())?;
    let mut batch = Batch::new();
    loop {
        source.next(&mut batch)?;
        if batch.is_empty() {
            return sink.finish().map_err(BenchError::io("the output of a trace"));
        }
        sink.write(&batch).map_err(BenchError::io("the output of a trace"))?;
    }
}

/// Runs an external tool. Returns false if it is not installed.
fn run_tool(folder: &Path, tool: &str, arguments: &[&str]) -> Result<bool, BenchError> {
    let run =
        Command::new(tool).args(arguments).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match run {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        status => {
            let status = status.map_err(BenchError::io(tool))?;
            if !status.success() {
                return Err(BenchError::Child { what: format!("{tool} {}", arguments.join(" ")), status });
            }
            Ok(true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_synthetic_capture_is_reproducible_and_is_read_completely() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert_eq!(generate(one.path(), 500).unwrap(), 2500);
        generate(other.path(), 500).unwrap();
        let bytes = |folder: &tempfile::TempDir| std::fs::read(folder.path().join("synthetic.blktrace.1")).unwrap();
        assert_eq!(bytes(&one), bytes(&other));
        let mut writer = blkparse::Writer::new(Vec::new(), NAME);
        read(one.path(), &mut writer).unwrap();
        let text = String::from_utf8(writer.into_inner()).unwrap();
        assert!(text.contains("Events (synthetic): 2500 entries"), "{text}");
    }
}
