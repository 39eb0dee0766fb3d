//! The time of a flush in a flash drive that is fitted to a trace. The fit itself uses reads and
//! writes only.

use hoistway_drive::Profile;
use hoistway_drive::fit::{Finding, FittedProfile};
use hoistway_trace::Rwbs;
use hoistway_trace::request::RequestRecord;

/// The minimum number of flushes from which their time is determined.
const FLUSHES_MIN: usize = 16;
/// The table of a flash drive in the text of a profile.
const FLASH_TABLE: &str = "[flash]\n";

/// Gives a fitted flash drive the mean time of the flushes in the trace. Other drives, and a drive
/// whose trace has too few flushes, are returned unchanged. The time contains the writes that a
/// flush programs, so that the model does not program them in addition.
pub(crate) fn with_flush_time(fitted: FittedProfile, requests: &[RequestRecord]) -> FittedProfile {
    let times_ns: Vec<u64> = requests.iter().flat_map(flush_times_ns).collect();
    if times_ns.len() < FLUSHES_MIN {
        return fitted;
    }
    let mean_us = times_ns.iter().sum::<u64>() as f64 / times_ns.len() as f64 / 1e3;
    let keys = format!("{FLASH_TABLE}flush_us = {mean_us:.1}\npower_loss_protection = true\n");
    let toml = fitted.toml.replacen(FLASH_TABLE, &keys, 1);
    match Profile::from_toml(&toml, &format!("{}.toml", fitted.name)) {
        Ok(profile) if toml != fitted.toml => {
            let mut found = fitted.found;
            let from = format!("{} flushes", times_ns.len());
            found.push(Finding { what: "flush", value: format!("{mean_us:.0} us"), from });
            FittedProfile { found, toml, profile, ..fitted }
        }
        _ => fitted,
    }
}

/// The times of the flushes of a request in the drive, in ns.
fn flush_times_ns(record: &RequestRecord) -> impl Iterator<Item = u64> {
    let is_flush = record.bytes == 0 && record.op.has(Rwbs::FLUSH);
    let own = if is_flush { record.d2c_ns().or(record.q2c_ns()) } else { None };
    [own, record.preflush_ns(), record.postflush_ns()].into_iter().flatten()
}
