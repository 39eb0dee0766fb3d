//! `hoistway drives`: lists, describes, probes, fits and validates drives.

mod agreement;
mod describe;
mod fit;
mod probe;
mod sections;
mod validate;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use hoistway_bench::drives_page;
use hoistway_drive::accuracy::AccuracyReport;
use hoistway_drive::{DriveList, Profile};

use crate::cli::DrivesArgs;
use crate::failure::Exit;
use crate::output::Out;

/// Runs `hoistway drives`.
pub fn run(args: &DrivesArgs, out: &mut Out) -> Result<Exit> {
    if let Some(trace) = &args.fit {
        fit::run(trace, args, out)?;
    } else if let Some(choice) = &args.probe {
        probe::run(choice, args, out)?;
    } else if let [choice, trace] = args.validate.as_slice() {
        validate::run(choice, Path::new(trace), args, out)?;
    } else if let Some(recordings) = &args.markdown {
        print_page(recordings, args.plots.as_deref(), out)?;
    } else {
        let list = match &args.drive {
            Some(choice) => DriveList::new([Profile::choose(choice)?]),
            None => DriveList::builtin(),
        };
        if args.json {
            out.json(&list)?;
        } else if args.drive.is_some() {
            list.drives.iter().try_for_each(|drive| describe::write(drive, out))?;
        } else {
            describe::write_list(&list.drives, out)?;
        }
    }
    Ok(Exit::Success)
}

/// Measures every drive, prints the tables of docs/drives.md, and writes the plot of each recorded
/// drive into `plots`.
fn print_page(recordings: &Path, plots: Option<&Path>, out: &mut Out) -> Result<()> {
    let report = AccuracyReport::measure(recordings)?;
    drives_page::page(&report).lines().try_for_each(|line| out.line(line))?;
    let Some(plots) = plots else { return Ok(()) };
    for (drive, plot) in drives_page::plots(&report) {
        let file = plots.join(format!("{drive}.svg"));
        fs::write(&file, plot).with_context(|| format!("{}: cannot write the plot", file.display()))?;
    }
    Ok(())
}
