//! The page of `hoistway order --explain --report`.

use anyhow::Result;
use hoistway_report::{Fact, Footprint, FootprintPanel, Sheet, SheetSection, sheet_page};

use super::explain::{Cost, Document, FileSystem};
use super::tell::{HOW, found, seconds, verdict};
use crate::figures::bytes;

/// One HTML file with a picture for each file system.
pub fn page(document: &Document) -> Result<String> {
    let sheet = Sheet {
        command: "hoistway order --explain".to_owned(),
        title: "Where the arm goes".to_owned(),
        subtitle: "The same files read in four orders, from one disk.".to_owned(),
        sections: document.file_systems.iter().map(section).collect(),
        notes: vec![HOW.to_owned()],
    };
    Ok(sheet_page(&sheet)?)
}

fn section(of: &FileSystem) -> SheetSection {
    let fact = |cost: &Cost| Fact { label: cost.order.to_owned(), value: seconds(cost.seconds) };
    let Some(drive) = &of.drive else {
        return SheetSection {
            title: of.path.clone(),
            intro: format!("{} The file system does not tell where data lie.", found(of)),
            ..SheetSection::default()
        };
    };
    SheetSection {
        title: of.path.clone(),
        intro: format!("{} {}", found(of), verdict(of)),
        facts: of.orders.iter().map(fact).collect(),
        footprints: vec![Footprint {
            title: format!("Head position on {drive}"),
            x: "seconds".to_owned(),
            y: "position, GB from the beginning of the file system's device".to_owned(),
            panels: of.orders.iter().map(panel).collect(),
        }],
        ..SheetSection::default()
    }
}

fn panel(cost: &Cost) -> FootprintPanel {
    FootprintPanel {
        name: cost.order.to_owned(),
        note: format!("{}, {} of seeks", seconds(cost.seconds), bytes(cost.distance_bytes)),
        points: cost.head.iter().map(|(at, byte)| (*at, byte / 1e9)).collect(),
    }
}
