//! The times for which the locks of elevators are held: the kernel's statistics of locks, for one
//! elevator after the other under the same load.

use std::path::Path;
use std::thread;
use std::time::Duration;

use super::{Context, Failure, Verdict};
use crate::load::{Load, Setup};
use crate::plan::{self, ElevatorLock};
use crate::protocol::Counts;
use crate::{Outcome, system};

const STATISTICS: &str = "/proc/lock_stat";
const SWITCH: &str = "/proc/sys/kernel/lock_stat";
/// The time from the start of the load to the start of the measurement.
const WARM_UP: Duration = Duration::from_secs(1);

/// The figures of a lock. Times are in nanoseconds; the kernel counts hundredths of a microsecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Figures {
    contentions: u64,
    wait_total_ns: u64,
    acquisitions: u64,
    hold_max_ns: u64,
    hold_total_ns: u64,
}

/// Measures the locks. The names of the figures begin with that of the elevator.
pub fn run(context: &mut Context, device: &plan::Device, elevators: &[ElevatorLock], seconds: u64) -> Verdict {
    if !Path::new(STATISTICS).exists() {
        return Err(Failure::Skipped("the kernel has no statistics of locks".to_owned()));
    }
    let device = context.device(device, "none")?;
    let seed = context.prng.number();
    let mut counts = Counts::new();
    for ElevatorLock { elevator, lock } in elevators {
        device.queue().select(elevator)?;
        let load = Load::start(Setup::new(&device.path(), seed))?;
        thread::sleep(WARM_UP);
        let before = requests(device.name())?;
        system::write(STATISTICS, "0")?;
        system::write(SWITCH, "1")?;
        thread::sleep(Duration::from_secs(seconds));
        system::write(SWITCH, "0")?;
        let requests = requests(device.name())? - before;
        let figures = parse(&system::read(STATISTICS)?, lock);
        load.finish()?;
        let figures = figures.ok_or_else(|| format!("{STATISTICS} has no row of {lock} with {elevator}"))?;
        for (name, figure) in [
            ("requests", requests),
            ("acquisitions", figures.acquisitions),
            ("contentions", figures.contentions),
            ("wait_total_ns", figures.wait_total_ns),
            ("hold_max_ns", figures.hold_max_ns),
            ("hold_total_ns", figures.hold_total_ns),
        ] {
            counts.insert(format!("{elevator} {name}"), figure);
        }
    }
    Ok(counts)
}

/// The completed reads and writes of a device.
fn requests(device: &str) -> Outcome<u64> {
    let text = system::read(Path::new("/sys/block").join(device).join("stat"))?;
    let numbers: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    match (numbers.first(), numbers.get(4)) {
        (Some(reads), Some(writes)) => Ok(reads + writes),
        _ => Err(format!("the statistics of {device} have no reads and writes: {text}")),
    }
}

/// The sums of the rows whose names contain a text; None if there are none.
fn parse(text: &str, lock: &str) -> Option<Figures> {
    let mut sum: Option<Figures> = None;
    for (name, row) in text.lines().filter_map(|line| line.rsplit_once(':')) {
        // The rows of the places where a lock was taken have fewer columns.
        let columns: Vec<f64> = row.split_whitespace().map_while(|word| word.parse().ok()).collect();
        if columns.len() != 12 || !name.contains(lock) {
            continue;
        }
        let (count, nanoseconds) = (|at: usize| columns[at] as u64, |at: usize| (columns[at] * 1e3).round() as u64);
        let figures = sum.get_or_insert_default();
        figures.contentions += count(1);
        figures.wait_total_ns += nanoseconds(4);
        figures.acquisitions += count(7);
        figures.hold_max_ns = figures.hold_max_ns.max(nanoseconds(9));
        figures.hold_total_ns += nanoseconds(10);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "lock_stat version 0.4\n\
        class name    con-bounces    contentions   waittime-min   waittime-max waittime-total   waittime-avg    \
        acq-bounces   acquisitions   holdtime-min   holdtime-max holdtime-total   holdtime-avg\n\n\
        &hw->lock:   10   12   0.43   190.53   103.26   8.60   97   345   0.05   401.11   1322.46   3.82\n\
        ---------\n\
        &hw->lock    7    [<ffffffffc0001234>] hw_insert_requests+0x40/0x2b0 [hoistway_iosched]\n\
        &rq->__lock:  1  2  0.1  0.2  0.3  0.4  5  6  0.7  0.8  0.9  0.10\n";

    #[test]
    fn the_row_of_a_lock_is_parsed() {
        let expected = Figures {
            contentions: 12,
            wait_total_ns: 103_260,
            acquisitions: 345,
            hold_max_ns: 401_110,
            hold_total_ns: 1_322_460,
        };
        assert_eq!(parse(TEXT, "&hw->lock"), Some(expected));
        assert_eq!(parse(TEXT, "&dd->lock"), None);
    }
}
