//! Options on reports and logs.

use super::option::{Subject, flag, option, switch, text};
use crate::values::put;

#[rustfmt::skip]
pub(crate) const SUBJECT: Subject = Subject {
    heading: "Reports and logs",
    options: &[
        flag("group_reporting", &[], |job| &mut job.reporting.group_reporting, "The clones of a group are reported as one."),
        flag("new_group", &[], |job| &mut job.reporting.new_group, "A new reporting group starts here."),
        option("unified_rw_reporting", &[], |job, v| put(&mut job.reporting.unified, v.word(UNIFIED)), "`none`, `0`, `mixed`, `1`, `both`, `2`", "`none`", "How `--json` reports the directions."),
        text("write_bw_log", |job, text| job.log.write_bw_log = Some(text.into()), "text", "none", "The beginning of the name of the bandwidth log; without a value, the job's name."),
        option("log_avg_msec", &[], |job, v| put(&mut job.log.log_avg_msec, v.count(0)), "a time in ms", "`0`", "The time over which entries of the log are averaged; 0 logs every request."),
        switch("log_offset", &[], |job| &mut job.log.log_offset, "`0`", "Lines of the log have the offset."),
        switch("log_prio", &[], |job| &mut job.log.log_prio, "`0`", "Lines of the log have class and level of the priority."),
        option("bwavgtime", &[], |job, v| put(&mut job.reporting.bwavgtime_ms, v.count(1)), "a time in ms", "`500`", "The time over which bandwidth is averaged for its minimum, maximum and deviation."),
        option("iopsavgtime", &[], |job, v| put(&mut job.reporting.iopsavgtime_ms, v.count(1)), "a time in ms", "`500`", "The same for requests a second."),
    ],
};

/// How a job is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reporting {
    /// True if the clones of a group are reported as one.
    pub group_reporting: bool,
    /// True if a new reporting group starts here.
    pub new_group: bool,
    /// How the directions are reported.
    pub unified: UnifiedReporting,
    /// Window of the `bw_min` to `bw_samples` figures, in milliseconds. Default 500.
    pub bwavgtime_ms: u64,
    /// Window of the `iops_min` to `iops_samples` figures, in milliseconds. Default 500.
    pub iopsavgtime_ms: u64,
}

/// The bandwidth log of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Prefix of the bandwidth log's name: the value of the option, or the job's name.
    pub write_bw_log: Option<String>,
    /// Window over which log entries are averaged, in milliseconds; 0 logs every request.
    pub log_avg_msec: u64,
    /// True if log lines contain the offset.
    pub log_offset: bool,
    /// True if log lines contain class and level of the priority.
    pub log_prio: bool,
}

impl Default for Reporting {
    fn default() -> Self {
        Reporting {
            group_reporting: false,
            new_group: false,
            unified: UnifiedReporting::Separate,
            bwavgtime_ms: 500,
            iopsavgtime_ms: 500,
        }
    }
}

/// How reads, writes and trims are reported: fio's `unified_rw_reporting`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnifiedReporting {
    /// `none`: each direction.
    Separate,
    /// `mixed`: all directions together.
    Mixed,
    /// `both`: each direction, and all together.
    Both,
}

const UNIFIED: &[(&str, UnifiedReporting)] = &[
    ("none", UnifiedReporting::Separate),
    ("0", UnifiedReporting::Separate),
    ("mixed", UnifiedReporting::Mixed),
    ("1", UnifiedReporting::Mixed),
    ("both", UnifiedReporting::Both),
    ("2", UnifiedReporting::Both),
];
