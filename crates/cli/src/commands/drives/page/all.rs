//! The drives with their key figures.

use anyhow::Result;
use hoistway_drive::{Description, Profile, SECTOR_BYTES, describe};

use super::recorded::Recordings;
use super::table;
use crate::figures::{bytes, figure};

/// A line a drive.
pub fn part(_: &Recordings) -> Result<String> {
    let rows: Vec<Vec<String>> = Profile::names()
        .filter_map(Profile::builtin)
        .map(|profile| {
            let drive = describe(&profile);
            let disk = |value: f64| if drive.rpm.is_some() { figure(value) } else { "-".to_owned() };
            vec![
                format!("`{}`", drive.name),
                class(&drive).to_owned(),
                bytes(drive.capacity_sectors.saturating_mul(SECTOR_BYTES)),
                drive.rpm.map_or_else(|| "-".to_owned(), |rpm| format!("{rpm:.0}")),
                drive.depth.to_string(),
                disk(drive.mean_seek_sectors_ms),
                figure(drive.random_read_4k_iops),
                disk(drive.sequential_outer_mb_s),
                disk(drive.sequential_inner_mb_s),
            ]
        })
        .collect();
    let header = [
        "drive",
        "class",
        "size",
        "rpm",
        "commands at once",
        "mean seek, ms",
        "random 4 KiB reads/s",
        "MB/s outside",
        "MB/s inside",
    ];
    Ok(format!(
        "Figures of the profiles, without a run: the mean seek is that over pairs of uniform sectors, random reads are one at a time. \
         `hoistway drives NAME` explains each and says where its figures come from.\n\n{}",
        table(&header, &rows)
    ))
}

/// What a drive is, from its own words: they begin with it, or say that it was measured.
fn class(drive: &Description) -> &'static str {
    let name = drive.name.as_str();
    let measured = drive.what.contains("measured");
    if drive.flash.is_some() {
        return "flash";
    }
    match drive.rpm {
        Some(_) if measured => "disk, measured",
        Some(_) if name.starts_with("slide-") => "disk, a published table's row",
        Some(_) => "disk, from data sheets",
        None if name.starts_with("cloud-") => "cloud volume",
        None if name.starts_with("array-") => "array",
        None => "none",
    }
}
