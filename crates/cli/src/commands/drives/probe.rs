//! `hoistway drives --probe`: what a drive shows from outside, as text, as JSON or as a page.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use hoistway_drive::probe::{Cache, Found, Overwrite, Probe, Rotation, Seek, probe};
use hoistway_drive::{Drive, Profile};
use hoistway_report::{Fact, Sheet, sheet_page};
use serde::Serialize;

use super::sections::{Section, sections};
use crate::cli::DrivesArgs;
use crate::commands::compare::WholeFile;
use crate::drive_choice;
use crate::failure::Exit;
use crate::output::Out;

/// Probes a drive and tells what was found.
pub fn run(choice: &str, args: &DrivesArgs, out: &mut Out) -> Result<Exit> {
    let profile = drive_choice::load(choice)?;
    let page = args.report.as_deref().map(WholeFile::new).transpose()?;
    let which = if args.only.is_empty() { usual(&profile) } else { args.only.clone() };
    let found = probe(&Drive::new(&profile), &which)?;
    let sections = sections(&found);
    if let Some(page) = page {
        page.write(&sheet_page(&sheet(&profile, &sections, &notes(&found)))?, &AtomicBool::new(false))?;
    }
    if args.json {
        out.json(&Document::new(&profile, &found))?;
        return Ok(Exit::Success);
    }
    tell(&profile, &sections, &notes(&found), out)?;
    if let Some(path) = &args.report {
        out.line("")?;
        out.line(format_args!("The page is in {}.", path.display()))?;
    }
    Ok(Exit::Success)
}

/// The probes that tell something of this kind of drive.
fn usual(profile: &Profile) -> Vec<Probe> {
    if profile.is_disk() {
        vec![Probe::Rotation, Probe::Seek, Probe::Zones, Probe::Depth, Probe::Cache]
    } else if profile.is_rotational() {
        vec![Probe::Zones, Probe::Depth, Probe::Cache, Probe::Sizes]
    } else {
        vec![Probe::Depth, Probe::Cache, Probe::Sizes, Probe::Overwrite]
    }
}

/// What a reader should know, failures included.
fn notes(found: &Found) -> Vec<String> {
    let mut notes = found.notes.clone();
    if found.failures > 0 {
        let sectors: Vec<String> = found.failed_sectors.iter().map(u64::to_string).collect();
        let (commands, more) =
            (found.failures, if found.failures as usize > sectors.len() { ", among others" } else { "" });
        notes.push(format!("{commands} commands failed, at the sectors {}{more}", sectors.join(", ")));
    }
    notes
}

fn tell(profile: &Profile, sections: &[Section], notes: &[String], out: &mut Out) -> Result<()> {
    out.heading(format_args!("{}, from outside", profile.name()))?;
    for section in sections {
        out.line("")?;
        out.heading(section.title)?;
        let facts: Vec<(&str, String)> = section.facts.iter().map(|(label, value)| (*label, value.clone())).collect();
        super::facts(&facts, out)?;
        for picture in &section.pictures {
            out.line("")?;
            section.draw(picture, out)?;
        }
    }
    if !notes.is_empty() {
        out.line("")?;
        out.heading("To be known")?;
        notes.iter().try_for_each(|note| out.paragraph(2, note))?;
    }
    Ok(())
}

fn sheet(profile: &Profile, sections: &[Section], notes: &[String]) -> Sheet {
    Sheet {
        command: "hoistway drives --probe".to_owned(),
        title: format!("{}, from outside", profile.name()),
        subtitle: "What the drive shows to whoever gives it commands and looks at the clock.".to_owned(),
        sections: sections.iter().map(Section::on_page).collect(),
        notes: notes.to_vec(),
    }
}

impl Section {
    /// As the page has it.
    fn on_page(&self) -> hoistway_report::SheetSection {
        let fact = |(label, value): &(&str, String)| Fact { label: (*label).to_owned(), value: value.clone() };
        hoistway_report::SheetSection {
            title: self.title.to_owned(),
            intro: self.intro.to_owned(),
            facts: self.facts.iter().map(fact).collect(),
            pictures: self.pictures.clone(),
            ..hoistway_report::SheetSection::default()
        }
    }
}

/// The JSON document of `hoistway drives --probe --json`. What was not looked for, or was not there, is null.
#[derive(Serialize)]
struct Document<'a> {
    /// The version of this form: 1.
    schema: u32,
    /// The drive's name.
    drive: &'a str,
    rotation: Option<RotationJson>,
    seek: Option<SeekJson>,
    /// The sequential rate along the address space.
    zones: Option<Vec<ZoneJson>>,
    /// Random 4 KiB reads by commands under way.
    depth: Option<Vec<DepthJson>>,
    cache: Option<CacheJson>,
    /// Commands at random places by their size.
    sizes: Option<Vec<SizeJson>>,
    overwrite: Option<OverwriteJson>,
    /// Commands that failed.
    failures: u64,
    /// Their sectors, the first of them.
    failed_sectors: &'a [u64],
    notes: &'a [String],
}

#[derive(Serialize)]
struct RotationJson {
    revolution_ns: f64,
    residue_ns: f64,
    first_track_sectors: u32,
}

/// Without waiting for rotation, a write's settling included.
#[derive(Serialize)]
struct SeekJson {
    surfaces: Option<u32>,
    head_switch_ns: Option<u64>,
    single_ns: u64,
    full_ns: u64,
    /// Distance in sectors and positioning time in ns, to the tracks behind the first.
    tracks: Vec<(u64, u64)>,
    /// The same over the whole drive.
    curve: Vec<(u64, u64)>,
}

#[derive(Serialize)]
struct ZoneJson {
    sector: u64,
    mb_s: f64,
}

#[derive(Serialize)]
struct DepthJson {
    depth: u32,
    iops: f64,
    mean_ns: f64,
    p99_ns: u64,
}

#[derive(Serialize)]
struct CacheJson {
    read_bytes: Option<u64>,
    ahead_bytes: Option<u64>,
    segments: Option<u32>,
    write_bytes: Option<u64>,
    spans: Vec<SpanJson>,
}

#[derive(Serialize)]
struct SpanJson {
    bytes: u64,
    again_ns: f64,
    ahead_ns: f64,
}

#[derive(Serialize)]
struct SizeJson {
    bytes: u64,
    read_ns: f64,
    read_mb_s: f64,
    write_ns: f64,
    write_mb_s: f64,
}

#[derive(Serialize)]
struct OverwriteJson {
    /// Bytes written at random when the rate had fallen below 70 % of the first window's.
    onset_bytes: Option<u64>,
    steady_mb_s: f64,
    /// Bytes written at random up to a window's end, and its rate in MB/s.
    windows: Vec<(u64, f64)>,
}

impl<'a> Document<'a> {
    fn new(profile: &'a Profile, found: &'a Found) -> Document<'a> {
        let zones = |points: &Vec<hoistway_drive::probe::ZonePoint>| {
            points.iter().map(|point| ZoneJson { sector: point.sector, mb_s: point.mb_s }).collect()
        };
        let depth = |points: &Vec<hoistway_drive::probe::DepthPoint>| {
            let point = |point: &hoistway_drive::probe::DepthPoint| DepthJson {
                depth: point.depth,
                iops: point.iops,
                mean_ns: point.mean_ns,
                p99_ns: point.p99_ns,
            };
            points.iter().map(point).collect()
        };
        let sizes = |points: &Vec<hoistway_drive::probe::SizePoint>| {
            let point = |point: &hoistway_drive::probe::SizePoint| SizeJson {
                bytes: point.bytes,
                read_ns: point.read_ns,
                read_mb_s: point.read_mb_s,
                write_ns: point.write_ns,
                write_mb_s: point.write_mb_s,
            };
            points.iter().map(point).collect()
        };
        Document {
            schema: 1,
            drive: profile.name(),
            rotation: found.rotation.as_ref().map(RotationJson::new),
            seek: found.seek.as_ref().map(SeekJson::new),
            zones: found.zones.as_ref().map(zones),
            depth: found.depth.as_ref().map(depth),
            cache: found.cache.as_ref().map(CacheJson::new),
            sizes: found.sizes.as_ref().map(sizes),
            overwrite: found.overwrite.as_ref().map(OverwriteJson::new),
            failures: found.failures,
            failed_sectors: &found.failed_sectors,
            notes: &found.notes,
        }
    }
}

impl RotationJson {
    fn new(of: &Rotation) -> RotationJson {
        let Rotation { revolution_ns, residue_ns, first_track_sectors } = *of;
        RotationJson { revolution_ns, residue_ns, first_track_sectors }
    }
}

impl SeekJson {
    fn new(of: &Seek) -> SeekJson {
        let points = |points: &[hoistway_drive::probe::SeekPoint]| {
            points.iter().map(|point| (point.distance_sectors, point.positioning_ns)).collect()
        };
        SeekJson {
            surfaces: of.surfaces,
            head_switch_ns: of.head_switch_ns,
            single_ns: of.single_ns,
            full_ns: of.full_ns,
            tracks: points(&of.tracks),
            curve: points(&of.curve),
        }
    }
}

impl CacheJson {
    fn new(of: &Cache) -> CacheJson {
        let span = |point: &hoistway_drive::probe::SpanPoint| SpanJson {
            bytes: point.bytes,
            again_ns: point.again_ns,
            ahead_ns: point.ahead_ns,
        };
        CacheJson {
            read_bytes: of.read_bytes,
            ahead_bytes: of.ahead_bytes,
            segments: of.segments,
            write_bytes: of.write_bytes,
            spans: of.spans.iter().map(span).collect(),
        }
    }
}

impl OverwriteJson {
    fn new(of: &Overwrite) -> OverwriteJson {
        OverwriteJson {
            onset_bytes: of.onset_bytes,
            steady_mb_s: of.steady_mb_s,
            windows: of.windows.iter().map(|window| (window.bytes, window.mb_s)).collect(),
        }
    }
}
