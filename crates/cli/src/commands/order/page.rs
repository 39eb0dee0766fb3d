//! The HTML page of `hoistway order --explain --report`.

use anyhow::Result;
use hoistway_order::explain::{CostReport, FileSystemCost, OrderCost};
use hoistway_report::{BarRow, BarTable, Footprint, FootprintPanel, Sheet, SheetSection, sheet_page};

use super::render::{METHOD, drive_line, found, seconds, verdict};
use hoistway_units::figures::bytes;

/// Renders one HTML file with a diagram per file system.
pub fn page(report: &CostReport) -> Result<String> {
    let sheet = Sheet {
        command: "hoistway order --explain".to_owned(),
        title: "Head movement by read order".to_owned(),
        subtitle: "The same files read in four orders from one disk.".to_owned(),
        verdict: match report.file_systems.as_slice() {
            [one] if one.drive.is_some() => verdict(one),
            _ => String::new(),
        },
        answer: report.file_systems.iter().filter(|of| of.drive.is_some()).map(bars).collect(),
        sections: report.file_systems.iter().map(section).collect(),
        notes: vec![METHOD.to_owned()],
        ..Sheet::default()
    };
    Ok(sheet_page(&sheet)?)
}

/// The time and the seeks of each order; the order of the blocks is the one that `order` prints.
fn bars(of: &FileSystemCost) -> BarTable {
    let row = |cost: &OrderCost| BarRow {
        name: cost.order.to_owned(),
        is_marked: cost.order == "block",
        values: vec![cost.seconds, cost.distance_bytes as f64 / 1e9],
        ..BarRow::default()
    };
    BarTable {
        caption: of.path.clone(),
        rows_are: "order".to_owned(),
        figures: vec!["time, s; less is better".to_owned(), "distance of seeks, GB; less is better".to_owned()],
        rows: of.orders.iter().map(row).collect(),
    }
}

fn section(of: &FileSystemCost) -> SheetSection {
    let Some(drive) = &of.drive else {
        return SheetSection {
            title: of.path.clone(),
            intro: format!("{} The file system does not report extents.", found(of)),
            ..SheetSection::default()
        };
    };
    SheetSection {
        title: of.path.clone(),
        intro: [found(of), drive_line(of).unwrap_or_default(), verdict(of)].join(" "),
        footprints: vec![Footprint {
            title: format!("Head position on {drive}"),
            x: "time, s".to_owned(),
            y: "position, GB from the start of the file system's device".to_owned(),
            panels: of.orders.iter().map(panel).collect(),
        }],
        ..SheetSection::default()
    }
}

fn panel(cost: &OrderCost) -> FootprintPanel {
    FootprintPanel {
        name: cost.order.to_owned(),
        note: format!("{}, {} of seeks", seconds(cost.seconds), bytes(cost.distance_bytes)),
        points: cost.head.iter().map(|(at, byte)| (*at, byte / 1e9)).collect(),
    }
}
