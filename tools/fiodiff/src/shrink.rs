//! The smallest job that differs.

use anyhow::Result;

use crate::case::Case;
use crate::compare::Verdict;
use crate::examine;

/// Most runs of fio for one job.
const STEPS_MAX: u32 = 60;

/// Takes options out of a job that differs, as long as it differs. Returns the rest with its
/// difference.
///
/// # Errors
/// fio cannot be started.
pub fn shrink(case: &Case, text: String) -> Result<(Case, String)> {
    let (mut small, mut text, mut steps) = (case.clone(), text, 0);
    let mut at = small.options.len();
    while at > 0 && steps < STEPS_MAX {
        at -= 1;
        let mut less = small.clone();
        less.options.remove(at);
        steps += 1;
        if let Verdict::Differs(difference) = examine(&less)? {
            (small, text) = (less, difference);
        }
    }
    Ok((small, text))
}
