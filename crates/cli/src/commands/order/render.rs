//! Prints the cost report of `hoistway order --explain`.

use anyhow::Result;
use hoistway_order::explain::{CostReport, FileSystemCost, OrderCost};

use crate::output::{self, Out};
use hoistway_units::figures::{bytes, figure};
use hoistway_units::printable::one_line;

/// The method of the simulation, for every report.
pub const METHOD: &str = "The simulation times the reads of file data only, one after the other, with a read-ahead of at most 128 KiB, on an otherwise idle drive; \
inodes and directories are not included.";

/// Prints the report as text.
pub fn print(report: &CostReport, out: &mut Out) -> Result<()> {
    if report.file_systems.is_empty() {
        return Ok(out.line("There is no file to read.")?);
    }
    for (index, of) in report.file_systems.iter().enumerate() {
        if index > 0 {
            out.line("")?;
        }
        out.paragraph(0, &found(of))?;
        let Some(drive) = &of.drive else {
            out.paragraph(0, "This file system does not report extents: the orders cannot be compared.")?;
            continue;
        };
        if let Some(line) = drive_line(of) {
            out.paragraph(0, &line)?;
        }
        out.line("")?;
        let time = format!("time on\n{}", one_line(drive));
        let header = ["order", "reads", "seeks", "backward", "distance", &time, "MB/s"];
        let mut table = output::table(&header, 1);
        for cost in &of.orders {
            table.add_row([
                cost.order.to_owned(),
                cost.reads.to_string(),
                cost.seeks.to_string(),
                cost.backward.to_string(),
                bytes(cost.distance_bytes),
                seconds(cost.seconds),
                rate(of, cost),
            ]);
        }
        out.table(&mut table)?;
        out.line("")?;
        out.paragraph(0, &verdict(of))?;
    }
    out.line("")?;
    Ok(out.paragraph(0, METHOD)?)
}

/// Formats files and extents: "/srv/mail (device 8:1): 22500 files of 236 MB in 25400 extents on
/// the disk."
pub fn found(of: &FileSystemCost) -> String {
    let mut text = format!(
        "{} (device {}): {} of {} in {} on the disk",
        of.path,
        of.device,
        counted(of.files, "file"),
        bytes(of.bytes),
        counted(of.extents, "extent")
    );
    if of.without_data > 0 {
        text.push_str(&format!("; {} without data there", counted(of.without_data, "file")));
    }
    if of.not_placed > 0 {
        text.push_str(&format!("; {} not completely written yet (--sync writes them)", counted(of.not_placed, "file")));
    }
    text.push('.');
    text
}

/// Formats the drive and the reason for it; `None` if the drive was given.
pub fn drive_line(of: &FileSystemCost) -> Option<String> {
    Some(format!("Drive: {}, {}.", of.drive.as_deref()?, of.why_drive.as_deref()?))
}

/// Compares physical disk order with directory order.
pub fn verdict(of: &FileSystemCost) -> String {
    let time = |name: &str| of.orders.iter().find(|cost| cost.order == name).map_or(0.0, |cost| cost.seconds);
    let (readdir, block) = (time("readdir"), time("block"));
    if block <= 0.0 {
        return "No data have to be read.".to_owned();
    }
    let times = readdir / block;
    if times < 1.05 {
        return "Directory order is physical disk order already: another order gains nothing here.".to_owned();
    }
    format!(
        "Block order takes {}, directory order takes {}: {} times as long.",
        seconds(block),
        seconds(readdir),
        figure(times)
    )
}

/// Formats a duration: "12.3 s", "4.5 min".
pub fn seconds(seconds: f64) -> String {
    match seconds {
        s if s >= 7200.0 => format!("{} h", figure(s / 3600.0)),
        s if s >= 600.0 => format!("{} min", figure(s / 60.0)),
        s => format!("{} s", figure(s)),
    }
}

fn rate(of: &FileSystemCost, cost: &OrderCost) -> String {
    if cost.seconds > 0.0 { figure(of.bytes as f64 / 1e6 / cost.seconds) } else { "-".to_owned() }
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(readdir: f64, block: f64) -> FileSystemCost {
        let cost = |order, seconds| OrderCost {
            order,
            reads: 1,
            distance_bytes: 0,
            seeks: 0,
            backward: 0,
            seconds,
            head: Vec::new(),
        };
        FileSystemCost {
            device: "8:1".into(),
            path: "p".into(),
            files: 1,
            bytes: 4096,
            extents: 1,
            without_data: 0,
            not_placed: 2,
            drive: Some("d".into()),
            why_drive: None,
            orders: vec![cost("readdir", readdir), cost("block", block)],
        }
    }

    #[test]
    fn a_verdict_compares_block_order_with_directory_order() {
        assert!(verdict(&of(90.0, 20.0)).ends_with("takes 20.0 s, directory order takes 90.0 s: 4.50 times as long."));
        assert!(verdict(&of(1.0, 1.0)).contains("gains nothing"));
        assert_eq!(verdict(&of(0.0, 0.0)), "No data have to be read.");
    }

    #[test]
    fn the_summary_mentions_files_that_are_not_on_the_disk() {
        let text = found(&of(1.0, 1.0));
        assert_eq!(
            text,
            "p (device 8:1): 1 file of 4.10 kB in 1 extent on the disk; 2 files not completely written yet (--sync writes them)."
        );
    }
}
