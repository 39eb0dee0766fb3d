//! The parts of the page about all drives, flash drives and cloud volumes.

use hoistway_drive::accuracy::{AccuracyReport, CLOUD_DEPTH, DriveClass, FLASH_WRITES};

use super::{checks, code, table};
use hoistway_units::figures::{bytes, figure};

/// One row for each drive with its key figures.
pub fn all_drives(report: &AccuracyReport) -> String {
    let optional = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), figure);
    let row = |drive: &hoistway_drive::accuracy::DriveSummary| {
        vec![
            code(&drive.drive),
            class(drive.class).to_owned(),
            bytes(drive.capacity_bytes),
            drive.rpm.map_or_else(|| "-".to_owned(), |rpm| format!("{rpm:.0}")),
            drive.depth.to_string(),
            optional(drive.mean_seek_sectors_ms),
            figure(drive.random_read_4k_iops),
            optional(drive.sequential_outer_mb_s),
            optional(drive.sequential_inner_mb_s),
        ]
    };
    let header = [
        "drive",
        "class",
        "size",
        "rpm",
        "queue depth",
        "mean seek, ms",
        "random 4 KiB reads/s",
        "MB/s, outer tracks",
        "MB/s, inner tracks",
    ];
    format!(
        "These figures follow from the profiles without a run.\n\
         The mean seek is the mean over pairs of uniform sectors; random reads are one at a time.\n\
         `hoistway drives NAME` describes each drive and names the sources of its figures.\n\n{}",
        table(&header, &report.drives.iter().map(row).collect::<Vec<_>>())
    )
}

fn class(class: DriveClass) -> &'static str {
    match class {
        DriveClass::DiskMeasured => "disk, measured",
        DriveClass::DiskFromTable => "disk, row of a published table",
        DriveClass::DiskFromDataSheet => "disk, from data sheets",
        DriveClass::Flash => "flash",
        DriveClass::Cloud => "cloud volume",
        DriveClass::Array => "array",
        DriveClass::Null => "none",
    }
}

/// One row for each drive with measured latencies.
pub fn latencies(report: &AccuracyReport) -> String {
    let rows = report.latencies.iter().map(|check| {
        let mut cells = vec![code(check.drive)];
        let pairs = check.percentiles.iter();
        cells.extend(pairs.map(|pair| format!("{} / {}", figure(pair.measured_us), figure(pair.model_us))));
        cells.push(format!("{:+.1} %", check.largest_error * 100.0));
        (cells, check.reached)
    });
    let mut header = vec!["drive"];
    if let Some(check) = report.latencies.first() {
        header.extend(check.percentiles.iter().map(|percentile| percentile.name));
    }
    header.extend(["largest error", "within 15 %"]);
    format!(
        "Random 4 KiB reads one at a time, measured / model in us.\n\
         The author of ublk-disksim measured them (2026).\n\
         The source text of each profile says which of its figures were fitted to these measurements.\n\n{}",
        checks(&header, rows)
    )
}

/// One row for each flash drive.
pub fn flash(report: &AccuracyReport) -> String {
    let two = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
    let rows = report.flash.iter().map(|check| {
        let cells = vec![
            code(&check.drive),
            figure(check.sum_us),
            figure(check.model_us),
            format!("{:.0}", check.limit_iops),
            check.limit.to_owned(),
            format!("{:.0}", check.model_iops),
            two(check.closed_form),
            two(check.write_amplification),
        ];
        (cells, check.reached)
    });
    let header = [
        "drive",
        "one read, us",
        "model, us",
        "limit, reads/s",
        "limited by",
        "model, reads/s at full depth",
        "amplification, closed form",
        "model",
        "all reached",
    ];
    format!(
        "- One 4 KiB read takes command, interface, the mean page read, and the transfer over channel and link: within 5 %.\n\
         - Many reads are limited by the controller, by the link, or by the D dies, of which D (1 - (1 - 1/D)^depth) are busy. \
         The limit of the dies is an upper bound, because some dies have queues while others are idle. \
         The goal is 5 % where controller or link allow at most half of what the dies do, and not above the limit otherwise.\n\
         - Write amplification is measured over {FLASH_WRITES} random 4 KiB writes. \
         The closed form is P. Desnoyers' for greedy cleaning (\"Analytic modeling of SSD write performance\", SYSTOR 2012): within 10 %. \
         Drives that start sequentially filled are left out.\n\n{}",
        checks(&header, rows)
    )
}

/// One row for each documented rate.
pub fn cloud(report: &AccuracyReport) -> String {
    let rows = report.cloud.iter().map(|check| {
        let (documented, model) = (format!("{:.0}", check.documented_iops), format!("{:.1}", check.model_iops));
        (vec![code(check.drive), check.documented.to_owned(), documented, model], check.reached)
    });
    let header = ["volume", "documented", "reads/s", "model, reads/s", "within 1 %"];
    format!(
        "{CLOUD_DEPTH} reads are in flight.\n\
         A gp2 volume of 100 GiB bursts for 5.4 million / (3000 - 300) = 2000 s and then runs at 300 operations a second.\n\
         That takes 6 million reads and has a test of its own (`crates/drive/tests/it/cloud.rs`).\n\n{}",
        checks(&header, rows)
    )
}
