//! Warnings about fitted parameters with thin evidence in the trace.

use crate::command::Op;
use crate::recording::Record;

use super::arm::Arm;
use super::requests::Requests;
use super::tracks::{self, Search, Spread, Tracks};

/// Pairs of reads on one track below which the number of sectors a track is uncertain.
const PAIRS_FEW: usize = 25;
/// Reads below which the seek curve of 14 points is uncertain.
const READS_FEW: usize = 500;
/// Writes below which their additional time is uncertain.
pub(super) const WRITES_FEW: usize = 50;
/// The ratio of the demerits of the two halves from which on the second half differs from the
/// first.
const HALVES_RATIO: f64 = 2.0;
/// A demerit in ms below which the halves are not compared.
const DEMERIT_SMALL_MS: f64 = 0.1;

/// The recording that determines the revolution.
const ADVICE: &str = "a recording determines it that returns to few tracks: 2,000 reads of one size at random within 1 MB, with pauses of 0 to 20 ms, on a clock of microseconds";

/// The warnings of a disk that is fitted from scratch.
pub(super) fn of_disk(requests: &Requests, search: Search, arm: &Arm, spread: Spread) -> Vec<String> {
    let mut warnings = Vec::new();
    let revolution_ns = spread.usual_ns();
    let revolution = || {
        let rpm = 6e10 / revolution_ns;
        let error = 100.0 * spread.error;
        let spread = "the spread of service times";
        match tracks::is_usual(revolution_ns) {
            true => format!(
                "the revolution is that of the usual speed next to {spread} ({rpm:.0} rpm, which may be wrong by {error:.0} %); {ADVICE}"
            ),
            false => {
                format!("the revolution is {spread} ({rpm:.0} rpm, with a standard error of {error:.0} %); {ADVICE}")
            }
        }
    };
    match search {
        Search::Nothing => warnings.push(format!("no pairs of reads on one track agree: {}", revolution())),
        Search::Doubtful(Tracks { revolution_ns, pairs, coherence, odds, .. }, second_ns) => {
            let (first, second) = (6e10 / revolution_ns, 6e10 / second_ns);
            warnings.push(format!(
                "{pairs} pairs of reads on one track show no certain revolution ({first:.0} rpm with coherence {coherence:.2}, only {odds} likelier than {second:.0} rpm): {}",
                revolution()
            ));
        }
        Search::Found(Tracks { pairs, .. }) if pairs < PAIRS_FEW => warnings.push(format!(
            "only {pairs} pairs of reads on one track determine revolution and sectors a track; {PAIRS_FEW} are needed for certainty"
        )),
        Search::Found(_) => {}
    }
    if arm.reads < READS_FEW {
        warnings
            .push(format!("only {} reads determine the seek curve; {READS_FEW} are needed for certainty", arm.reads));
    }
    let writes = requests.all.iter().filter(|request| request.op == Op::Write).count();
    let on_media = requests.media(Op::Write).count();
    warnings.extend(of_writes(writes));
    if writes > 0 {
        match requests.write_hits {
            None => warnings.push(
                "no write was faster than the media: the profile has no write cache; the drive may have one that was off or bypassed (FUA, flushes)"
                    .to_string(),
            ),
            Some(_) if on_media * 100 < writes => warnings.push(format!(
                "{on_media} of {writes} writes waited for the media: the size of the write cache is unknown"
            )),
            Some(_) => {}
        }
    }
    warnings
}

/// The warnings of a disk whose geometry is kept.
pub(super) fn of_base(half: &[Record], coherence: f64, needed: f64) -> Vec<String> {
    let mut warnings = Vec::new();
    if coherence < needed {
        warnings.push(format!(
            "the clock of the trace does not show the angle of the platter (coherence {coherence:.2}, at least {needed} is needed): \
             distributions of service times are fitted, not the times of requests"
        ));
    }
    warnings.extend(of_writes(half.iter().filter(|record| record.access.op == Op::Write).count()));
    warnings
}

/// The warnings of a flash drive: from the numbers of sizes and of requests, and whether its writes
/// ended in the buffer.
pub(super) fn of_flash(read_sizes: usize, reads: usize, writes: usize, buffered: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    if reads > 0 && read_sizes < 2 {
        warnings.push("all reads have one size: the rates of link and channels are unknown".to_string());
    }
    if reads < READS_FEW {
        warnings.push(format!("only {reads} reads determine the page reads; {READS_FEW} are needed for certainty"));
    }
    warnings.extend(of_writes(writes));
    if buffered {
        warnings.push("no write waited for its program: the times of programs are assumed".to_string());
    }
    warnings
}

fn of_writes(writes: usize) -> Option<String> {
    match writes {
        0 => Some("the trace has no writes: their times and the write cache are assumed".to_string()),
        1..WRITES_FEW => {
            Some(format!("only {writes} writes determine the times of writes; {WRITES_FEW} are needed for certainty"))
        }
        _ => None,
    }
}

/// The warning that the second half of the trace differs from the first, by their demerits in ms.
pub(super) fn of_halves(first: f64, second: f64) -> Option<String> {
    (second > HALVES_RATIO * first.max(DEMERIT_SMALL_MS)).then(|| {
        format!(
            "the demerit of the second half of the trace is {second:.3} ms, that of the first half {first:.3} ms: the workload changes \
             within the trace, or the first half is too short"
        )
    })
}
