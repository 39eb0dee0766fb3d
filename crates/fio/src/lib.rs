//! Parser for fio job files, and writer of fio's results: job options, units, JSON reports, logs.
//!
//! Facts about fio are from its documentation (the manual page and HOWTO of fio 3.33, J. Axboe and
//! others) and from running fio 3.33 itself on its null engine. Where the two differ:
//!
//! | matter | manual | fio 3.33, run | here |
//! |---|---|---|---|
//! | `1ki` with `kb_base=1024` | 1000 bytes | 1024 bytes (`1kib` is 1000) | 1000 bytes, as in the manual |
//! | `size=4k ; text` | only whole-line comments | the rest of the line is dropped | dropped, as in fio |
//! | `include=FILE` | only `include FILE` | both | both |
//! | blanks around `=` | silent | the value keeps its leading blank and is misread | trimmed |
//! | `1.5s`, `4x`, `-4k`, `10z` | not a number | read up to the first odd character | rejected, with the reason |
//!
//! # Flow of data
//!
//! [`parse`] and [`load`] take a text through four steps: `source` splits it into sections and
//! substitutes includes and variables, `options` finds each option, the option's row parses the
//! value into a [`Job`] (`job`, `values`), `check` compares options and jobs with one another.
//! [`JobSource`] is the result of the first step; its options can be changed.
//! All errors are collected as [`Diagnostics`]. [`results::build`] turns figures into a
//! [`results::Report`] with fio's names.
//!
//! # Where to change ...
//!
//! | what | where |
//! |---|---|
//! | an option that is simulated: names, value, field of [`Job`], description | the file of its subject in `job`; shared forms of values: `values.rs` |
//! | the options that are ignored or refused | the tables in `options.rs` |
//! | rules between options or jobs | `check.rs` |
//! | jobs that are refused because the rules of fio are not known | `unmodelled.rs` |
//! | fio's own command line | `command_line.rs` |
//! | fio's JSON | `results/mod.rs` (names), `results/build.rs` (figures); logs: `logs.rs` |
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod check;
mod command_line;
mod diagnostic;
mod direction;
mod engine;
pub mod job;
mod job_file;
mod job_source;
pub mod logs;
mod options;
mod parse;
pub mod reference;
pub mod results;
mod settle;
mod size;
mod source;
pub mod units;
mod unmodelled;
mod values;

pub use command_line::{COMMAND_LINE, CommandLine, CommandLineError, command_line, without_program};
pub use diagnostic::{Diagnostic, Diagnostics, LoadError};
pub use direction::{Direction, Directions, Rw};
pub use engine::{ENGINES, Engine, EngineSupport, Ioengine};
pub use job::{
    Batching, Flow, Job, LatencyTarget, Zones,
    block_size::{BlockSize, SplitEntry},
    distribution::{Distribution, Zone},
    extensions::{FileSystemKind, TreeSpec, Walk},
    files::FileService,
    option::{Description, KnownOption, Subject, Support},
    pacing::RateProcess,
    priorities::{CommandPriority, SizePriority},
    reporting::UnifiedReporting,
    requests::Sequencer,
    start_and_end::{ExitWhat, SteadyFigure, SteadyState},
    submission::{FadviseHint, WriteSync},
    zones::ZoneMode,
};
pub use job_file::{Cgroup, Ignored, JobFile};
pub use job_source::{JobSource, SetOptionError, load, parse};
pub use options::{SUBJECTS, options};
pub use size::Size;
pub use unmodelled::{UNMODELLED, Unmodelled};
