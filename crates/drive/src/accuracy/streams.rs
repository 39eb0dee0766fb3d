//! The rates of sequential streams and random writes for several values of the buffer's parameters
//! that data sheets omit: the write segments, the size of the write cache, and the minimum of the
//! read-ahead.

use rayon::prelude::*;
use serde::Serialize;

use super::error::AccuracyError;
use super::measure::{random_writes_iops, streams_mb_s};
use crate::command::Op;
use crate::profile::Profile;

/// The disk whose buffer is varied.
pub const STREAMS_DRIVE: &str = "cmr-8tb";
/// Numbers of sequential streams.
pub const STREAM_COUNTS: [u32; 4] = [1, 2, 4, 8];
/// Sectors of a request of a stream.
pub const STREAM_SECTORS: u32 = 128;
/// Numbers of write segments of 2 MiB.
const WRITE_SEGMENTS: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// Sizes of a write cache without segments, in MiB.
const WRITE_MIB: [u32; 3] = [2, 16, 64];
/// Minimum numbers of sectors that are read ahead.
const READ_AHEAD_MIN: [u32; 5] = [0, 128, 512, 2048, 4096];

/// Rates of streams with one setting of the buffer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamRates {
    /// The setting, as the lines of a drive file.
    pub setting: String,
    /// Megabytes a second of all streams together, for each of [`STREAM_COUNTS`].
    pub mb_s: Vec<f64>,
    /// Random 4 KiB writes a second; `None` for reads.
    pub random_writes: Option<f64>,
}

/// Measures writes for each setting of the write cache, and reads for each minimum of the
/// read-ahead. Returns the rates of the writes, then those of the reads.
pub(super) fn rates() -> Result<(Vec<StreamRates>, Vec<StreamRates>), AccuracyError> {
    let segments = WRITE_SEGMENTS.map(|segments| format!("write_segments = {segments}"));
    let sizes = WRITE_MIB.map(|mib| format!("write_sectors = {}", mib * 2048));
    let writes: Vec<String> = segments.into_iter().chain(sizes).collect();
    let minima = READ_AHEAD_MIN.map(|sectors| format!("read_ahead_min_sectors = {sectors}"));
    let (writes, reads) = rayon::join(
        || writes.par_iter().map(|setting| measure(setting, Op::Write)).collect(),
        || minima.par_iter().map(|setting| measure(setting, Op::Read)).collect(),
    );
    let writes: Result<_, AccuracyError> = writes;
    let reads: Result<_, AccuracyError> = reads;
    Ok((writes?, reads?))
}

fn measure(setting: &str, op: Op) -> Result<StreamRates, AccuracyError> {
    let is_write = op == Op::Write;
    let text = format!(
        "name = \"{STREAMS_DRIVE}\"\nwhat = \"\"\nsource = \"\"\nbase = \"{STREAMS_DRIVE}\"\n[buffer]\nsegments = 32\n\
         segment_sectors = 4096\nread_ahead_until = \"segment\"\nwrite_cache = {is_write}\n{setting}\n\
         [queue]\ndepth = 1\npolicy = \"fifo\"\n"
    );
    let profile = Profile::from_toml(&text, STREAMS_DRIVE)?;
    let mb_s = STREAM_COUNTS.iter().map(|streams| streams_mb_s(&profile, op, *streams, STREAM_SECTORS));
    let mb_s = mb_s.collect::<Result<_, _>>()?;
    let random_writes = if is_write { Some(random_writes_iops(&profile)?) } else { None };
    Ok(StreamRates { setting: setting.to_owned(), mb_s, random_writes })
}
