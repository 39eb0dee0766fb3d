//! Fits the profile of a disk to requests alone.

use std::fmt::Write;

use crate::command::Op;
use crate::profile::Profile;
use crate::recording::Record;

use super::arm::{self, Arm, Platter};
use super::buffer::{self, BufferCandidate, ChosenBuffer};
use super::evidence;
use super::layout::Layout;
use super::requests::{Hits, Requests};
use super::result::{Finding, FitProfileError, FittedProfile, Notes, finish, quoted};
use super::stats::{mean, percentile};
use super::tracks::{self, Spread, Tracks};
use crate::replay::replay;

/// The minimum number of reads away from other requests.
const FAR_READS_MIN: usize = 100;
/// Default number of sectors of a track.
const USUAL_TRACK_SECTORS: f64 = 512.0;

/// The shares of reads left out at either end of the spread.
const SPREAD_TAILS: [f64; 3] = [0.1, 0.12, 0.15];
/// Relative error of the spread because seeks of one distance differ.
const SEEKS_DIFFER: f64 = 0.03;

/// A write cache for which fewer writes wait is as large as this at least.
const WAITED_FEW: f64 = 0.05;
const CACHE_SECTORS: u32 = 4096;

/// The fitted parameters.
struct Disk {
    name: String,
    revolution_ns: f64,
    tracks: Option<Tracks>,
    /// True if the times of long reads determined the sectors of a track.
    sized: bool,
    platter: Platter,
    layout: Layout,
    arm: Arm,
    read_hits: Option<Hits>,
    write_hits: Option<Hits>,
    /// The share of writes that waited for the media.
    writes_waited: f64,
}

/// Fits to `half` and measures the errors of all records.
pub(super) fn fit(half: &[Record], records: &[Record], name: &str) -> Result<FittedProfile, FitProfileError> {
    let requests = Requests::new(half);
    if requests.far_reads < FAR_READS_MIN {
        return Err(FitProfileError::TooLocal { found: requests.far_reads, needed: FAR_READS_MIN });
    }
    let end = |record: &Record| record.access.end();
    let capacity_sectors = records.iter().map(end).max().unwrap_or(1);
    let too_large = || FitProfileError::TooLarge { sector: capacity_sectors.saturating_sub(1) };
    let spread = spread(&requests, capacity_sectors).ok_or_else(too_large)?;
    if spread.revolution_ns < 5e5 {
        return Err(FitProfileError::NoSpread { ms: spread.revolution_ns / 1e6 });
    }
    let search = tracks::find(requests.media(Op::Read), capacity_sectors, spread);
    let tracks = search.tracks();
    let revolution_ns = tracks.map_or_else(|| spread.usual_ns(), |tracks| tracks.revolution_ns);
    let (read_hits, write_hits) = (requests.read_hits, requests.write_hits);
    let interface_ms = read_hits.or(write_hits).map_or(0.0, |quick| quick.sector_ms);
    let revolution_ms = revolution_ns / 1e6;
    let laid_out = |outer, inner| Layout::new(capacity_sectors, outer, inner).ok_or_else(too_large);
    let mut platter = Platter { revolution_ms, interface_ms, store_and_forward: false };
    let usual = (USUAL_TRACK_SECTORS, USUAL_TRACK_SECTORS);
    let (outer, inner) = tracks.map_or(usual, |tracks| (tracks.outer_sectors, tracks.inner_sectors));
    let mut layout = laid_out(outer, inner)?;
    let mut arm = arm::find(&requests, &layout, platter);
    let missing_ms = arm.missing_ms_per_sector(&requests, &layout, platter).filter(|_| tracks.is_none());
    if let Some(missing_ms) = missing_ms {
        // The interface does not hide the transfer that it was assumed to hide.
        let assumed_ms = revolution_ms / USUAL_TRACK_SECTORS;
        platter.store_and_forward = interface_ms > assumed_ms;
        let sector_ms = if platter.store_and_forward { missing_ms } else { assumed_ms + missing_ms };
        let sectors = (revolution_ms / sector_ms).clamp(2.0, 65_535.0);
        layout = laid_out(sectors, sectors)?;
        arm = arm::find(&requests, &layout, platter);
    }
    let sized = missing_ms.is_some();
    let name_text = name.to_string();
    let writes = requests.all.iter().filter(|request| request.op == Op::Write).count();
    let writes_waited = requests.media(Op::Write).count() as f64 / writes.max(1) as f64;
    let disk = Disk {
        name: name_text,
        revolution_ns,
        tracks,
        sized,
        platter,
        layout,
        arm,
        read_hits,
        write_hits,
        writes_waited,
    };
    let file = format!("{name}.toml");
    let make = |choice| Ok::<_, FitProfileError>(Profile::from_toml(&disk.toml(Some(choice)), &file)?);
    let chosen = if read_hits.is_some() { buffer::choose(half, &requests, make)? } else { None };
    let toml = disk.toml(chosen.map(|chosen| chosen.choice));
    let warnings = evidence::of_disk(&requests, search, &disk.arm, spread);
    let notes = Notes { undetermined: disk.undetermined(), warnings };
    finish(toml, name, disk.found(spread, chosen), notes, |profile| replay(profile, records))
}

/// A revolution from the spread of service times, and its standard error.
///
/// Reads at equal distance wait for any part of a revolution, so four fifths of them are within
/// four fifths of a revolution. The mean over several such parts counts.
fn spread(requests: &Requests, capacity_sectors: u64) -> Option<Spread> {
    let layout = Layout::new(capacity_sectors, USUAL_TRACK_SECTORS, USUAL_TRACK_SECTORS)?;
    let (reads, disturbance) = requests.undisturbed(Op::Read);
    let residuals = arm::residuals(reads, &layout);
    let parts = SPREAD_TAILS
        .map(|tail| (percentile(&residuals, 1.0 - tail) - percentile(&residuals, tail)) / (1.0 - 2.0 * tail));
    // The error of two percentiles of an even distribution.
    let chance = 0.53 / (residuals.len().max(1) as f64).sqrt();
    let error = chance.hypot(SEEKS_DIFFER).hypot(disturbance);
    Some(Spread { revolution_ns: mean(&parts) * 1e6, error })
}

impl Disk {
    /// The text of the profile.
    fn toml(&self, buffer: Option<BufferCandidate>) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_toml(&mut text, buffer);
        text
    }

    fn write_toml(&self, text: &mut String, buffer: Option<BufferCandidate>) -> std::fmt::Result {
        let Disk { layout, arm, .. } = self;
        writeln!(text, "# Fitted to a trace of requests and their service times.\nname = {}", quoted(&self.name))?;
        let rpm = 6e10 / self.revolution_ns;
        writeln!(text, "what = \"a disk of {rpm:.0} rpm, fitted to a trace\"")?;
        writeln!(text, "source = \"\"\"\nFitted to a trace. {}\"\"\"", self.undetermined().join(" "))?;
        writeln!(text, "inputs = [\"every figure: fitted to one trace, or assumed where the text says so\"]\n")?;
        let change_skew = (arm.points_ms.first().map_or(0.0, |point| point.1) * 1e6 / self.revolution_ns).min(0.95);
        writeln!(text, "[disk]\nrevolution_ns = {:.2}\nsurfaces = {}", self.revolution_ns, layout.surfaces)?;
        writeln!(text, "cylinders = {}\ncapacity_sectors = {}", layout.cylinders, layout.capacity_sectors)?;
        writeln!(text, "mapping = \"cylinder\"\nhead_switch_ms = 0.0")?;
        // Rounded up, so that the shortest seek ends before its sector arrives.
        writeln!(text, "track_skew_revolutions = 0.0\nchange_skew_revolutions = {:.4}\n", change_skew + 1e-4)?;
        let hit_ms = |quick: Option<Hits>| quick.map_or(arm.overhead_ms, |quick| quick.overhead_ms);
        writeln!(text, "[overhead]")?;
        // The settling of writes counts as overhead. As settling it would cost a write a revolution
        // at every track crossed, because the skews are unknown.
        let write_ms = (arm.overhead_ms + arm.write_extra_ms).max(0.0);
        for (op, quick, miss_ms) in [("read", self.read_hits, arm.overhead_ms), ("write", self.write_hits, write_ms)] {
            for last in ["read", "write"] {
                writeln!(text, "{op}_hit_after_{last}_ms = {:.4}", hit_ms(quick))?;
                writeln!(text, "{op}_miss_after_{last}_ms = {miss_ms:.4}")?;
            }
        }
        let sector_ms = self.read_hits.or(self.write_hits).map_or(0.0, |quick| quick.sector_ms);
        let forward = self.platter.store_and_forward;
        writeln!(text, "\n[interface]\nsector_ns = {:.0}\nstore_and_forward = {forward}\n", sector_ms * 1e6)?;
        if buffer.is_some() || self.write_hits.is_some() {
            let none = BufferCandidate { segments: 1, segment_sectors: 64, sequential: false };
            let BufferCandidate { segments, segment_sectors, sequential } = buffer.unwrap_or(none);
            writeln!(text, "[buffer]\nenabled = true\nsegments = {segments}\nsegment_sectors = {segment_sectors}")?;
            writeln!(text, "read_ahead_until = \"segment\"\nwrite_cache = {}", self.write_hits.is_some())?;
            if self.write_hits.is_some() && self.writes_waited < WAITED_FEW {
                writeln!(text, "write_sectors = {}", CACHE_SECTORS.max(segments * segment_sectors))?;
            }
            writeln!(text, "read_ahead_when = \"{}\"\n", if sequential { "sequential" } else { "always" })?;
        }
        writeln!(text, "[seek]\nform = \"table\"\npoints_ms = [")?;
        for points in arm.points_ms.chunks(6) {
            let points: Vec<String> = points.iter().map(|(distance, ms)| format!("[{distance}, {ms:.4}]")).collect();
            writeln!(text, "    {},", points.join(", "))?;
        }
        writeln!(text, "]")?;
        for zone in &layout.zones {
            writeln!(
                text,
                "\n[[zone]]\nfirst_cylinder = {}\nlast_cylinder = {}",
                zone.first_cylinder, zone.last_cylinder
            )?;
            writeln!(text, "sectors_per_track = {}", zone.sectors_per_track)?;
            if zone.spare_sectors > 0 {
                writeln!(text, "spare_sectors = {}", zone.spare_sectors)?;
            }
        }
        Ok(())
    }

    /// The fitted parameters with their figures.
    fn found(&self, spread: Spread, chosen: Option<ChosenBuffer>) -> Vec<Finding> {
        let finding = |what, value: String, from: String| Finding { what, value, from };
        let rotation = format!("{:.1} ns, {:.1} rpm", self.revolution_ns, 6e10 / self.revolution_ns);
        let (arm, reads) = (&self.arm, format!("{} reads that the media served", self.arm.reads));
        let mut found = match &self.tracks {
            Some(tracks) => {
                let Tracks { pairs, coherence, odds, .. } = tracks;
                let from = format!(
                    "{pairs} pairs of reads on one track, coherence {coherence:.2}, {odds} likelier than the next best speed"
                );
                let sectors = format!("{:.0} outside, {:.0} inside", tracks.outer_sectors, tracks.inner_sectors);
                vec![finding("revolution", rotation, from.clone()), finding("sectors a track", sectors, from)]
            }
            None => {
                let next = match tracks::is_usual(self.revolution_ns) {
                    true => "and the usual speed next to it",
                    false => "as not just one usual speed is near",
                };
                let Spread { revolution_ns, error } = spread;
                let (ms, error_ms) = (revolution_ns / 1e6, revolution_ns * error / 1e6);
                let from = format!(
                    "the spread of service times, {ms:.2} ms with a standard error of {error_ms:.2} ms, {next}"
                );
                vec![finding("revolution", rotation, from)]
            }
        };
        if let Some(zone) = self.layout.zones.first().filter(|_| self.sized) {
            let way = if self.platter.store_and_forward { "; data cross the interface afterwards" } else { "" };
            let value = format!("{} on average{way}", zone.sectors_per_track);
            found.push(finding("sectors a track", value, "how much longer long reads take".to_string()));
        }
        let (first, last) = (arm.points_ms.first(), arm.points_ms.last());
        let seek = |point: Option<&(u32, f64)>| point.map_or(0.0, |point| point.1);
        let curve = format!("{:.2} ms for one cylinder, {:.2} ms across all", seek(first), seek(last));
        found.push(finding("seek curve", curve, reads));
        if arm.overhead_seen {
            let from = "reads within a cylinder".to_string();
            found.push(finding("command overhead", format!("{:.3} ms", arm.overhead_ms), from));
        }
        if arm.writes > 0 {
            let from = format!("{} writes against the reads", arm.writes);
            found.push(finding("writes, beyond reads", format!("{:.3} ms", arm.write_extra_ms), from));
        }
        for (what, quick, op) in [("read hits", self.read_hits, "reads"), ("cached writes", self.write_hits, "writes")]
        {
            if let Some(quick) = quick {
                let value = format!("{:.3} ms and {:.2} us a sector", quick.overhead_ms, quick.sector_ms * 1000.0);
                let from = format!("{} {op} that are quicker than the media", quick.requests);
                found.push(finding(what, value, from));
            }
        }
        if let Some(ChosenBuffer { choice: BufferCandidate { segments, segment_sectors, sequential }, alike, of }) =
            chosen
        {
            let from = format!("{alike} of {of} reads served by memory or media as the drive did");
            let when = if sequential { "the second of two reads in a row" } else { "every read" };
            let value = format!("{segments} segments of {segment_sectors} sectors, filled ahead from {when} on");
            found.push(finding("buffer", value, from));
        }
        found
    }

    /// The parameters that the requests do not determine, one sentence each.
    fn undetermined(&self) -> Vec<String> {
        let surfaces = self.layout.surfaces;
        let mut undetermined = vec![
            format!("{surfaces} surfaces are assumed: sector numbers show the number of tracks between two sectors, not the number of surfaces."),
            "Skews, head switches and zone borders are unknown: head switches take no time in this profile, and zones shrink evenly."
                .to_string(),
            "The start of each track is unknown, so the rotational latency of a single request is right only on average.".to_string(),
        ];
        if self.tracks.is_none() {
            let assumed = match tracks::is_usual(self.revolution_ns) {
                true => "a usual speed is assumed",
                false => "the spread of service times is taken for a revolution",
            };
            undetermined.push(format!("Pairs of reads on one track do not agree on a revolution: {assumed}."));
            if !self.sized {
                undetermined
                    .push(format!("The number of sectors a track is unknown: {USUAL_TRACK_SECTORS} are assumed."));
            }
        }
        if !self.arm.overhead_seen {
            let overhead_ms = self.arm.overhead_ms;
            undetermined.push(format!(
                "Too few reads stay within a cylinder: {overhead_ms:.3} ms of overhead are assumed, and the seek curve includes the rest."
            ));
        }
        if self.read_hits.is_none() && self.write_hits.is_none() {
            undetermined.push(
                "No request was fast enough for a hit: the rate of the interface is unknown, and no limit is assumed."
                    .to_string(),
            );
        }
        undetermined
    }
}
