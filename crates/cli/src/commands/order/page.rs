//! The HTML page of `hoistway order --explain --report`.

use anyhow::Result;
use hoistway_order::explain::{CostReport, FileSystemCost, OrderCost};
use hoistway_report::{Fact, Footprint, FootprintPanel, Sheet, SheetSection, sheet_page};

use super::render::{METHOD, drive_line, found, seconds, verdict};
use hoistway_units::figures::bytes;

/// Renders one HTML file with a diagram per file system.
pub fn page(report: &CostReport) -> Result<String> {
    let sheet = Sheet {
        command: "hoistway order --explain".to_owned(),
        title: "Head movement by read order".to_owned(),
        subtitle: "The same files read in four orders from one disk.".to_owned(),
        sections: report.file_systems.iter().map(section).collect(),
        notes: vec![METHOD.to_owned()],
    };
    Ok(sheet_page(&sheet)?)
}

fn section(of: &FileSystemCost) -> SheetSection {
    let fact = |cost: &OrderCost| Fact { label: cost.order.to_owned(), value: seconds(cost.seconds) };
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
        facts: of.orders.iter().map(fact).collect(),
        footprints: vec![Footprint {
            title: format!("Head position on {drive}"),
            x: "seconds".to_owned(),
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
