//! Leaves out requests that cannot be part of a recording: traces of damaged files contain times,
//! sectors and lengths with wrong bits.
//!
//! One wrong time makes a recording of seconds last for years, and a process that repeats its
//! requests until the end of the recording makes a simulation of years. One wrong sector makes any
//! drive too small. The rules compare a request with the bulk of the trace, so that traces of large
//! requests, of large drives and of long pauses keep all requests.

use hoistway_trace::request::RequestRecord;
use hoistway_units::figures::grouped;

/// Requests up to this length are never left out, in bytes; block layers split longer ones.
const BYTES_USUAL_MAX: u32 = 64 << 20;
/// Ratio of a request's length to the median from which the length is wrong.
const BYTES_RATIO_MAX: u64 = 1000;
/// Pauses up to this length are never wrong, in ns: a minute.
const PAUSE_USUAL_NS: u64 = 60_000_000_000;
/// Ratio of a pause to the length of the bulk of the trace, the middle 80 % of its requests, from
/// which the times around it are wrong.
const PAUSE_RATIO_MAX: u64 = 20;
/// Sectors below this value are never wrong: 1 TiB.
const SECTOR_USUAL_MAX: u64 = 1 << 31;
/// Ratio of a sector to that below which 90 % of the requests end, from which the sector is wrong.
const SECTOR_RATIO_MAX: u64 = 16;
/// Share of the requests that may be left out because they end beyond a drive, if their sectors are
/// otherwise plausible.
pub(super) const BEYOND_SHARE_MAX: f64 = 0.01;

/// Leaves out requests with impossible lengths and times, and completions at impossible times.
/// Returns a note for each kind.
pub(super) fn leave_out(requests: &mut Vec<RequestRecord>) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(leave_out_long(requests));
    notes.extend(leave_out_misdated(requests));
    notes
}

fn leave_out_long(requests: &mut Vec<RequestRecord>) -> Option<String> {
    let mut lengths: Vec<u32> = requests.iter().map(|request| request.bytes).filter(|bytes| *bytes > 0).collect();
    let usual = quantile(&mut lengths, 0.5)?;
    let most = u64::from(BYTES_USUAL_MAX).max(u64::from(usual) * BYTES_RATIO_MAX);
    let is_long =
        |request: &RequestRecord| !request.op.has(hoistway_trace::Rwbs::DISCARD) && u64::from(request.bytes) > most;
    let longest = requests.iter().filter(|request| is_long(request)).map(|request| request.bytes).max()?;
    let count = remove(requests, is_long);
    Some(format!(
        "{} left out: the longest has {longest} bytes, the median request {usual}",
        requests_of("impossible length", count)
    ))
}

/// Keeps the requests of the period that has the most: pauses of more than a minute, and of more
/// than 20 times the length of the bulk of the trace, separate periods.
fn leave_out_misdated(requests: &mut Vec<RequestRecord>) -> Option<String> {
    let mut times_ns: Vec<u64> = requests.iter().filter_map(RequestRecord::first_seen_ns).collect();
    times_ns.sort_unstable();
    let at = |share: f64| times_ns.get((times_ns.len().saturating_sub(1) as f64 * share) as usize).copied();
    let bulk_ns = at(0.9)?.saturating_sub(at(0.1)?);
    let pause_max_ns = bulk_ns.saturating_mul(PAUSE_RATIO_MAX).max(PAUSE_USUAL_NS);
    let periods = times_ns.chunk_by(|before, after| after - before <= pause_max_ns);
    let period = periods.max_by_key(|period| period.len())?;
    let (first_ns, last_ns) = (*period.first()?, *period.last()?);
    let is_outside = |request: &RequestRecord| {
        request.first_seen_ns().is_some_and(|first_seen_ns| !(first_ns..=last_ns).contains(&first_seen_ns))
    };
    let count = remove(requests, is_outside);
    let ends_ns = first_ns..=last_ns.saturating_add(pause_max_ns);
    let mut lost = 0;
    for request in requests.iter_mut() {
        // A completion without its request has no other time.
        let is_wrong = request.completed_ns.is_some_and(|completed_ns| !ends_ns.contains(&completed_ns));
        if is_wrong {
            request.completed_ns = None;
            lost += 1;
        }
    }
    if count + lost == 0 {
        return None;
    }
    let left_out = (count > 0).then(|| format!("{} left out", requests_of("impossible time", count)));
    let missing = match lost {
        0 => None,
        1 => Some("1 completion at an impossible time counts as missing".to_owned()),
        lost => Some(format!("{} completions at impossible times count as missing", grouped(lost))),
    };
    let parts: Vec<String> = left_out.into_iter().chain(missing).collect();
    let seconds = pause_max_ns / 1_000_000_000;
    Some(format!("{}: more than {seconds} s before or after the others", parts.join(", and ")))
}

/// The first and the last time of a device's records, in ns, without records that are more than a
/// minute before or after all requests.
pub(super) fn plausible_span(records_ns: (u64, u64), requests: &[RequestRecord]) -> (u64, u64) {
    let times = |request: &RequestRecord| [request.first_seen_ns(), request.completed_ns];
    let times_ns = || requests.iter().flat_map(times).flatten();
    let (Some(first_ns), Some(last_ns)) = (times_ns().min(), times_ns().max()) else { return records_ns };
    let is_near = |one_ns: u64, other_ns: u64| one_ns.abs_diff(other_ns) <= PAUSE_USUAL_NS;
    let from_ns = if is_near(records_ns.0, first_ns) { records_ns.0 } else { first_ns };
    let until_ns = if is_near(records_ns.1, last_ns) { records_ns.1 } else { last_ns };
    (from_ns, until_ns)
}

/// The end below which the sectors of requests are plausible, for a trace without a known drive.
pub(super) fn plausible_end(ends: impl Iterator<Item = u64>) -> u64 {
    let mut ends: Vec<u64> = ends.collect();
    let most = quantile(&mut ends, 0.9).unwrap_or(0);
    most.saturating_mul(SECTOR_RATIO_MAX).max(SECTOR_USUAL_MAX)
}

/// The beginning of a note: "3 requests of impossible length are".
pub(super) fn requests_of(what: &str, count: u64) -> String {
    match count {
        1 => format!("1 request of {what} is"),
        count => format!("{} requests of {what} are", grouped(count)),
    }
}

/// Removes requests and returns their number.
fn remove(requests: &mut Vec<RequestRecord>, is_wrong: impl Fn(&RequestRecord) -> bool) -> u64 {
    let before = requests.len();
    requests.retain(|request| !is_wrong(request));
    (before - requests.len()) as u64
}

/// A quantile of values, whose order is lost; `None` without values.
fn quantile<T: Ord + Copy>(values: &mut [T], share: f64) -> Option<T> {
    let index = (values.len().checked_sub(1)? as f64 * share) as usize;
    Some(*values.select_nth_unstable(index).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_trace::Rwbs;

    const S: u64 = 1_000_000_000;

    fn request(second: u64, bytes: u32) -> RequestRecord {
        RequestRecord {
            op: Rwbs::READ,
            bytes,
            queued_ns: Some(second * S),
            completed_ns: Some(second * S + 1),
            ..RequestRecord::default()
        }
    }

    #[test]
    fn a_request_years_after_the_others_is_left_out() {
        let mut requests: Vec<_> = (0..100).map(|second| request(second, 4096)).collect();
        requests.push(request(1 << 30, 4096));
        requests[7].completed_ns = Some(1 << 61);
        let notes = leave_out(&mut requests);
        assert_eq!((requests.len(), requests[7].completed_ns), (100, None));
        // 20 times 80 s, from request 10 to request 90.
        let expected = "1 request of impossible time is left out, and 1 completion at an impossible time counts as \
                        missing: more than 1600 s before or after the others";
        assert_eq!(notes, [expected]);
    }

    #[test]
    fn a_quiet_night_is_no_damage() {
        let day = |from: u64| (0..1000).map(move |number| request(from + number * 30, 4096));
        let mut requests: Vec<_> = day(0).chain(day(86_400)).collect();
        assert_eq!((leave_out(&mut requests).len(), requests.len()), (0, 2000));
    }

    #[test]
    fn a_length_is_wrong_only_beside_shorter_ones() {
        let mut requests: Vec<_> = (0..100).map(|second| request(second, 4096)).collect();
        requests[3].bytes = 3 << 30;
        assert_eq!(
            leave_out(&mut requests),
            ["1 request of impossible length is left out: the longest has 3221225472 bytes, the median request 4096"]
        );
        let mut requests: Vec<_> = (0..100).map(|second| request(second, 128 << 20)).collect();
        assert_eq!((leave_out(&mut requests).len(), requests.len()), (0, 100));
    }

    #[test]
    fn sectors_are_plausible_up_to_16_times_those_of_the_bulk() {
        assert_eq!(plausible_end((1..=1000).chain([1 << 60])), 1 << 31);
        assert_eq!(plausible_end((0..1000).map(|_| 1 << 31)), 1 << 35);
    }
}
