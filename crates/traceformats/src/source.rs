//! The trait that all trace readers implement, the input formats and read errors.

use std::fmt;
use std::io;

use crate::batch::Batch;

/// A stream of trace events.
pub trait Source {
    /// Replaces the contents of the batch by the next events, in the order of the trace. An empty
    /// batch marks the end of the trace.
    ///
    /// # Errors
    /// Fails if the input cannot be read or does not have the detected format. The readable part of
    /// a damaged input is returned; [`Source::notices`] then describes the damage.
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError>;

    /// Takes the notices that have accumulated: damage that was skipped, and assumptions. The
    /// number of notices is small whatever the input.
    fn notices(&mut self) -> Vec<Notice>;

    /// Number of lines of texts that could not be read and were skipped so far.
    fn skipped_lines(&self) -> u64 {
        0
    }
}

/// The error of one of several inputs, kept until the events before it were returned.
#[derive(Debug, Default)]
pub struct DeferredError(Option<ReadError>);

impl DeferredError {
    /// Keeps an error, unless one is kept already.
    pub fn set(&mut self, error: ReadError) {
        self.0.get_or_insert(error);
    }

    /// Returns true if an error is kept.
    pub fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// Takes the error if the batch has no event that precedes the error.
    ///
    /// # Errors
    /// The kept error.
    pub fn report_after(&mut self, batch: &Batch) -> Result<(), ReadError> {
        match self.0.take_if(|_| batch.is_empty()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// The input formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// blktrace's binary files, version 7 or 8, and the binary stream of the tracefs `blk` tracer,
    /// which has the same format with all CPUs in one stream.
    Blktrace,
    /// blkparse's text in its default format.
    Blkparse,
    /// The text of tracefs: of the `blk` tracer (`blk_classic` or the default of `trace_pipe`), and
    /// of `block:` events, also as `trace-cmd report` prints them.
    Ftrace,
    /// The text of `perf script` with `block:` events.
    Perf,
    /// trace-cmd's binary file with `block:` events, version 6 or 7.
    TraceDat,
    /// The text of biosnoop, of bcc or bpftrace.
    Biosnoop,
    /// fio's iolog, version 2 or 3.
    Iolog,
    /// fio's latency logs.
    FioLog,
    /// MSR Cambridge CSV.
    Msr,
    /// Alibaba's block traces (CSV).
    Alibaba,
    /// The trace format of the Storage Performance Council, also used by UMass.
    Spc,
    /// Tencent's block traces (CSV).
    Tencent,
    /// The traces of the SYSTOR '17 paper on virtual desktops (CSV).
    Systor,
    /// The traces of Florida International University.
    Fiu,
    /// CloudPhysics' binary records of VMware's virtual SCSI layer.
    Vscsi,
    /// CloudPhysics' records as a table (CSV).
    CloudPhysics,
    /// DiskSim's ASCII text.
    Disksim,
    /// MQSim's text.
    Mqsim,
    /// blkreplay's load files.
    Blkreplay,
    /// hoistway's own CSV with one line for each event.
    Csv,
    /// Parquet files with one row for each event.
    Parquet,
    /// Google's Thesios traces (CSV).
    Thesios,
    /// The block traces of Meta's Tectonic, December 2023 (CSV).
    Tectonic,
    /// The older block traces of Meta's Tectonic, which were published with Baleen.
    Baleen,
    /// The traces of Fujitsu's K5 cloud (CSV).
    K5cloud,
    /// The tables of block requests of io-tracer (CSV).
    IoTracer,
    /// libCacheSim's records without a header.
    OracleGeneral,
    /// libCacheSim's records with a header.
    Lcs,
    /// A table whose columns the options describe.
    Columns,
}

impl Format {
    /// All formats in the order in which help texts list them.
    pub const ALL: [Format; 29] = [
        Format::Blktrace,
        Format::Blkparse,
        Format::Ftrace,
        Format::TraceDat,
        Format::Perf,
        Format::Biosnoop,
        Format::Iolog,
        Format::FioLog,
        Format::Msr,
        Format::Alibaba,
        Format::Tencent,
        Format::Spc,
        Format::Systor,
        Format::Fiu,
        Format::Vscsi,
        Format::CloudPhysics,
        Format::Disksim,
        Format::Mqsim,
        Format::Blkreplay,
        Format::Thesios,
        Format::Tectonic,
        Format::Baleen,
        Format::K5cloud,
        Format::IoTracer,
        Format::OracleGeneral,
        Format::Lcs,
        Format::Columns,
        Format::Csv,
        Format::Parquet,
    ];

    /// The name of the format on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Blktrace => "blktrace",
            Format::Blkparse => "blkparse",
            Format::Ftrace => "ftrace",
            Format::TraceDat => "trace-dat",
            Format::Perf => "perf",
            Format::Biosnoop => "biosnoop",
            Format::FioLog => "fio-lat",
            Format::Tencent => "tencent",
            Format::Spc => "spc",
            Format::Systor => "systor17",
            Format::Fiu => "fiu",
            Format::Vscsi => "vscsi",
            Format::CloudPhysics => "cloudphysics",
            Format::Disksim => "disksim",
            Format::Iolog => "iolog",
            Format::Msr => "msr",
            Format::Alibaba => "alibaba",
            Format::Mqsim => "mqsim",
            Format::Blkreplay => "blkreplay",
            Format::Csv => "csv",
            Format::Parquet => "parquet",
            Format::Thesios => "thesios",
            Format::Tectonic => "tectonic",
            Format::Baleen => "baleen",
            Format::K5cloud => "k5cloud",
            Format::IoTracer => "io-tracer",
            Format::OracleGeneral => "oracle-general",
            Format::Lcs => "lcs",
            Format::Columns => "columns",
        }
    }

    /// The description of the format in messages.
    pub const fn title(self) -> &'static str {
        match self {
            Format::Blktrace => "blktrace's binary format",
            Format::Blkparse => "blkparse's text",
            Format::Ftrace => "text of the kernel's tracing",
            Format::TraceDat => "a trace.dat of trace-cmd",
            Format::Perf => "text of perf script",
            Format::Biosnoop => "text of biosnoop",
            Format::FioLog => "a latency log of fio",
            Format::Tencent => "Tencent's CSV",
            Format::Spc => "SPC's text",
            Format::Systor => "CSV of the SYSTOR '17 traces",
            Format::Fiu => "text of the FIU traces",
            Format::Vscsi => "binary vscsi records of CloudPhysics",
            Format::CloudPhysics => "CloudPhysics' CSV",
            Format::Disksim => "DiskSim's text",
            Format::Iolog => "an iolog of fio",
            Format::Msr => "MSR Cambridge CSV",
            Format::Alibaba => "Alibaba's CSV",
            Format::Mqsim => "MQSim's text",
            Format::Blkreplay => "a load of blkreplay",
            Format::Csv => "hoistway's CSV",
            Format::Parquet => "a Parquet file",
            Format::Thesios => "CSV of Google's Thesios traces",
            Format::Tectonic => "CSV of Meta's Tectonic traces",
            Format::Baleen => "text of Meta's Tectonic traces of Baleen",
            Format::K5cloud => "CSV of the K5 cloud traces",
            Format::IoTracer => "CSV of io-tracer",
            Format::OracleGeneral => "libCacheSim's oracleGeneral",
            Format::Lcs => "libCacheSim's lcs",
            Format::Columns => "a table with described columns",
        }
    }
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Format, String> {
        Format::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let known = Format::ALL.map(Format::name).join(", ");
            format!("unknown format `{name}`: expected one of {known}")
        })
    }
}

/// A position in an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputPosition {
    /// A line number, counted from 1.
    Line(u64),
    /// A byte offset in the decompressed input, counted from 0.
    Byte(u64),
    /// The whole input.
    All,
}

/// A remark about an input that affects how far its results can be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Name of the input.
    pub file: String,
    /// Position of the first occurrence.
    pub position: InputPosition,
    /// Description of the finding, with the number of occurrences if there are several.
    pub what: String,
}

/// Error of opening or reading a trace.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system reported an error.
    #[error("{file}: {source}")]
    Io {
        /// Name of the input.
        file: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The input violates its format.
    #[error("{file}{position}: {what}")]
    Bad {
        /// Name of the input.
        file: String,
        /// Position of the violation.
        position: InputPosition,
        /// Description of the violation and of the expected contents.
        what: String,
    },
    /// The format of the input cannot be detected.
    #[error("{file}: unknown trace format: {what}")]
    Unknown {
        /// Name of the input.
        file: String,
        /// Description of the beginning of the input.
        what: String,
    },
}

impl fmt::Display for InputPosition {
    /// Writes the suffix of a file name in messages: `:12`, ` at byte 4096`, or nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputPosition::Line(line) => write!(f, ":{line}"),
            InputPosition::Byte(byte) => write!(f, " at byte {byte}"),
            InputPosition::All => Ok(()),
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}: {}", self.file, self.position, self.what)
    }
}
