//! Where events come from.

use std::fmt;
use std::io;

use crate::batch::Batch;

/// A trace that is being read.
pub trait Source {
    /// Replaces what is in the batch by the next events, in the order of the trace. An empty batch is the end.
    ///
    /// # Errors
    /// When the input cannot be read, or is not what it seemed to be. What can be read of damaged input is read, and told by [`Source::notices`].
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError>;

    /// What was noticed so far and not yet taken: damage that was passed over, assumptions. A few lines, whatever the input.
    fn notices(&mut self) -> Vec<Notice>;
}

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// blktrace's binary files, version 7 or 8; the tracefs `blk` tracer's binary stream is the same, with all CPUs in one.
    Blktrace,
    /// blkparse's text in its default format.
    Blkparse,
    /// The text of the tracefs `blk` tracer (`blk_classic` or the default of `trace_pipe`).
    Ftrace,
    /// fio's iolog, version 2 or 3.
    Iolog,
    /// MSR Cambridge CSV.
    Msr,
    /// Alibaba's block traces.
    Alibaba,
    /// MQSim's text.
    Mqsim,
    /// blkreplay's loads.
    Blkreplay,
    /// hoistway's own CSV: a line an event.
    Csv,
}

impl Format {
    /// All, in the order in which they are listed.
    pub const ALL: [Format; 9] = [
        Format::Blktrace,
        Format::Blkparse,
        Format::Ftrace,
        Format::Iolog,
        Format::Msr,
        Format::Alibaba,
        Format::Mqsim,
        Format::Blkreplay,
        Format::Csv,
    ];

    /// As it is written on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Blktrace => "blktrace",
            Format::Blkparse => "blkparse",
            Format::Ftrace => "ftrace",
            Format::Iolog => "iolog",
            Format::Msr => "msr",
            Format::Alibaba => "alibaba",
            Format::Mqsim => "mqsim",
            Format::Blkreplay => "blkreplay",
            Format::Csv => "csv",
        }
    }

    /// As it stands in a sentence.
    pub const fn title(self) -> &'static str {
        match self {
            Format::Blktrace => "blktrace's binary format",
            Format::Blkparse => "blkparse's text",
            Format::Ftrace => "text of the kernel's blk tracer",
            Format::Iolog => "an iolog of fio",
            Format::Msr => "MSR Cambridge CSV",
            Format::Alibaba => "Alibaba's CSV",
            Format::Mqsim => "MQSim's text",
            Format::Blkreplay => "a load of blkreplay",
            Format::Csv => "hoistway's CSV",
        }
    }
}

/// Where in the input something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a line, from 1 on.
    Line(u64),
    /// At a byte of the (decompressed) input, from 0 on.
    Byte(u64),
    /// In all of it.
    All,
}

/// Something that whoever reads the results should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The input's name.
    pub file: String,
    /// Where in it; the first place, if it came up several times.
    pub place: Place,
    /// What, with how often where that is more than once.
    pub what: String,
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system's error.
    #[error("{file}: {source}")]
    Io {
        /// The input's name.
        file: String,
        /// The cause.
        source: io::Error,
    },
    /// It is not what it should be.
    #[error("{file}{place}: {what}")]
    Bad {
        /// The input's name.
        file: String,
        /// Where.
        place: Place,
        /// What is there, and what would be right.
        what: String,
    },
    /// Nothing tells what it is.
    #[error("{file}: this is no trace that is known: {what}")]
    Unknown {
        /// The input's name.
        file: String,
        /// What was seen.
        what: String,
    },
}

impl fmt::Display for Place {
    /// As it stands behind a file's name: `:12`, ` at byte 4096`, or nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, ":{line}"),
            Place::Byte(byte) => write!(f, " at byte {byte}"),
            Place::All => Ok(()),
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}: {}", self.file, self.place, self.what)
    }
}
