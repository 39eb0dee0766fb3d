//! Log files in fio's format: `write_bw_log`, and the latency and IOPS logs, which have the same
//! lines.
//!
//! Source: section "Log file formats" of the manual of fio 3.33; the number of columns was observed
//! by running fio. A line is `time (ms), value, direction, block size (bytes)[, offset (bytes)],
//! priority`.

use crate::direction::Direction;
use crate::job::Job;
use std::io;

/// The contents of a log, which decide the unit of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// KiB a second.
    Bandwidth,
    /// Nanoseconds from the creation of a request to its submission.
    SubmissionLatency,
    /// Nanoseconds from submission to completion.
    CompletionLatency,
    /// Nanoseconds from creation to completion.
    TotalLatency,
    /// Requests a second.
    Iops,
}

impl LogKind {
    /// The suffix in the file's name.
    pub fn suffix(self) -> &'static str {
        match self {
            LogKind::Bandwidth => "bw",
            LogKind::SubmissionLatency => "slat",
            LogKind::CompletionLatency => "clat",
            LogKind::TotalLatency => "lat",
            LogKind::Iops => "iops",
        }
    }

    /// The name of a log file, `foo_bw.1.log`; `index` counts the clones of all jobs from 1.
    pub fn file_name(self, prefix: &str, index: u32) -> String {
        format!("{prefix}_{}.{index}.log", self.suffix())
    }
}

/// A line of a log: a request, or the average over a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Time since the job's start, in milliseconds.
    pub time_ms: u64,
    /// The value, in the unit of [`LogKind`].
    pub value: u64,
    /// Direction of the requests.
    pub direction: Direction,
    /// The size of the request, in bytes; 0 for an average.
    pub bs: u64,
    /// The offset of the request in its file, in bytes; 0 for an average.
    pub offset: u64,
    /// I/O priority class, 0 (none) to 3.
    pub prioclass: u8,
    /// I/O priority level, 0 to 7.
    pub prio: u8,
}

/// The columns of a log's lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogFormat {
    /// `log_offset`: the line has a column for the offset.
    pub offset: bool,
    /// `log_prio`: the last column is class and level in hexadecimal, instead of 1 for real time
    /// and 0 for all others.
    pub prio: bool,
}

impl LogFormat {
    /// The columns that a job asks for.
    pub fn of(job: &Job) -> Self {
        LogFormat { offset: job.log.log_offset, prio: job.log.log_prio }
    }

    /// Formats a line, without its line end.
    pub fn line(self, entry: &LogEntry) -> String {
        let direction = match entry.direction {
            Direction::Read => 0,
            Direction::Write => 1,
            Direction::Trim => 2,
        };
        let mut line = format!("{}, {}, {direction}, {}", entry.time_ms, entry.value, entry.bs);
        if self.offset {
            line += &format!(", {}", entry.offset);
        }
        // The kernel packs a priority into 16 bits, the class in the highest three
        // (linux/ioprio.h).
        match self.prio {
            true => line + &format!(", 0x{:04x}", u16::from(entry.prioclass & 7) << 13 | u16::from(entry.prio)),
            false => line + if entry.prioclass == 1 { ", 1" } else { ", 0" },
        }
    }

    /// Writes a whole log.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write<'a>(self, out: &mut dyn io::Write, entries: impl IntoIterator<Item = &'a LogEntry>) -> io::Result<()> {
        entries.into_iter().try_for_each(|entry| writeln!(out, "{}", self.line(entry)))
    }
}
