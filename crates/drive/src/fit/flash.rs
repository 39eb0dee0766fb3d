//! A flash drive's profile from requests that were made one at a time.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::profile::Profile;
use crate::recording::Record;
use crate::{Drive, Op};

use super::stats::{line, percentile};
use super::whole::{Finding, FitProfileError, FittedProfile, finish, quoted};
use super::{FitError, Prediction};

/// The part of a read that is taken to be the controller's: one request at a time cannot tell it from the page's own time.
const COMMAND_SHARE: f64 = 0.1;

/// Service time as a line over the size.
#[derive(Debug, Clone, Copy)]
struct Line {
    fixed_us: f64,
    sector_us: f64,
    requests: usize,
    sizes: usize,
}

/// Fits to `half` and measures with all.
pub(super) fn fit(half: &[Record], records: &[Record], name: &str) -> Result<FittedProfile, FitProfileError> {
    let end = |record: &Record| record.access.sector + u64::from(record.access.sectors);
    let capacity = records.iter().map(end).max().unwrap_or(1);
    let [reads, writes] = [Op::Read, Op::Write].map(|op| by_size(half, op));
    let sector_us = if reads.sizes > 1 { reads.sector_us } else { writes.sector_us };
    let fixed_us = if reads.requests > 0 { reads.fixed_us } else { writes.fixed_us };
    let command_us = fixed_us * COMMAND_SHARE;
    let mut toml = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        toml,
        "# Fitted to a trace of requests and their service times.\nname = {}\nwhat = \"a flash drive, fitted to a trace\"\n\
         source = \"\"\"\nFitted to a trace. {}\"\"\"\ninputs = [\"every figure: fitted to one trace, or assumed where the text says so\"]\n\n\
         [flash]\ndepth = 32\ncapacity_sectors = {capacity}\ncommand_us = {command_us:.3}\ndies = 16\npage_bytes = 4096\n\
         page_read_us = {:.3}\npage_program_us = {:.3}\nlink_sector_ns = {:.0}",
        quoted(name),
        untold().join(" "),
        (reads.fixed_us - command_us).max(0.0),
        (writes.fixed_us - command_us).max(0.0),
        sector_us * 1000.0
    );
    let mut found = Vec::new();
    for (what, line, op) in [("reads", reads, "reads"), ("writes", writes, "writes")] {
        if line.requests > 0 {
            let value = format!("{:.2} us and {:.3} us a sector", line.fixed_us, line.sector_us);
            found.push(Finding {
                what,
                value,
                from: format!("medians of {} {op} of {} sizes", line.requests, line.sizes),
            });
        }
    }
    finish(toml, name, found, untold(), |profile| replay(profile, records))
}

fn untold() -> Vec<String> {
    let share = COMMAND_SHARE * 100.0;
    vec![
        format!(
            "{share:.0} % of a command is assumed to be the controller's: requests one at a time cannot tell it from the pages' time."
        ),
        "Dies, pages and depth are assumed: they show when requests overlap.".to_string(),
    ]
}

/// The line through the medians of each size.
fn by_size(records: &[Record], op: Op) -> Line {
    let mut sizes: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.access.op == op) {
        sizes.entry(record.access.sectors).or_default().push(record.service_ns as f64 / 1000.0);
    }
    let requests = sizes.values().map(Vec::len).sum();
    let medians = sizes.iter().flat_map(|(sectors, times)| {
        let median = percentile(times, 0.5);
        std::iter::repeat_n((f64::from(*sectors), median), times.len())
    });
    let (fixed_us, sector_us) = line(&medians.collect::<Vec<_>>());
    Line { fixed_us: fixed_us.max(0.0), sector_us: sector_us.max(0.0), requests, sizes: sizes.len() }
}

/// Asks the model for every request at its recorded time, or when it is done with the one before.
fn replay(profile: &Profile, records: &[Record]) -> Result<Vec<Prediction>, FitError> {
    let mut drive = Drive::new(profile);
    let (mut free_ns, mut recorded_free_ns) = (0u64, 0u64);
    let mut predictions = Vec::with_capacity(records.len());
    for (index, record) in records.iter().enumerate() {
        let now_ns = record.issue_ns.max(free_ns);
        let served = drive.serve(now_ns, record.access).map_err(|source| FitError::Access { index, source })?;
        free_ns = served.service.finish_ns;
        let idle_ns = record.issue_ns.saturating_sub(recorded_free_ns);
        recorded_free_ns = record.issue_ns.saturating_add(record.service_ns);
        predictions.push(Prediction {
            op: record.access.op,
            zone: 0,
            predicted_ns: free_ns - now_ns,
            recorded_ns: record.service_ns,
            idle_ns,
        });
    }
    Ok(predictions)
}
