//! `hoistway trace reorder`: sorts the requests of a trace by sector.

use anyhow::{Context, Result};
use hoistway_drive::{Access, AccessError, Command, Drive, Op, Profile};
use hoistway_trace::reorder::{ReorderObserver, ReorderSummary, ReorderedSource, Window};
use hoistway_trace::{Event, Rwbs};

use super::describe::seeks;
use super::{input, output};
use crate::cli::trace::ReorderArgs;
use crate::drive_choice;
use crate::failure::{Exit, tell};
use crate::figures::figure;
use crate::output::Out;

/// Writes the sorted trace and prints its statistics.
pub fn run(args: &ReorderArgs, out: &mut Out) -> Result<Exit> {
    let profile = args.drive.as_deref().map(drive_choice::load).transpose()?;
    let source = input::open(&args.input)?;
    let (name, files) = (source.name.clone(), source.files.clone());
    let mut sorted =
        ReorderedSource::new(source, args.within.unwrap_or(Window::All), DriveTimer::new(profile.as_ref()));
    let exit = output::write(&mut sorted, &args.output, &name, &files)?;
    let Some((summary, timer)) = sorted.into_summary() else { return Ok(exit) };
    if args.output.output.is_none() {
        // Standard output holds the trace.
        tell(&sentence(&summary));
    } else {
        out.line(format_args!("{name}: {} requests sorted by sector in {}", summary.requests, sweeps(&summary)))?;
        out.line("")?;
        out.table(&mut seeks(&[("before", &summary.before), ("after", &summary.after)]))?;
    }
    if let Some(drive) = &args.drive {
        let [before, after] = timer.seconds()?;
        let text = format!(
            "{drive} takes {} s in the recorded order and {} s in this order, one request at a time.",
            figure(before),
            figure(after)
        );
        if args.output.output.is_none() {
            tell(&text);
        } else {
            out.line("")?;
            out.paragraph(0, &text)?;
        }
    }
    Ok(exit)
}

fn sentence(summary: &ReorderSummary) -> String {
    let mean = |of: &hoistway_trace::describe::SeekFigures| figure(of.distance_sectors.mean * 512.0 / 1e6);
    format!(
        "{} requests in {}: the mean distance was {} MB and is {} MB",
        summary.requests,
        sweeps(summary),
        mean(&summary.before),
        mean(&summary.after)
    )
}

fn sweeps(summary: &ReorderSummary) -> String {
    if summary.sweeps == 1 { "one sweep".to_owned() } else { format!("{} sweeps", summary.sweeps) }
}

/// Two drive models that serve the requests in both orders, one at a time; None without --drive.
struct DriveTimer {
    drives: Option<[SerialDrive; 2]>,
}

/// A drive model that serves requests one at a time.
struct SerialDrive {
    drive: Drive,
    now_ns: u64,
    /// Error of the first refused request.
    refused: Option<AccessError>,
}

impl DriveTimer {
    fn new(profile: Option<&Profile>) -> DriveTimer {
        let served = |profile: &Profile| SerialDrive { drive: Drive::new(profile), now_ns: 0, refused: None };
        DriveTimer { drives: profile.map(|profile| [served(profile), served(profile)]) }
    }

    /// Total service times in seconds: before and after.
    fn seconds(self) -> Result<[f64; 2]> {
        let mut seconds = [0.0; 2];
        for (seconds, served) in seconds.iter_mut().zip(self.drives.into_iter().flatten()) {
            if let Some(refused) = served.refused {
                return Err(refused).context("--drive: the drive cannot serve the requests of the trace");
            }
            *seconds = served.now_ns as f64 / 1e9;
        }
        Ok(seconds)
    }
}

impl ReorderObserver for DriveTimer {
    fn before(&mut self, request: &Event) {
        if let Some([before, _]) = &mut self.drives {
            before.serve(request);
        }
    }

    fn after(&mut self, request: &Event) {
        if let Some([_, after]) = &mut self.drives {
            after.serve(request);
        }
    }
}

impl SerialDrive {
    fn serve(&mut self, request: &Event) {
        if self.refused.is_some() {
            return;
        }
        match self.drive.serve(self.now_ns, command(request)) {
            Ok(completion) => self.now_ns = completion.service.finish_ns,
            Err(error) => self.refused = Some(error),
        }
    }
}

/// Converts a request to a command of a drive.
fn command(request: &Event) -> Command {
    let (sector, sectors) = (request.sector, request.bytes.div_ceil(512));
    if request.bytes == 0 {
        return Command::Flush;
    }
    if request.op.has(Rwbs::DISCARD) {
        return Command::Discard { sector, sectors };
    }
    let op = if request.op.has(Rwbs::WRITE) { Op::Write } else { Op::Read };
    Command::Transfer { access: Access { op, sector, sectors }, fua: request.op.has(Rwbs::FUA) }
}
