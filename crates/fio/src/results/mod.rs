//! Results under the names that fio's `--output-format=json` and `json+` have.
//!
//! The names are those that fio 3.33 prints, all of them, so that tools made for fio's output read
//! these results too. Its units: `bw` is KiB a second and `bw_bytes` bytes a second, `runtime` is
//! milliseconds, `elapsed` seconds, all `_ns` nanoseconds, `bw_min` to `bw_dev` KiB a second, and
//! the shares of the distributions percent. Whatever fio has no name for goes under the single key
//! `hoistway`.
//!
//! [`build`] makes these from plain figures; [`histogram`] has fio's bins.

pub mod build;
pub mod histogram;
mod maps;

pub use maps::{Bins, Options, Percentiles};

use serde::{Deserialize, Serialize};

/// The default percentiles of fio's reports.
pub const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// The value of `eta` at the end of a run.
pub const NO_ETA: u64 = 2_147_483_647;

/// The results of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The program that made the report, such as `fio-3.33`.
    #[serde(rename = "fio version")]
    pub fio_version: String,
    /// Seconds since 1970, UTC.
    pub timestamp: u64,
    /// Milliseconds since 1970, UTC.
    pub timestamp_ms: u64,
    /// The time of day as text, `Fri Nov 20 18:27:28 2026`.
    pub time: String,
    /// The options of the `[global]` sections; absent when there is no such section.
    #[serde(rename = "global options", default, skip_serializing_if = "Option::is_none")]
    pub global_options: Option<Options>,
    /// One entry per clone of a job, or per group with `group_reporting`.
    pub jobs: Vec<JobReport>,
    /// Figures of the disks; absent if none were collected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_util: Option<Vec<DiskUtil>>,
    /// Values that fio has no name for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hoistway: Option<serde_json::Value>,
}

impl Report {
    /// The JSON text, indented.
    pub fn to_json(&self) -> String {
        // Maps with text keys and numbers always serialise.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Parses the output of fio or of [`Report::to_json`]. Unknown keys are ignored.
    ///
    /// # Errors
    /// serde_json's error, with line and column, if the text is not JSON or lacks a key of fio
    /// 3.33.
    pub fn from_json(text: &str) -> Result<Report, serde_json::Error> {
        serde_json::from_str(text)
    }
}

/// One job's results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobReport {
    /// The job's name.
    pub jobname: String,
    /// The reporting group.
    pub groupid: u32,
    /// Error number; 0 for none.
    pub error: i32,
    /// Seconds still to go; [`NO_ETA`] at the end.
    pub eta: u64,
    /// Seconds since the run started, rounded up.
    pub elapsed: u64,
    /// The options of the job's section; absent when it has none.
    #[serde(rename = "job options", default, skip_serializing_if = "Option::is_none")]
    pub job_options: Option<Options>,
    /// The figures of reads; like writes, trims and syncs absent with `unified_rw_reporting=mixed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<DirectionReport>,
    /// The figures of writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<DirectionReport>,
    /// The figures of trims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<DirectionReport>,
    /// fsync and fdatasync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncReport>,
    /// The figures of all directions together, with `unified_rw_reporting` `mixed` or `both`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mixed: Option<DirectionReport>,
    /// The time that the job ran, in milliseconds.
    pub job_runtime: u64,
    /// Processor time in user mode, in percent of the run.
    pub usr_cpu: f64,
    /// Processor time in the kernel, in percent of the run.
    pub sys_cpu: f64,
    /// Context switches.
    pub ctx: u64,
    /// Page faults that waited for a disk.
    pub majf: u64,
    /// Page faults that did not.
    pub minf: u64,
    /// Depth of the queue, in percent of the requests.
    pub iodepth_level: IodepthLevel,
    /// Number of requests submitted together, in percent of the submissions.
    pub iodepth_submit: IodepthBatch,
    /// Number of requests reaped together, in percent of the completions.
    pub iodepth_complete: IodepthBatch,
    /// Requests by completion latency below a microsecond, in percent of all; a key is the upper
    /// bound, not included.
    pub latency_ns: LatencyNs,
    /// Requests by completion latency from a microsecond to below a millisecond, in percent of all.
    pub latency_us: LatencyUs,
    /// Requests by completion latency from a millisecond, in percent of all.
    pub latency_ms: LatencyMs,
    /// The depth that `latency_target` reached; without it, the queue's depth.
    pub latency_depth: u32,
    /// Value of `latency_target` in microseconds; 0 without it.
    pub latency_target: u64,
    /// Value of `latency_percentile`.
    pub latency_percentile: f64,
    /// Value of `latency_window` in microseconds; 0 without it.
    pub latency_window: u64,
    /// Values that fio has no name for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hoistway: Option<serde_json::Value>,
}

/// One direction of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// Bytes moved.
    pub io_bytes: u64,
    /// KiB moved, rounded down.
    pub io_kbytes: u64,
    /// Bytes a second.
    pub bw_bytes: u64,
    /// KiB a second, rounded down.
    pub bw: u64,
    /// Requests a second.
    pub iops: f64,
    /// From the first request to the last completion, in milliseconds.
    pub runtime: u64,
    /// Number of requests.
    pub total_ios: u64,
    /// Requests that moved fewer bytes than requested.
    pub short_ios: u64,
    /// Requests that were dropped.
    pub drop_ios: u64,
    /// From the creation of a request to its submission.
    pub slat_ns: LatencyReport,
    /// From submission to completion.
    pub clat_ns: LatencyReport,
    /// From creation to completion.
    pub lat_ns: LatencyReport,
    /// The least bandwidth of a sample, in KiB a second.
    pub bw_min: u64,
    /// The greatest bandwidth of a sample, in KiB a second.
    pub bw_max: u64,
    /// This job's share of its group's bandwidth, in percent.
    pub bw_agg: f64,
    /// The mean of the samples, in KiB a second.
    pub bw_mean: f64,
    /// The standard deviation of the samples, in KiB a second.
    pub bw_dev: f64,
    /// Number of samples, one per `bwavgtime`.
    pub bw_samples: u64,
    /// The fewest requests a second of a sample.
    pub iops_min: u64,
    /// The most requests a second of a sample.
    pub iops_max: u64,
    /// The mean of the samples.
    pub iops_mean: f64,
    /// The standard deviation of the samples.
    pub iops_stddev: f64,
    /// Number of samples, one per `iopsavgtime`.
    pub iops_samples: u64,
}

/// The syncs of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SyncReport {
    /// Number of syncs.
    pub total_ios: u64,
    /// Latencies of the syncs.
    pub lat_ns: LatencyReport,
}

/// Latencies in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyReport {
    /// The least latency.
    pub min: u64,
    /// The greatest latency.
    pub max: u64,
    /// The mean latency.
    pub mean: f64,
    /// The standard deviation of the latencies.
    pub stddev: f64,
    /// Number of latencies.
    #[serde(rename = "N")]
    pub n: u64,
    /// Percentiles; absent without latencies, or if they were not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentile: Option<Percentiles>,
    /// Number of requests by bin; only in `json+`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bins: Option<Bins>,
}

/// Figures of one disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskUtil {
    /// The disk's name, `sda`.
    pub name: String,
    /// The figures of reads.
    pub read_ios: u64,
    /// The figures of writes.
    pub write_ios: u64,
    /// Reads that were merged into others.
    pub read_merges: u64,
    /// Writes that were merged into others.
    pub write_merges: u64,
    /// Time that reads waited and were served, in milliseconds.
    pub read_ticks: u64,
    /// Time that writes waited and were served, in milliseconds.
    pub write_ticks: u64,
    /// Time in the queue, summed over requests, in milliseconds.
    pub in_queue: u64,
    /// The part of the time that the disk was busy, in percent.
    pub util: f64,
}

/// Declares a distribution whose keys are not valid Rust names.
macro_rules! shares {
    ($(#[$doc:meta])* $name:ident, $count:literal { $($field:ident = $key:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct $name {
            $(
                #[doc = concat!("Key `", $key, "`, in percent.")]
                #[serde(rename = $key)]
                pub $field: f64,
            )+
        }

        impl $name {
            /// Creates the distribution from shares in the order of the keys.
            pub fn new(shares: [f64; $count]) -> Self {
                let [$($field),+] = shares;
                $name { $($field),+ }
            }
        }
    };
}

shares! {
    /// Depths of the queue when a request was made: a key's share holds the depths up to below the
    /// next key.
    IodepthLevel, 7 { d1 = "1", d2 = "2", d4 = "4", d8 = "8", d16 = "16", d32 = "32", d64 = ">=64" }
}
shares! {
    /// Requests handled together: a key's share holds the counts above the key before it, up to the
    /// key.
    IodepthBatch, 7 { n0 = "0", n4 = "4", n8 = "8", n16 = "16", n32 = "32", n64 = "64", more = ">=64" }
}
shares! {
    /// Latencies below a microsecond, in nanoseconds.
    LatencyNs, 10 {
        ns2 = "2", ns4 = "4", ns10 = "10", ns20 = "20", ns50 = "50", ns100 = "100", ns250 = "250", ns500 = "500",
        ns750 = "750", ns1000 = "1000",
    }
}
shares! {
    /// Latencies from a microsecond to below a millisecond, in microseconds.
    LatencyUs, 10 {
        us2 = "2", us4 = "4", us10 = "10", us20 = "20", us50 = "50", us100 = "100", us250 = "250", us500 = "500",
        us750 = "750", us1000 = "1000",
    }
}
shares! {
    /// Latencies from a millisecond, in milliseconds.
    LatencyMs, 12 {
        ms2 = "2", ms4 = "4", ms10 = "10", ms20 = "20", ms50 = "50", ms100 = "100", ms250 = "250", ms500 = "500",
        ms750 = "750", ms1000 = "1000", ms2000 = "2000", more = ">=2000",
    }
}
