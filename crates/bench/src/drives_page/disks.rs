//! The parts of the page about disks.

use hoistway_drive::accuracy::{
    AccuracyReport, QUEUE_DEPTHS, QUEUE_READS, RANDOM_READS, STREAM_COUNTS, STREAM_SECTORS, STREAMS_DRIVE, StreamRates,
};

use super::{checks, code, table};

fn ms(value: f64) -> String {
    format!("{value:.3}")
}

fn percent(part: f64) -> String {
    format!("{:+.2} %", part * 100.0)
}

/// Two tables: random reads; sequential transfers and the shortest seek.
pub fn hand_sums(report: &AccuracyReport) -> String {
    format!(
        "**Random reads of 4 KiB, one at a time, buffer off.**\n\
         The sum is the mean seek over uniform sectors, half a revolution, and the rest: transfer, skews crossed, command and interface.\n\
         The model runs {RANDOM_READS} reads; the goal is the sum within 1 %.\n\n{}\n\
         **Sequential transfers.**\n\
         Reads of 32 KiB, with the buffer on, no overheads and an instant interface, against sectors a track over the revolutions that a cylinder takes with its skews: within 0.5 %.\n\
         The median of 4 KiB writes with caches off, each of which waits for the next revolution (except on drives whose commands take no time): within 1 %.\n\
         The seek to the next cylinder against the seek curve: exact.\n\n{}",
        random_reads(report),
        sequential(report)
    )
}

fn random_reads(report: &AccuracyReport) -> String {
    let two = |value: f64| format!("{value:.2}");
    let rows = report.random_reads.iter().map(|check| {
        let rest = check.sum_ms - check.seek_ms - check.half_revolution_ms;
        let mut cells = vec![code(&check.drive)];
        let sums = [check.seek_ms, check.half_revolution_ms, rest, check.sum_ms, check.model_ms];
        cells.extend(sums.map(two));
        cells.push(percent(check.error()));
        (cells, check.reached)
    });
    let header =
        ["drive", "seek, ms", "half a revolution, ms", "rest, ms", "sum, ms", "model, ms", "error", "within 1 %"];
    checks(&header, rows)
}

fn sequential(report: &AccuracyReport) -> String {
    let rows = report.sequential.iter().map(|check| {
        let cells = vec![
            code(&check.drive),
            format!("{:.1}", check.read_mb_s),
            format!("{:.1}", check.model_read_mb_s),
            percent(check.read_error()),
            format!("{:.2}", check.write_ms),
            format!("{:.2}", check.model_write_ms),
            percent(check.write_error()),
            ms(check.single_seek_ms),
            check.model_single_seek_ms.map_or_else(|| "-".to_owned(), ms),
        ];
        (cells, check.reached)
    });
    let header = [
        "drive",
        "reads, MB/s",
        "model, MB/s",
        "error",
        "4 KiB writes, ms",
        "model, ms",
        "error",
        "next cylinder, ms",
        "model, ms",
        "all reached",
    ];
    checks(&header, rows)
}

/// One row for each recorded drive, and its plot.
pub fn recordings(report: &AccuracyReport) -> String {
    let rows = report.recordings.iter().map(|check| {
        let goal = match check.rms_goal_ms {
            Some(rms_ms) => format!("RMS < {rms_ms} and ratio <= {}", check.ratio_goal),
            None => format!("ratio <= {}", check.ratio_goal),
        };
        let cells = vec![
            code(check.drive),
            check.requests.to_string(),
            format!("{:.2}", check.coherence),
            ms(check.rms_ms),
            ms(check.at_once_rms_ms),
            ms(check.demerit_ms),
            ms(check.read_demerit_ms),
            ms(check.disksim_ms),
            format!("{:.2}", check.ratio),
            goal,
        ];
        (cells, check.reached)
    });
    let header = [
        "drive",
        "requests",
        "coherence",
        "RMS, ms",
        "RMS without idle time, ms",
        "demerit, ms",
        "demerit of reads, ms",
        "DiskSim's demerit, ms",
        "ratio",
        "goal",
        "reached",
    ];
    let plots: String = report
        .recordings
        .iter()
        .map(|check| {
            let name = check.drive;
            format!("![Distribution of the service times of {name}, recorded and modelled](drives/{name}.svg)\n")
        })
        .collect();
    format!(
        "The model receives each request at its recorded time of issue.\n\
         Revolution and angle at the start are fitted first; all other figures are those of the profile.\n\n\
         - *RMS* is the error request by request. *RMS without idle time* counts the requests that follow the one before within 1 ms.\n\
         - The *demerit* is the RMS distance between the two distributions of service times (C. Ruemmler, J. Wilkes, \"An introduction to disk drive modeling\", IEEE Computer 27(3), 1994). DiskSim's demerit is the one that its own validation prints for the same drive and recording.\n\
         - *Coherence* measures how well the recorded times show the angle of the platter. At about 0 they do not show it, and no model can be right request by request.\n\n{}\n{plots}",
        checks(&header, rows)
    )
}

/// Two tables: rates by depth; gains by window.
pub fn command_queues(report: &AccuracyReport) -> String {
    let depth_rows = report.queue_depths.iter().map(|check| {
        let mut cells = vec![code(&check.drive)];
        cells.extend(
            (0..QUEUE_DEPTHS.len())
                .map(|index| check.rates.get(index).map_or("-".to_owned(), |rate| format!("{:.0}", rate.iops))),
        );
        cells.push(format!("{:.2}", check.gain));
        (cells, check.reached)
    });
    let depths = QUEUE_DEPTHS.map(|depth| format!("depth {depth}"));
    let mut header = vec!["drive"];
    header.extend(depths.iter().map(String::as_str));
    header.extend(["deepest / 1", "never falls"]);
    let window_rows = report.queue_windows.iter().map(|check| {
        let gain = format!("{:.2}", check.gain);
        (vec![code(check.drive), check.window.to_string(), gain, check.expected.to_string()], check.reached)
    });
    format!(
        "Random 4 KiB reads a second by commands in flight, {QUEUE_READS} reads each.\n\
         A deeper queue never makes a drive slower, except for 1 % of sampling noise.\n\n{}\n\
         Published gains of a queue of 32 range from 1.7 for a drive that chooses among its 4 oldest commands to 2.9 for a drive that chooses among all 32.\n\
         The goal is 5 %.\n\n{}",
        checks(&header, depth_rows),
        checks(&["drive", "window", "depth 32 / 1", "expected", "reached"], window_rows)
    )
}

/// Two tables: writes by the write cache; reads by the minimum read-ahead.
pub fn streams(report: &AccuracyReport) -> String {
    let kib = STREAM_SECTORS / 2;
    let row = |rates: &StreamRates| {
        let mut cells = vec![code(&rates.setting)];
        cells.extend(rates.mb_s.iter().map(|mb_s| format!("{mb_s:.1}")));
        cells.extend(rates.random_writes.map(|iops| format!("{iops:.0}")));
        cells
    };
    let rows = |rates: &[StreamRates]| rates.iter().map(row).collect::<Vec<_>>();
    let counts = STREAM_COUNTS.map(|count| if count == 1 { "1 stream".to_owned() } else { format!("{count} streams") });
    let mut header = vec!["`[buffer]`"];
    header.extend(counts.iter().map(String::as_str));
    let reads = table(&header, &rows(&report.read_streams));
    header.push("random 4 KiB writes/s");
    let writes = table(&header, &rows(&report.write_streams));
    format!(
        "No data sheet states the segments of a write cache or the minimum read-ahead. \
         The tables show what depends on them: MB/s of sequential streams, {kib} KiB at a time in turn, far apart on `{STREAMS_DRIVE}` with one command at a time.\n\n\
         A segment holds one run of adjacent sectors; here it has 2 MiB. \
         The disk writes back in idle time, above `write_high`, and when a write needs space. \
         It takes the run with the shortest access time among the next 32 upwards from the arm (a sweep, as in T. R. Haining, D. D. E. Long, \"Management policies for non-volatile write caches\", IPCCC 1999, with the access time of M. Seltzer, P. Chen, J. Ousterhout, \"Disk scheduling revisited\", USENIX 1990), and after a segment of one run it is another run's turn.\n\
         With fewer segments than streams, every request waits for the arm: the rate is that of random writes.\n\n{writes}\n\
         Reads, write cache off. Without a minimum read-ahead every request positions the arm, because the next stream's request ends the read-ahead of the last.\n\n{reads}"
    )
}

/// One row for each fitted recording.
pub fn fits(report: &AccuracyReport) -> String {
    let rows = report.fits.iter().map(|check| {
        let held = &check.held_out;
        let pair = |index: usize| format!("{:.1} / {:.1}", held.recorded_ms[index], held.predicted_ms[index]);
        let cells = vec![
            code(check.drive),
            check.revolution.clone(),
            pair(0),
            pair(1),
            pair(2),
            ms(held.errors.demerit_ms),
            ms(check.measured_demerit_ms),
        ];
        (cells, check.reached)
    });
    let header = [
        "drive",
        "revolution found",
        "p50 recorded / model, ms",
        "p90, ms",
        "p99, ms",
        "demerit, held out, ms",
        "demerit of the measured profile, ms",
        "at most twice",
    ];
    format!(
        "`hoistway drives --fit` makes a profile from sectors, sizes and service times alone.\n\
         It is fitted to the first half of each recording; the figures are those of the second half.\n\n{}",
        checks(&header, rows)
    )
}
