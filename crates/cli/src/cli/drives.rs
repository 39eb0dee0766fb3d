//! The options of `hoistway drives`.

use std::path::PathBuf;

use clap::Args;
use hoistway_drive::probe::Probe;

use crate::names;

/// `hoistway drives`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hoistway drives
  hoistway drives sata-7200-2006
  hoistway drives mine.toml --json
  hoistway drives --probe sata-7200-2006
  hoistway drives --probe mine.toml --only seek,zones --report mine.html
  hoistway drives --fit requests.csv -o mine.toml
  hoistway drives --fit requests.csv --base sata-7200-2006 -o mine.toml
  hoistway drives --validate mine.toml others.csv

A trace for --fit and --validate is a CSV file with the header `issue_us,op,sector,sectors,service_us` (op is R or W), or a validation trace of \
DiskSim: `R|W Hit|Miss sector sectors service_us gap_us`. Both may be compressed with gzip. The requests must have been issued \
one at a time. --fit fits the model to the first half of the requests, and reports the error on the second half. It warns of figures with \
little evidence on standard error.")]
pub struct DrivesArgs {
    /// The drive to describe: a listed name, or a drive file
    #[arg(value_name = "NAME|FILE.toml")]
    pub drive: Option<String>,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Measure rotation, seeks, zones, queue and cache of a drive model by test requests, and draw
    /// charts
    #[arg(long, value_name = "NAME|FILE.toml", conflicts_with_all = ["drive", "fit"], help_heading = "Probing")]
    pub probe: Option<String>,
    /// The probes to run, separated by commas: rotation, seek, zones, depth, cache, sizes,
    /// overwrite [default: those that are meaningful for the kind of drive]
    #[arg(long, value_name = "PROBE,...", value_delimiter = ',', value_parser = names::probe, requires = "probe", help_heading = "Probing")]
    pub only: Vec<Probe>,
    /// Write a page with the charts: one self-contained HTML file
    #[arg(long, value_name = "FILE.html", requires = "probe", help_heading = "Probing")]
    pub report: Option<PathBuf>,
    /// Fit a drive model to a trace of requests with their service times
    #[arg(long, value_name = "TRACE", conflicts_with = "drive", help_heading = "Fitting")]
    pub fit: Option<PathBuf>,
    /// The kind of drive that made the trace [default: determined from the service times]
    #[arg(long, requires = "fit", conflicts_with = "base", help_heading = "Fitting")]
    pub kind: Option<DriveKind>,
    /// Keep the geometry of this disk; fit only rotation, overheads, write settling and the height
    /// of the seek curve
    #[arg(long, value_name = "NAME|FILE.toml", requires = "fit", help_heading = "Fitting")]
    pub base: Option<String>,
    /// Write the drive file here [default: print it]
    #[arg(short, long, value_name = "FILE.toml", requires = "fit", help_heading = "Fitting")]
    pub output: Option<PathBuf>,
    /// Compare a drive model with a trace of the drive: RMS error, demerit and percentiles, by kind
    /// of request
    #[arg(long, num_args = 2, value_names = ["NAME|FILE.toml", "TRACE"], conflicts_with_all = ["drive", "probe", "fit"], help_heading = "Accuracy of the models")]
    pub validate: Vec<String>,
    /// The trace was recorded with the buffer and the write cache of the drive off
    #[arg(long, requires = "validate", help_heading = "Accuracy of the models")]
    pub buffer_off: bool,
    /// Measure every drive, with the recordings of this directory, and print the tables of
    /// docs/drives.md
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["drive", "json", "fit", "probe", "validate"], help_heading = "Accuracy of the models")]
    pub markdown: Option<PathBuf>,
    /// Write the plots of docs/drives.md to this directory
    #[arg(long, value_name = "FOLDER", requires = "markdown", help_heading = "Accuracy of the models")]
    pub plots: Option<PathBuf>,
}

/// A kind of drive that can be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DriveKind {
    /// A disk with an arm and platters
    Disk,
    /// A flash drive with a controller and dies
    Flash,
}
