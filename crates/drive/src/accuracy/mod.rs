//! How accurate the models are: every built-in drive against sums done by hand, against recordings
//! of real drives, and against published figures.
//!
//! [`AccuracyReport::measure`] runs all checks. `docs/drives.md` is this report as Markdown.

mod cloud;
mod error;
mod fitted;
mod flash;
mod hand_sums;
mod latency;
mod measure;
mod queueing;
mod recorded;
mod streams;
mod summary;

use std::path::Path;

use serde::Serialize;

pub use cloud::{CLOUD_DEPTH, CloudCheck};
pub use error::AccuracyError;
pub use fitted::FitCheck;
pub use flash::{FLASH_WRITES, FlashCheck};
pub use hand_sums::{RANDOM_READS, RandomReadCheck, SequentialCheck};
pub use latency::{LatencyCheck, LatencyPercentile};
pub use queueing::{QUEUE_DEPTHS, QUEUE_READS, QueueDepthCheck, QueueRate, QueueWindowCheck};
pub use recorded::RecordingCheck;
use recorded::Recordings;
pub use streams::{STREAM_COUNTS, STREAM_SECTORS, STREAMS_DRIVE, StreamRates};
pub use summary::{DriveClass, DriveSummary};

/// The result of all accuracy checks, one list a kind of check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AccuracyReport {
    /// The key figures of every built-in drive.
    pub drives: Vec<DriveSummary>,
    /// Random reads of every disk against the sum of seek, rotation and transfer.
    pub random_reads: Vec<RandomReadCheck>,
    /// Sequential reads and writes and single-cylinder seeks of every disk against the geometry.
    pub sequential: Vec<SequentialCheck>,
    /// Replays of recordings that were made with real disks.
    pub recordings: Vec<RecordingCheck>,
    /// Random read rates of every disk with a command queue, by depth.
    pub queue_depths: Vec<QueueDepthCheck>,
    /// Gains of command queues with a known window, against published gains.
    pub queue_windows: Vec<QueueWindowCheck>,
    /// Sequential and random writes by the settings of the write cache.
    pub write_streams: Vec<StreamRates>,
    /// Sequential reads by the minimum read-ahead.
    pub read_streams: Vec<StreamRates>,
    /// Latency percentiles against those of real drives.
    pub latencies: Vec<LatencyCheck>,
    /// Flash drives against the limits of their parts and the closed form of write amplification.
    pub flash: Vec<FlashCheck>,
    /// Cloud volumes against their documented limits.
    pub cloud: Vec<CloudCheck>,
    /// Profiles fitted to the first half of each recording, checked with the second half.
    pub fits: Vec<FitCheck>,
}

impl AccuracyReport {
    /// Runs every check on all processors. It takes about a minute in a release build.
    ///
    /// `recordings` is a directory with the recordings (`NAME.trace.gz`) and the table of measured
    /// latencies (`real_drive_latency.tsv`), as in `crates/drive/testdata`.
    ///
    /// # Errors
    /// [`AccuracyError`] if a file of the directory cannot be read or does not suit its model.
    pub fn measure(recordings: &Path) -> Result<AccuracyReport, AccuracyError> {
        let recordings = Recordings::read(recordings)?;
        let ((hand_sums, fits), (queues, rest)) = rayon::join(
            || rayon::join(hand_sums::checks, || fitted::checks(&recordings)),
            || {
                let rest =
                    || rayon::join(|| rayon::join(flash::checks, cloud::checks), || latency::checks(&recordings));
                rayon::join(|| rayon::join(queueing::checks, streams::rates), rest)
            },
        );
        let (random_reads, sequential) = hand_sums?;
        let (queues, streams) = queues;
        let (queue_depths, queue_windows) = queues?;
        let (write_streams, read_streams) = streams?;
        let ((flash, cloud), latencies) = rest;
        Ok(AccuracyReport {
            drives: summary::summaries(),
            random_reads,
            sequential,
            recordings: recordings.checks(),
            queue_depths,
            queue_windows,
            write_streams,
            read_streams,
            latencies: latencies?,
            flash: flash?,
            cloud: cloud?,
            fits: fits?,
        })
    }
}
