//! Everything of one device.

use anyhow::Result;
use hoistway_core::Kind as Elevator;
use hoistway_machine::{
    Attribute, BlockDevice, Kind, Queue, Root, Row, SETTINGS, WriteCache, all_below, openers, queues_below,
    schedules_for_paths, udev, why_no_choice,
};

use super::list::{schedulers, uses, what};
use super::rows::{range, rows, with_unit};
use crate::figures::bytes;
use crate::output::{self, Out};

/// Prints it.
pub fn print(root: &Root, all: &[BlockDevice], device: &BlockDevice, out: &mut Out) -> Result<()> {
    let what = what(device);
    let size = if device.is_present() { bytes(device.bytes) } else { "nothing in it".to_owned() };
    let title = [device.kind.label().to_owned(), size, what].into_iter().filter(|part| !part.is_empty());
    out.heading(format_args!("{}: {}", device.name, title.collect::<Vec<_>>().join(", ")))?;
    identity(device, out)?;
    use_of(root, all, device, out)?;
    let below = queues_below(root, all, device);
    let is_own = below.iter().any(|other| other.number == device.number);
    if let Some(queue) = &device.queue {
        queue_of(root, device, queue, out)?;
        warnings(all, device, queue, out)?;
    }
    if !is_own {
        return hand_over(device, &below, out);
    }
    Ok(())
}

fn line(out: &mut Out, name: &str, text: &str) -> Result<()> {
    for (place, text) in output::wrap(text, 0, out.columns().saturating_sub(18)).iter().enumerate() {
        out.line(format_args!("  {:<16}{text}", if place == 0 { name } else { "" }))?;
    }
    Ok(())
}

fn identity(device: &BlockDevice, out: &mut Out) -> Result<()> {
    let identity = &device.identity;
    let of = |text: &Option<String>| text.clone().unwrap_or_default();
    line(out, "node", &format!("{} ({})", device.path.display(), device.number))?;
    line(out, "vendor", &of(&identity.vendor))?;
    line(out, "firmware", &of(&identity.firmware))?;
    line(out, "serial", &of(&identity.serial))?;
    line(out, "wwid", &of(&identity.wwid))?;
    line(out, "attached by", identity.transport.map_or("", |transport| transport.label()))?;
    for link in &identity.links {
        line(out, "also called", &format!("/dev/{link}"))?;
    }
    if device.disk.is_none() && device.is_present() {
        match udev::stable_id(device) {
            Ok(id) => line(out, "found again by", &format!("{} {}", id.what, id.value))?,
            Err(error) => line(out, "found again by", &format!("nothing: {error}"))?,
        }
    }
    Ok(())
}

fn use_of(root: &Root, all: &[BlockDevice], device: &BlockDevice, out: &mut Out) -> Result<()> {
    let below: Vec<&str> = all_below(root, all, device).iter().skip(1).map(|other| other.name.as_str()).collect();
    line(out, "lies on", &below.join(", "))?;
    if let Some(file) = &device.backing_file {
        line(out, "file", &file.display().to_string())?;
    }
    for part in &device.partitions {
        let Some(part) = all.iter().find(|other| other.name == *part) else { continue };
        let text = [bytes(part.bytes), uses(part), made_of(part)].into_iter().filter(|text| !text.is_empty());
        line(out, "partition", &format!("{}: {}", part.name, text.collect::<Vec<_>>().join(", ")))?;
    }
    line(out, "made of it", &device.holders.join(", "))?;
    for mount in &device.mounts {
        line(out, "mounted at", &format!("{} ({})", mount.at.display(), mount.file_system))?;
    }
    if device.swap {
        line(out, "used as", "swap")?;
    }
    if device.read_only {
        line(out, "writes", "are refused")?;
    }
    let openers: Vec<String> =
        openers(root, device).iter().map(|opener| format!("{} ({})", opener.comm, opener.pid)).collect();
    line(out, "open by", &openers.join(", "))
}

fn made_of(part: &BlockDevice) -> String {
    if part.holders.is_empty() { String::new() } else { format!("holds {}", part.holders.join(", ")) }
}

fn queue_of(root: &Root, device: &BlockDevice, queue: &Queue, out: &mut Out) -> Result<()> {
    out.line("")?;
    out.heading("Queue")?;
    let handed_on = || format!("none to choose: {}", why_no_choice(root, device));
    line(out, "scheduler", &if queue.has_choice() { schedulers(queue) } else { handed_on() })?;
    let rotates = queue.rotational.map_or("", |rotates| if rotates { "yes, as the kernel believes" } else { "no" });
    line(out, "rotates", if device.kind.is_memory() { "" } else { rotates })?;
    line(out, "zoned", queue.zoned.as_deref().unwrap_or_default())?;
    line(out, "depth", &depth(queue))?;
    line(out, "write cache", &cache(queue))?;
    let sectors = queue.logical_block_bytes.zip(queue.physical_block_bytes);
    line(
        out,
        "blocks",
        &sectors.map_or_else(String::new, |(logical, physical)| format!("{logical} bytes, {physical} on the medium")),
    )?;
    line(out, "discard", &queue.discard_max_bytes.map_or_else(String::new, discard))?;
    if let Some(scheduler) = queue.scheduler.as_deref().filter(|_| !queue.tunables.is_empty()) {
        let known = rows(scheduler);
        out.line("")?;
        out.heading(format_args!("Tunables of {scheduler}"))?;
        if let Some(kind) = Elevator::from_name(scheduler) {
            out.paragraph(2, kind.info().idea)?;
            out.line("")?;
        }
        let pairs = queue.tunables.iter().map(|tunable| (tunable, known.iter().find(|row| row.name == tunable.name)));
        attributes(&pairs.collect::<Vec<_>>(), out)?;
    }
    let pairs: Vec<_> = SETTINGS
        .iter()
        .filter_map(|row| Some((queue.setting(row.name)?, Some(row))))
        .filter(|(setting, _)| setting.writable)
        .collect();
    if !pairs.is_empty() {
        out.line("")?;
        out.heading("Settings of the queue")?;
        attributes(&pairs, out)?;
    }
    Ok(())
}

fn depth(queue: &Queue) -> String {
    let mut parts = Vec::new();
    if let Some(depth) = queue.device_depth {
        parts.push(format!("{depth} in the device"));
    }
    if let Some(requests) = queue.nr_requests {
        let queues = queue
            .hardware_queues
            .filter(|count| *count > 1)
            .map_or_else(String::new, |count| format!(", in each of {count} hardware queues"));
        parts.push(format!("{requests} in the queue{queues}"));
    }
    parts.join("; ")
}

fn cache(queue: &Queue) -> String {
    let cache = match queue.write_cache {
        Some(WriteCache::Back) => "write back: flushes make writes durable",
        Some(WriteCache::Through) => "none that forgets (write through)",
        None => return String::new(),
    };
    let fua = if queue.fua == Some(true) { ", or writes past the cache (FUA)" } else { "" };
    format!("{cache}{fua}")
}

fn discard(max_bytes: u64) -> String {
    if max_bytes == 0 {
        "it cannot be told what is unused".to_owned()
    } else {
        format!("up to {} at once", bytes(max_bytes))
    }
}

fn attributes(pairs: &[(&Attribute, Option<&Row>)], out: &mut Out) -> Result<()> {
    let mut table = output::table(&["  name", "now", "default", "range"], 1);
    for (attribute, row) in pairs {
        let default =
            row.and_then(|row| row.default).map_or_else(|| "-".to_owned(), |value| with_unit(&value.to_string(), *row));
        let range = row.map_or_else(String::new, range);
        table.add_row([format!("  {}", attribute.name), with_unit(&attribute.value, *row), default, range]);
    }
    out.table(&mut table)?;
    for (attribute, row) in pairs {
        let Some(row) = row else { continue };
        out.line("")?;
        out.paragraph(2, &format!("{}: {}", attribute.name, row.meaning))?;
        if !row.trade_off.is_empty() {
            out.paragraph(4, &format!("Trade-off: {}", row.trade_off))?;
        }
    }
    Ok(())
}

/// What hides a scheduler, or makes it wait for nothing.
fn warnings(all: &[BlockDevice], device: &BlockDevice, queue: &Queue, out: &mut Out) -> Result<()> {
    let mut told: Vec<String> = Vec::new();
    let is_above = |other: &&BlockDevice| device.holders.contains(&other.name) && schedules_for_paths(other);
    if let Some(above) = all.iter().find(is_above) {
        told.push(format!(
            "It is a path of {0}, which schedules and passes by what is set here: `hoistway devices {0}`.",
            above.name
        ));
    }
    if device.kind.is_virtual() && queue.rotational == Some(true) {
        told.push(format!(
            "It says that it rotates, as virtual disks often do whatever lies below; bfq waits for an arm then. If it is flash: hoistway devices set {} \
             rotational=0",
            device.name
        ));
    }
    let depth = queue.device_depth.unwrap_or(0);
    if depth > 1 && queue.rotational == Some(true) && queue.scheduler.as_deref() != Some("none") {
        told.push(format!(
            "The disk takes {depth} requests at once and orders them itself: the scheduler decides who is among them, and no more. queue_depth=1 leaves the \
             order to it."
        ));
    }
    if schedules_for_paths(device) {
        let paths = device.slaves.join(", ");
        told.push(format!("It hands its requests to its paths ({paths}) past their schedulers: this one counts."));
    } else if queue.has_choice() && device.kind.is_stacked() {
        told.push(
            "It lies on another device: two schedulers would sort, and only the lower one knows the arm.".to_owned(),
        );
    }
    for text in told {
        out.line("")?;
        out.paragraph(0, &format!("Note: {text}"))?;
    }
    if queue.has_choice() {
        out.line("")?;
        let other = if queue.scheduler.as_deref() == Some("bfq") { "mq-deadline" } else { "bfq" };
        out.paragraph(0, &format!("To set: hoistway devices set {} scheduler={other} --dry-run", device.name))?;
    }
    Ok(())
}

/// Where requests to a device without a scheduler are scheduled.
fn hand_over(device: &BlockDevice, below: &[&BlockDevice], out: &mut Out) -> Result<()> {
    let below: Vec<String> = below
        .iter()
        .map(|other| {
            let scheduler = other.queue.as_ref().and_then(|queue| queue.scheduler.as_deref()).unwrap_or("nothing");
            format!("{} ({scheduler})", other.name)
        })
        .collect();
    if below.is_empty() || device.kind == Kind::Zram {
        return Ok(());
    }
    out.line("")?;
    out.paragraph(
        0,
        &format!("Its requests end in the queue of {}: `hoistway devices NAME` tells of it.", below.join(", ")),
    )?;
    Ok(())
}
