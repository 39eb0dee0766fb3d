//! Descriptions of drives as text.

use anyhow::Result;
use hoistway_drive::{BufferDescription, Description, FlashDescription, SECTOR_BYTES, ZoneDescription};

use crate::output::{self, Out};
use hoistway_units::figures::{bytes, figure};

/// Writes a table with one row for each drive.
pub fn write_list(drives: &[Description], out: &mut Out) -> Result<()> {
    let header = ["drive", "rpm", "size", "mean seek\nms", "random 4 KiB\nreads/s", "MB/s\nouter", "MB/s\ninner"];
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
        "`hoistway drives NAME` describes one drive; `hoistway drives FILE.toml` describes a drive file of your own.",
    )?;
    Ok(())
}

fn size(drive: &Description) -> String {
    bytes(drive.capacity_sectors.saturating_mul(SECTOR_BYTES))
}

/// Writes the description of one drive.
pub fn write(drive: &Description, out: &mut Out) -> Result<()> {
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
    section("Sources", out)?;
    drive.source.split("\n\n").try_for_each(|paragraph| out.paragraph(2, paragraph))?;
    if let Some(licence) = &drive.licence {
        out.paragraph(2, &format!("Terms: {licence}"))?;
    }
    for (heading, texts) in [("Assumed inputs", &drive.inputs), ("Faults", &drive.faults), ("Notes", &drive.warnings)] {
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
        ("queue depth", at_once(drive)),
        ("random 4 KiB reads", format!("{iops}, {} ms each", figure(drive.random_read_4k_ms))),
    ];
    if drive.rpm.is_some() {
        let (outer, inner) = (figure(drive.sequential_outer_mb_s), figure(drive.sequential_inner_mb_s));
        facts.push(("sequential reads", format!("{outer} MB/s on outer tracks, {inner} MB/s on inner tracks")));
        let interface =
            drive.interface_mb_s.map_or("takes no time".to_owned(), |rate| format!("{} MB/s", figure(rate)));
        facts.push(("interface", interface));
    } else if drive.mapping != "none" {
        facts.push(("structure", drive.mapping.clone()));
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
        ("track order", drive.mapping.clone()),
        ("mean seek", format!("{} between cylinders, {} between sectors", ms(cylinders), ms(sectors))),
        (
            "seek range",
            format!("{} for one cylinder, {} for the full stroke", ms(drive.single_seek_ms), ms(drive.full_seek_ms)),
        ),
        ("head switch", ms(drive.head_switch_ms)),
        ("write settling", format!("{} longer than reads", ms(drive.write_settle_ms))),
    ]
}

fn flash_facts(flash: &FlashDescription) -> Facts {
    let us = |value: f64| format!("{} us", figure(value));
    let kinds: Vec<String> = flash.page_read_us.iter().map(|read_us| figure(*read_us)).collect();
    let (page, planes) = (format!("{} KiB", flash.page_bytes / 1024), flash.planes);
    let at_once = match flash.wordline_pages {
        1 => String::new(),
        pages => format!(", {pages} pages of a plane together"),
    };
    let buffer = match flash.buffer_bytes {
        0 => "none: a write completes when it is programmed".to_owned(),
        size => format!("{} MiB", figure(size as f64 / f64::from(1 << 20))),
    };
    let flush = match (flash.power_loss_protection, flash.flush_blocks_commands) {
        (true, _) => format!("{}: the buffer survives a power loss", us(flash.flush_us)),
        (false, false) => format!("empties the buffer, then {}", us(flash.flush_us)),
        (false, true) => format!("empties the buffer, then {}; other commands wait", us(flash.flush_us)),
    };
    vec![
        ("channels", format!("{} of {} MB/s", flash.channels, figure(flash.channel_mb_s))),
        ("dies", format!("{} of {planes} plane{}", flash.dies, if planes == 1 { "" } else { "s" })),
        ("plane", format!("{} blocks of {} pages of {page}", flash.blocks_per_plane, flash.pages_per_block)),
        ("page read", format!("{} us{}", kinds.join(", "), if kinds.len() == 1 { "" } else { ", by its kind" })),
        ("program", format!("{}{at_once}", us(flash.program_us))),
        ("block erase", us(flash.erase_us)),
        ("suspend for reads", flash.suspend_us.map_or("no: reads wait".to_owned(), |time| format!("in {}", us(time)))),
        ("spare", format!("{} % of the flash", figure(flash.spare_factor * 100.0))),
        (
            "write amplification",
            format!("{} by the closed form, random writes, steady", figure(flash.write_amplification)),
        ),
        ("initial state", flash.precondition.clone()),
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

/// Writes labels and values in two columns.
pub fn facts(facts: &[(&str, String)], out: &mut Out) -> Result<()> {
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

/// Writes an empty line and a heading.
pub fn section(heading: &str, out: &mut Out) -> Result<()> {
    out.line("")?;
    Ok(out.heading(heading)?)
}
