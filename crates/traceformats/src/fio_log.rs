//! Reads fio's latency logs (`write_lat_log`): `time, latency, direction, size[, offset],
//! priority`.
//!
//! Times are ms since the start of the job at which requests completed, latencies ns (fio 3) and
//! offsets, which `log_offset=1` adds, bytes. `log_issue_time` adds the time of submission in ns.
//! The logs of bandwidth and IOPS have the same columns, but no requests.

use crate::event::{DeviceId, Rwbs};
use crate::text::{
    CompletionClock, Fields, InventedOffsets, LineOutput, Request, RequestFormat, RequestLines, TimeUnit, decimal_ns,
    number, shown,
};

/// ms in ps.
const MS_PS: u64 = 1_000_000_000;

/// Parser of the lines.
#[derive(Debug)]
pub struct FioLog {
    latency_ps: u64,
    has_offset: bool,
    clock: CompletionClock,
    offsets: InventedOffsets,
}

impl FioLog {
    /// Creates a parser for a log with this name and beginning; `specified` is the unit of the
    /// latencies. Also returns a remark about missing offsets.
    ///
    /// # Errors
    /// Fails if the name is that of a log without requests.
    pub fn new(
        name: &str,
        head: &[u8],
        specified: Option<TimeUnit>,
    ) -> Result<(RequestLines<FioLog>, Option<String>), String> {
        let file = name.rsplit('/').next().unwrap_or(name);
        if let Some(kind) = ["_bw.", "_iops.", "_slat.", "_hist."].into_iter().find(|kind| file.contains(kind)) {
            return Err(format!(
                "{} logs of fio have no latencies of requests: the log of write_lat_log, *_lat.*.log, would be right",
                kind.trim_matches(['_', '.'])
            ));
        }
        let latency_ps = specified.unwrap_or(TimeUnit::Nanosecond).ps();
        let times = |line: &[u8]| {
            let mut fields = Fields::split(line, b',');
            let completed_ns = decimal_ns(fields.next()?, MS_PS, "").ok()?;
            Some((completed_ns, decimal_ns(fields.next()?, latency_ps, "").ok()?))
        };
        let has_offset = has_offset(head);
        let log = FioLog {
            latency_ps,
            has_offset,
            clock: CompletionClock::new(head, times),
            offsets: InventedOffsets::default(),
        };
        let remark = (!has_offset).then(|| format!("{} (log_offset=1 records them)", InventedOffsets::REMARK));
        Ok((RequestLines::new(log), remark))
    }
}

/// Returns true if the fifth column has offsets. With five columns it can also be the priority: a
/// whole number below 512 or a hexadecimal one.
fn has_offset(head: &[u8]) -> bool {
    let columns: Vec<Vec<&[u8]>> =
        head.split(|byte| *byte == b'\n').take(1000).map(|line| Fields::split(line, b',').take(8).collect()).collect();
    columns.iter().any(|fields| match fields.len() {
        6..=8 => true,
        5 => fields.get(4).is_some_and(|field| number(field, "").is_ok_and(|offset: u64| offset >= 512)),
        _ => false,
    })
}

impl RequestFormat for FioLog {
    fn request(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<Request, String> {
        let mut fields = Fields::split(line, b',');
        let completed_ns = decimal_ns(fields.want("the time in ms")?, MS_PS, "the time")?;
        let latency_ns = decimal_ns(fields.want("the latency")?, self.latency_ps, "the latency")?;
        let op = match fields.want("the direction")? {
            b"0" => Rwbs::READ,
            b"1" => Rwbs::WRITE,
            b"2" => Rwbs::DISCARD,
            other => {
                let what = "stands where 0 (a read), 1 (a write) or 2 (a trim) should be";
                return Err(format!("{} {what}", shown(other)));
            }
        };
        let bytes: u64 = number(fields.want("the size in bytes")?, "the size")?;
        if bytes == 0 {
            let what =
                "a size of 0: the line is the mean of an interval, and a log without log_avg_msec would be right";
            return Err(what.to_owned());
        }
        let offset = if self.has_offset {
            number(fields.want("the offset in bytes")?, "the offset")?
        } else {
            self.offsets.next(bytes)
        };
        let time_ns = self.clock.submission_ns(completed_ns, latency_ns, out);
        let response_ns = Some(latency_ns);
        Ok(Request { time_ns, response_ns, device: DeviceId(0), op, offset, bytes, ..Request::default() })
    }
}
