//! Service times from a trace, for fitting the profile of a drive.

use hoistway_drive::recording::Record;
use hoistway_drive::{Access, Op};
use hoistway_trace::Rwbs;
use hoistway_trace::request::RequestRecord;

/// Returns the reads and writes of a trace with their service times, in the order of completion.
/// Requests that failed or were requeued are left out.
///
/// The drive is assumed to serve one request at a time, as a disk does: the service of a request
/// begins at its issue or at the completion of the previous request, whichever is later. Work that
/// the drive does before that for the request is not part of the service time. In a trace without
/// issues (D), the times of submission take their place.
pub fn service_times(requests: &[RequestRecord]) -> Vec<Record> {
    let has_issues = requests.iter().any(|request| request.issued_ns.is_some());
    let issued_ns = |request: &RequestRecord| if has_issues { request.issued_ns } else { request.first_seen_ns() };
    let mut completed: Vec<(u64, u64, Access)> =
        requests.iter().filter_map(|request| completed_access(request, issued_ns(request)?)).collect();
    completed.sort_unstable_by_key(|(_, completed_ns, _)| *completed_ns);
    let first_ns = completed.iter().map(|(issued_ns, ..)| *issued_ns).min().unwrap_or(0);
    let mut free_ns = 0;
    let mut records = Vec::with_capacity(completed.len());
    for (issued_ns, completed_ns, access) in completed {
        let start_ns = issued_ns.max(free_ns);
        free_ns = completed_ns;
        if completed_ns > start_ns {
            records.push(Record { issue_ns: start_ns - first_ns, access, service_ns: completed_ns - start_ns });
        }
    }
    records
}

/// Returns the times of issue and completion of a read or write that succeeded at the first
/// attempt, and its range; `None` for other requests.
fn completed_access(record: &RequestRecord, issued_ns: u64) -> Option<(u64, u64, Access)> {
    let op = match record.op {
        op if op.has(Rwbs::DISCARD) || op.has(Rwbs::FLUSH) => return None,
        op if op.has(Rwbs::READ) => Op::Read,
        op if op.has(Rwbs::WRITE) => Op::Write,
        _ => return None,
    };
    if record.requeues > 0 || record.error != 0 || record.bytes == 0 {
        return None;
    }
    let access = Access { op, sector: record.sector, sectors: record.bytes.div_ceil(512) };
    Some((issued_ns, record.data_completed_ns()?, access))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_trace::DeviceId;

    fn request(sector: u64, issued_ns: u64, completed_ns: u64) -> RequestRecord {
        RequestRecord {
            device: DeviceId(0),
            op: Rwbs::READ,
            sector,
            bytes: 4096,
            pid: 1,
            queued_ns: None,
            got_ns: None,
            inserted_ns: None,
            issued_ns: Some(issued_ns),
            completed_ns: Some(completed_ns),
            flush: None,
            merged: Vec::new(),
            requeues: 0,
            error: 0,
        }
    }

    #[test]
    fn service_begins_at_submission_in_a_trace_without_issues() {
        let submitted = |sector, queued_ns, completed_ns| RequestRecord {
            queued_ns: Some(queued_ns),
            issued_ns: None,
            ..request(sector, 0, completed_ns)
        };
        let times: Vec<_> = service_times(&[submitted(8, 100, 300), submitted(16, 200, 350)])
            .iter()
            .map(|record| record.service_ns)
            .collect();
        assert_eq!(times, [200, 50]);
    }

    #[test]
    fn requests_that_are_queued_together_are_served_one_after_the_other() {
        let requests = [request(8, 100, 300), request(16, 110, 200), request(24, 400, 450)];
        let times: Vec<_> = service_times(&requests)
            .iter()
            .map(|record| (record.access.sector, record.issue_ns, record.service_ns))
            .collect();
        assert_eq!(times, [(16, 10, 90), (8, 100, 100), (24, 300, 50)]);
    }
}
