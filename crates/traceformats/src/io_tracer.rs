//! Reads the tables of block requests of io-tracer (`ds_*.csv`), which are found by their titles:
//! `timestamp,pid,command,sector,operation,size,latency_ms,tid,...,dev,queue_time_ms,...`.
//!
//! A timestamp is the date of the completion, in a time zone that is not stated. The latency runs
//! from the issue to the completion, the queue time from the insertion to the issue; both are ms.
//! Sizes are bytes, sectors have 512. An operation is words between `|`.

use crate::event::{Action, Event, Rwbs};
use crate::process_names::ProcessNames;
use crate::text::{
    LineError, LineFormat, LineOutput, NamedDevices, Request, RequestSorter, SharedNames, TimeUnit, TitledColumns,
    date_ns, decimal_ns, device_of, number, shown,
};

/// Titles of the columns that are read. The first [`REQUIRED`] must be there.
const TITLES: [&str; 9] =
    ["timestamp", "pid", "command", "sector", "operation", "size", "latency_ms", "dev", "queue_time_ms"];
const REQUIRED: usize = 7;
const MS_PS: u64 = TimeUnit::Millisecond.ps();

/// Titles by which the format is recognised.
pub const SIGNATURE: [&str; 5] = ["timestamp", "pid", "command", "sector", "operation"];

/// Parser of the lines.
#[derive(Debug)]
pub struct IoTracer {
    columns: TitledColumns<9>,
    names: ProcessNames,
    devices: NamedDevices,
    requests: RequestSorter,
}

impl IoTracer {
    /// Creates a parser for a table with this beginning. Also returns a remark about the times.
    ///
    /// # Errors
    /// Fails if a title is missing.
    pub fn new(head: &[u8], names: &SharedNames) -> Result<(IoTracer, Option<String>), String> {
        let remark = "times are dates without a time zone: they are read as UTC";
        let tracer = IoTracer {
            columns: TitledColumns::find(head, TITLES, REQUIRED)?,
            names: ProcessNames::default(),
            devices: NamedDevices::new(names),
            requests: RequestSorter::default(),
        };
        Ok((tracer, Some(remark.to_owned())))
    }
}

/// Parses an operation such as `write|sync`.
fn operation(field: &[u8]) -> Result<Rwbs, String> {
    let mut op = Rwbs::default();
    for word in field.split(|byte| *byte == b'|') {
        op = op.with(match word.trim_ascii() {
            b"read" => Rwbs::READ,
            b"write" => Rwbs::WRITE,
            b"discard" | b"secure_erase" => Rwbs::DISCARD,
            b"flush" => Rwbs::FLUSH,
            b"sync" => Rwbs::SYNC,
            b"meta" => Rwbs::META,
            b"ahead" => Rwbs::AHEAD,
            b"none" | b"prio" | b"" => Rwbs::default(),
            _ => {
                return Err(format!(
                    "the operation {} is not known: read, write, discard, flush, secure_erase, none, sync, meta, ahead \
                     and prio between | are",
                    shown(field)
                ));
            }
        });
    }
    let kinds = Rwbs::READ.0 | Rwbs::WRITE.0 | Rwbs::DISCARD.0 | Rwbs::FLUSH.0;
    Ok(if op.0 & kinds == 0 { op.with(Rwbs::NONE) } else { op })
}

impl LineFormat for IoTracer {
    fn line(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<bool, LineError> {
        let line = line.trim_ascii();
        if line.is_empty() || self.columns.is_titles(line) {
            return Ok(false);
        }
        let row = self.columns.row(line);
        let completed_ns = date_ns(row.want(0)?)?;
        let pid = number(row.want(1)?, "the process id")?;
        let op = operation(row.want(4)?)?;
        let service_ns = decimal_ns(row.want(6)?, MS_PS, "the latency")?;
        let queued = row.get(8).filter(|field| !field.is_empty());
        let queued_ns = queued.map(|field| decimal_ns(field, MS_PS, "the queue time")).transpose()?;
        let response_ns = service_ns.saturating_add(queued_ns.unwrap_or(0));
        let device = match row.get(7).filter(|field| !field.is_empty()) {
            Some(numbers) if numbers.contains(&b':') => device_of(numbers, b':')?,
            Some(name) => self.devices.device(name, out)?,
            None => self.devices.device(b"(unknown)", out)?,
        };
        let request = Request {
            time_ns: completed_ns.saturating_sub(response_ns),
            is_unqueued: queued_ns.is_none(),
            issue_ns: queued_ns,
            response_ns: Some(response_ns),
            device,
            op,
            offset: number::<u64>(row.want(3)?, "the sector")?.saturating_mul(512),
            bytes: number(row.want(5)?, "the size")?,
            pid,
        };
        let name = row.want(2)?;
        if !name.is_empty() && self.names.set(pid, name) {
            out.batch.push_with(Event { pid, ..Event::new(request.time_ns, Action::Process) }, name);
        }
        self.requests.take(&request, out)?;
        Ok(true)
    }

    fn end(&mut self, out: &mut LineOutput<'_>) -> bool {
        self.requests.end(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::test_support::{failure, read};

    const HEAD: &str =
        "timestamp,pid,command,sector,operation,size,latency_ms,tid,cpu_id,ppid,dev,queue_time_ms,cmd_flags,op_code\n";

    fn tracer(text: &str) -> IoTracer {
        IoTracer::new(text.as_bytes(), &SharedNames::default()).unwrap().0
    }

    #[test]
    fn a_line_is_a_submission_an_issue_and_a_completion() {
        let text = format!(
            "{HEAD}2026-03-01 10:00:00.123456,1234,postgres,2048,write|sync,8192,0.412,1235,3,1,259:0,0.017,,\n"
        );
        let batch = read(tracer(&text), &text);
        // 2026-03-01 10:00:00 is 1772359200 s after 1970.
        let seen: Vec<_> =
            batch.events().iter().map(|event| (event.time_ns - 1_772_359_200_000_000_000, event.action)).collect();
        assert_eq!(
            seen,
            [
                (123_027_000, Action::Process),
                (123_027_000, Action::Queue),
                (123_044_000, Action::Issue),
                (123_456_000, Action::Complete)
            ]
        );
        let event = batch.events()[1];
        assert_eq!(
            (event.device.major(), event.sector, event.bytes, event.op),
            (259, 2048, 8192, Rwbs::WRITE.with(Rwbs::SYNC))
        );
    }

    #[test]
    fn without_a_queue_time_the_issue_is_the_first_step() {
        let text = format!("{HEAD}2026-03-01 10:00:00.5,1,dd,0,none,0,0.1,1,3,1,8:0,,,\n");
        let batch = read(tracer(&text), &text);
        let actions: Vec<_> = batch.events().iter().skip(1).map(|event| (event.action, event.op)).collect();
        assert_eq!(actions, [(Action::Issue, Rwbs::NONE), (Action::Complete, Rwbs::NONE)]);
    }

    #[test]
    fn invalid_lines_name_the_value_and_the_valid_ones() {
        for (wrong, message) in [
            ("2026-13-01 10:00:00,1,a,0,read,0,0.1,1,1,1,8:0,,,", "a:2: the time \"2026-13-01 10:00:00\" is no date"),
            ("2026-03-01 10:00:00,1,a,0,erase,0,0.1,1,1,1,8:0,,,", "a:2: the operation \"erase\" is not known"),
        ] {
            let text = format!("{HEAD}{wrong}\n");
            let failed = failure(tracer(&text), &text);
            assert!(failed.starts_with(message), "{failed}");
        }
    }
}
