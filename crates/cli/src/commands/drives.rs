//! `hoistway drives`: the drives, listed, explained or probed, and profiles fitted to traces.

mod fit;
mod page;
mod probe;
mod sections;

use anyhow::Result;
use hoistway_drive::{
    BufferDescription, Description, FlashDescription, Profile, SECTOR_BYTES, ZoneDescription, describe,
};
use serde::Serialize;

use crate::cli::DrivesArgs;
use crate::drive_choice;
use crate::failure::Exit;
use crate::figures::{bytes, figure};
use crate::output::{self, Out};

/// Lists the drives, explains, probes or fits one.
pub fn run(args: &DrivesArgs, out: &mut Out) -> Result<Exit> {
    if let Some(trace) = &args.fit {
        return fit::run(trace, args, out);
    }
    if let Some(choice) = &args.probe {
        return probe::run(choice, args, out);
    }
    if let Some(recordings) = &args.markdown {
        page::print(recordings, args.plots.as_deref(), out)?;
        return Ok(Exit::Success);
    }
    let drives: Vec<Description> = match &args.drive {
        Some(choice) => vec![describe(&drive_choice::load(choice)?)],
        None => Profile::names().filter_map(Profile::builtin).map(|profile| describe(&profile)).collect(),
    };
    if args.json {
        out.json(&Document { schema: 1, drives: drives.into_iter().map(Drive::new).collect() })?;
    } else if args.drive.is_some() {
        drives.iter().try_for_each(|drive| explain(drive, out))?;
    } else {
        list(&drives, out)?;
    }
    Ok(Exit::Success)
}

/// The JSON document of `hoistway drives --json`.
#[derive(Serialize)]
struct Document {
    /// The version of this form: 1.
    schema: u32,
    /// All built-in drives, or the one that was named.
    drives: Vec<Drive>,
}

/// One drive. MB are 10^6 bytes.
#[derive(Serialize)]
struct Drive {
    /// Its name.
    name: String,
    /// What drive it is.
    what: String,
    /// Where its figures come from.
    source: String,
    /// The terms under which the figures were published, or null.
    licence: Option<String>,
    /// Figures that were put in rather than found, each with its origin.
    inputs: Vec<String>,
    /// Its size in bytes.
    capacity_bytes: u64,
    /// Commands that it takes at once.
    depth: u32,
    /// How it chooses among them, or null where there is no choice.
    queue: Option<String>,
    /// What is wrong with it.
    faults: Vec<String>,
    /// Revolutions a minute, or null without a platter; so are all other figures of arm and platter then.
    rpm: Option<f64>,
    /// One revolution in ms.
    revolution_ms: Option<f64>,
    /// Surfaces with data.
    surfaces: Option<u32>,
    /// Cylinders.
    cylinders: Option<u32>,
    /// How tracks follow each other.
    mapping: String,
    /// Mean seek over pairs of uniform cylinders, in ms.
    mean_seek_cylinders_ms: Option<f64>,
    /// Mean seek over pairs of uniform sectors, in ms.
    mean_seek_sectors_ms: Option<f64>,
    /// A seek of one cylinder, in ms.
    single_seek_ms: Option<f64>,
    /// A seek from the first cylinder to the last, in ms.
    full_seek_ms: Option<f64>,
    /// A head switch, in ms.
    head_switch_ms: Option<f64>,
    /// What a write's positioning takes beyond a read's, in ms.
    write_settle_ms: Option<f64>,
    /// The zones from the outside in.
    zones: Vec<Zone>,
    /// The read-ahead buffer, or null.
    buffer: Option<Buffer>,
    /// What a flash drive is made of, or null.
    flash: Option<Flash>,
    /// The interface in MB/s; null when it takes no time.
    interface_mb_s: Option<f64>,
    /// Mean time of a random 4 KiB read, in ms.
    random_read_4k_ms: f64,
    /// Random 4 KiB reads a second, one at a time; null when they take no time.
    random_read_4k_iops: f64,
    /// Sequential rate of the outermost tracks, in MB/s.
    sequential_outer_mb_s: Option<f64>,
    /// Sequential rate of the innermost tracks, in MB/s.
    sequential_inner_mb_s: Option<f64>,
    /// What a reader of the figures should know.
    warnings: Vec<String>,
}

/// One zone.
#[derive(Serialize)]
struct Zone {
    /// First cylinder.
    first_cylinder: u32,
    /// Last cylinder.
    last_cylinder: u32,
    /// First sector.
    first_sector: u64,
    /// Sectors with an address.
    sectors: u64,
    /// Sectors on a track.
    sectors_per_track: u32,
    /// Under the head, in MB/s.
    media_mb_s: f64,
    /// From track to track, in MB/s.
    sustained_mb_s: f64,
}

/// What a flash drive is made of.
#[derive(Serialize)]
struct Flash {
    /// Channels.
    channels: u32,
    /// The rate of each, in MB/s.
    channel_mb_s: f64,
    /// Dies on all channels.
    dies: u32,
    /// Planes of a die.
    planes: u32,
    /// Blocks of a plane.
    blocks_per_plane: u32,
    /// Pages of a block.
    pages_per_block: u32,
    /// Bytes of a page.
    page_bytes: u32,
    /// Reading a page in us, by kind of page.
    page_read_us: Vec<f64>,
    /// Pages of a plane that are programmed at once.
    wordline_pages: u32,
    /// Programming them, in us.
    program_us: f64,
    /// Erasing a block, in us.
    erase_us: f64,
    /// Suspending a program or an erase for reads, in us; null: reads wait.
    suspend_us: Option<f64>,
    /// The part of the flash that is spare.
    spare_factor: f64,
    /// Units programmed for one that the host writes at random, by the closed form for greedy garbage collection.
    write_amplification: f64,
    /// What was done to the drive before.
    precondition: String,
    /// The write buffer; 0: a write is over when it is programmed.
    buffer_bytes: u64,
    /// What a flush takes beside emptying the buffer, in us.
    flush_us: f64,
    /// Whether the buffer outlives a loss of power.
    power_loss_protection: bool,
    /// Whether other commands wait for a flush.
    flush_blocks_commands: bool,
    /// How much of the drive is simulated; addresses beyond are folded into it.
    simulated_bytes: u64,
}

/// The read-ahead buffer.
#[derive(Serialize)]
struct Buffer {
    /// Whether it is on.
    enabled: bool,
    /// Segments.
    segments: u32,
    /// The size of each, in bytes.
    segment_bytes: u64,
    /// The most that is read beyond a command, in bytes.
    read_ahead_bytes: u64,
    /// Where read-ahead stops.
    read_ahead_until: String,
    /// Whether reading may begin in the middle of a command.
    immediate_read: bool,
    /// Whether writes end in the drive's cache.
    write_cache: bool,
    /// The most that waits in it to be written, in bytes; 0 without one.
    write_cache_bytes: u64,
}

impl Drive {
    fn new(of: Description) -> Drive {
        let disk = of.rpm.is_some();
        let figure = |value: f64| disk.then_some(value);
        Drive {
            capacity_bytes: of.capacity_sectors.saturating_mul(SECTOR_BYTES),
            depth: of.depth,
            queue: Some(of.queue).filter(|queue| !queue.is_empty()),
            faults: of.faults,
            rpm: of.rpm,
            revolution_ms: figure(of.revolution_ms),
            surfaces: disk.then_some(of.surfaces),
            cylinders: disk.then_some(of.cylinders),
            mean_seek_cylinders_ms: figure(of.mean_seek_cylinders_ms),
            mean_seek_sectors_ms: figure(of.mean_seek_sectors_ms),
            single_seek_ms: figure(of.single_seek_ms),
            full_seek_ms: figure(of.full_seek_ms),
            head_switch_ms: figure(of.head_switch_ms),
            write_settle_ms: figure(of.write_settle_ms),
            sequential_outer_mb_s: figure(of.sequential_outer_mb_s),
            sequential_inner_mb_s: figure(of.sequential_inner_mb_s),
            interface_mb_s: of.interface_mb_s,
            random_read_4k_ms: of.random_read_4k_ms,
            random_read_4k_iops: of.random_read_4k_iops,
            zones: of.zones.into_iter().map(Zone::new).collect(),
            buffer: of.buffer.map(Buffer::new),
            flash: of.flash.map(Flash::new),
            mapping: of.mapping,
            name: of.name,
            what: of.what,
            source: of.source,
            licence: of.licence,
            inputs: of.inputs,
            warnings: of.warnings,
        }
    }
}

impl Zone {
    fn new(of: ZoneDescription) -> Zone {
        let ZoneDescription { first_cylinder, last_cylinder, first_sector, sectors, sectors_per_track, .. } = of;
        let ZoneDescription { media_mb_s, sustained_mb_s, .. } = of;
        Zone { first_cylinder, last_cylinder, first_sector, sectors, sectors_per_track, media_mb_s, sustained_mb_s }
    }
}

impl Flash {
    fn new(of: FlashDescription) -> Flash {
        Flash {
            channels: of.channels,
            channel_mb_s: of.channel_mb_s,
            dies: of.dies,
            planes: of.planes,
            blocks_per_plane: of.blocks_per_plane,
            pages_per_block: of.pages_per_block,
            page_bytes: of.page_bytes,
            page_read_us: of.page_read_us,
            wordline_pages: of.wordline_pages,
            program_us: of.program_us,
            erase_us: of.erase_us,
            suspend_us: of.suspend_us,
            spare_factor: of.spare_factor,
            write_amplification: of.write_amplification,
            precondition: of.precondition,
            buffer_bytes: of.buffer_bytes,
            flush_us: of.flush_us,
            power_loss_protection: of.power_loss_protection,
            flush_blocks_commands: of.flush_blocks_commands,
            simulated_bytes: of.simulated_bytes,
        }
    }
}

impl Buffer {
    fn new(of: BufferDescription) -> Buffer {
        let bytes = |sectors: u32| u64::from(sectors) * SECTOR_BYTES;
        Buffer {
            enabled: of.enabled,
            segments: of.segments,
            segment_bytes: bytes(of.segment_sectors),
            read_ahead_bytes: bytes(of.read_ahead_sectors),
            read_ahead_until: of.read_ahead_until,
            immediate_read: of.immediate_read,
            write_cache: of.write_cache_sectors.is_some(),
            write_cache_bytes: of.write_cache_sectors.unwrap_or(0) * SECTOR_BYTES,
        }
    }
}

fn list(drives: &[Description], out: &mut Out) -> Result<()> {
    let header = ["drive", "rpm", "size", "mean seek\nms", "random\n4 KiB/s", "MB/s\nouter", "MB/s\ninner"];
    let mut table = output::table(&header, 1);
    for drive in drives {
        let disk = |value: f64| if drive.rpm.is_some() { figure(value) } else { "-".to_owned() };
        table.add_row([
            drive.name.clone(),
            drive.rpm.map_or_else(|| "-".to_owned(), |rpm| format!("{rpm:.0}")),
            size(drive),
            disk(drive.mean_seek_cylinders_ms),
            figure(drive.random_read_4k_iops),
            disk(drive.sequential_outer_mb_s),
            disk(drive.sequential_inner_mb_s),
        ]);
    }
    out.table(&mut table)?;
    out.line("")?;
    out.paragraph(
        0,
        "`hoistway drives NAME` explains one. A file of your own serves as well: `hoistway drives FILE.toml`.",
    )?;
    Ok(())
}

fn size(drive: &Description) -> String {
    bytes(drive.capacity_sectors.saturating_mul(SECTOR_BYTES))
}

fn explain(drive: &Description, out: &mut Out) -> Result<()> {
    out.heading(&drive.name)?;
    out.paragraph(2, &drive.what)?;
    out.line("")?;
    facts(&general(drive), out)?;
    if drive.rpm.is_some() {
        section("Arm and platter", out)?;
        facts(&mechanics(drive), out)?;
        section("Zones, from the outside in", out)?;
        zones(&drive.zones, out)?;
    }
    if let Some(flash) = &drive.flash {
        section("Flash", out)?;
        facts(&flash_facts(flash), out)?;
    }
    if let Some(buffer) = &drive.buffer {
        section("Read-ahead buffer", out)?;
        facts(&buffer_facts(buffer), out)?;
    }
    section("Where the figures come from", out)?;
    drive.source.split("\n\n").try_for_each(|paragraph| out.paragraph(2, paragraph))?;
    if let Some(licence) = &drive.licence {
        out.paragraph(2, &format!("Terms: {licence}"))?;
    }
    for (heading, texts) in
        [("Put in, not found", &drive.inputs), ("Faults", &drive.faults), ("To be known", &drive.warnings)]
    {
        if !texts.is_empty() {
            section(heading, out)?;
            texts.iter().try_for_each(|text| out.paragraph(2, text))?;
        }
    }
    Ok(())
}

type Facts = Vec<(&'static str, String)>;

fn general(drive: &Description) -> Facts {
    let sectors = drive.capacity_sectors;
    let iops = drive.random_read_4k_iops;
    let iops = if iops.is_finite() { format!("{} a second", figure(iops)) } else { "no time at all".to_owned() };
    let mut facts = vec![
        ("size", format!("{} ({sectors} sectors of 512 bytes)", size(drive))),
        ("commands at once", at_once(drive)),
        ("random 4 KiB reads", format!("{iops}, {} ms each", figure(drive.random_read_4k_ms))),
    ];
    if drive.rpm.is_some() {
        let (outer, inner) = (figure(drive.sequential_outer_mb_s), figure(drive.sequential_inner_mb_s));
        facts.push(("sequential reads", format!("{outer} MB/s outside, {inner} MB/s inside")));
        let interface =
            drive.interface_mb_s.map_or("takes no time".to_owned(), |rate| format!("{} MB/s", figure(rate)));
        facts.push(("interface", interface));
    } else if drive.mapping != "none" {
        facts.push(("made of", drive.mapping.clone()));
    }
    facts
}

fn at_once(drive: &Description) -> String {
    let Description { depth, queue, .. } = drive;
    if queue.is_empty() { depth.to_string() } else { format!("{depth}, {queue}") }
}

fn mechanics(drive: &Description) -> Facts {
    let ms = |value: f64| format!("{} ms", figure(value));
    let (cylinders, sectors) = (drive.mean_seek_cylinders_ms, drive.mean_seek_sectors_ms);
    vec![
        ("rotation", format!("{:.0} rpm, {} a revolution", drive.rpm.unwrap_or(0.0), ms(drive.revolution_ms))),
        ("surfaces", drive.surfaces.to_string()),
        ("cylinders", drive.cylinders.to_string()),
        ("order of tracks", drive.mapping.clone()),
        ("mean seek", format!("{} between cylinders, {} between sectors", ms(cylinders), ms(sectors))),
        (
            "shortest, longest",
            format!("{} for one cylinder, {} across all", ms(drive.single_seek_ms), ms(drive.full_seek_ms)),
        ),
        ("head switch", ms(drive.head_switch_ms)),
        ("writes settle", format!("{} longer than reads", ms(drive.write_settle_ms))),
    ]
}

fn flash_facts(flash: &FlashDescription) -> Facts {
    let us = |value: f64| format!("{} us", figure(value));
    let kinds: Vec<String> = flash.page_read_us.iter().map(|read_us| figure(*read_us)).collect();
    let (page, planes) = (format!("{} KiB", flash.page_bytes / 1024), flash.planes);
    let at_once = match flash.wordline_pages {
        1 => String::new(),
        pages => format!(", {pages} pages of a plane at once"),
    };
    let buffer = match flash.buffer_bytes {
        0 => "none: a write is over when it is programmed".to_owned(),
        size => format!("{} MiB", figure(size as f64 / f64::from(1 << 20))),
    };
    let flush = match (flash.power_loss_protection, flash.flush_blocks_commands) {
        (true, _) => format!("{}: the buffer outlives a loss of power", us(flash.flush_us)),
        (false, false) => format!("empties the buffer, then {}", us(flash.flush_us)),
        (false, true) => format!("empties the buffer, then {}; other commands wait", us(flash.flush_us)),
    };
    vec![
        ("channels", format!("{} of {} MB/s", flash.channels, figure(flash.channel_mb_s))),
        ("dies", format!("{} of {planes} plane{}", flash.dies, if planes == 1 { "" } else { "s" })),
        ("a plane", format!("{} blocks of {} pages of {page}", flash.blocks_per_plane, flash.pages_per_block)),
        ("reading a page", format!("{} us{}", kinds.join(", "), if kinds.len() == 1 { "" } else { ", by its kind" })),
        ("programming", format!("{}{at_once}", us(flash.program_us))),
        ("erasing a block", us(flash.erase_us)),
        (
            "suspended for reads",
            flash.suspend_us.map_or("no: reads wait".to_owned(), |time| format!("in {}", us(time))),
        ),
        ("spare", format!("{} % of the flash", figure(flash.spare_factor * 100.0))),
        (
            "write amplification",
            format!("{} by the closed form, random writes, steady", figure(flash.write_amplification)),
        ),
        ("at the start", flash.precondition.clone()),
        ("write buffer", buffer),
        ("flush", flush),
        ("simulated", bytes(flash.simulated_bytes)),
    ]
}

fn buffer_facts(buffer: &BufferDescription) -> Facts {
    let kib = |sectors: u32| format!("{} KiB", figure(f64::from(sectors) / 2.0));
    let yes_or_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let write_cache = match buffer.write_cache_sectors {
        Some(sectors) => format!("on, {} KiB", figure(sectors as f64 / 2.0)),
        None => "off".to_owned(),
    };
    vec![
        ("on", yes_or_no(buffer.enabled)),
        ("segments", format!("{} of {}", buffer.segments, kib(buffer.segment_sectors))),
        ("reads ahead", format!("at most {}, until {}", kib(buffer.read_ahead_sectors), buffer.read_ahead_until)),
        ("mid-command start", yes_or_no(buffer.immediate_read)),
        ("write cache", write_cache),
    ]
}

fn facts(facts: &[(&str, String)], out: &mut Out) -> Result<()> {
    let width = facts.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    for (label, value) in facts {
        out.line(format_args!("  {label:width$}  {value}"))?;
    }
    Ok(())
}

fn zones(zones: &[ZoneDescription], out: &mut Out) -> Result<()> {
    let header = ["  cylinders", "first sector", "sectors", "a track", "MB/s under\nthe head", "MB/s\nsustained"];
    let mut table = output::table(&header, 1);
    for zone in zones {
        table.add_row([
            format!("  {}-{}", zone.first_cylinder, zone.last_cylinder),
            zone.first_sector.to_string(),
            zone.sectors.to_string(),
            zone.sectors_per_track.to_string(),
            figure(zone.media_mb_s),
            figure(zone.sustained_mb_s),
        ]);
    }
    Ok(out.table(&mut table)?)
}

fn section(heading: &str, out: &mut Out) -> Result<()> {
    out.line("")?;
    Ok(out.heading(heading)?)
}
