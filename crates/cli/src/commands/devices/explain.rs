//! Prints everything about one device.

use anyhow::Result;
use hoistway_machine::{
    Attribute, BlockDevice, ModuleState, QUEUE_SETTINGS, Queue, Root, WriteCache, all_below, elevator_of_scheduler,
    openers, queue_remarks, queues_instead, udev, why_no_choice,
};

use super::summary::{description, schedulers, uses};
use crate::output::{self, Out};
use hoistway_units::figures::bytes;

/// Prints identity, use, queue, tunables, settings and remarks.
pub fn print(root: &Root, all: &[BlockDevice], device: &BlockDevice, out: &mut Out) -> Result<()> {
    let size = if device.is_present() { bytes(device.bytes) } else { "nothing in it".to_owned() };
    let title = [device.kind.label().to_owned(), size, description(device)];
    let title = title.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
    out.heading(format_args!("{}: {}", device.name, title.join(", ")))?;
    print_identity(device, out)?;
    print_use(root, all, device, out)?;
    if let Some(queue) = &device.queue {
        print_queue(root, device, queue, out)?;
        print_attributes_of_scheduler(queue, out)?;
        print_settings(queue, out)?;
        print_remarks(all, device, queue, out)?;
    }
    let queues = queues_instead(root, all, device);
    if !queues.is_empty() {
        out.line("")?;
        let text = format!("Its requests end in the queue of {}: see `hoistway devices NAME`.", queues.join(", "));
        out.paragraph(0, &text)?;
    }
    Ok(())
}

/// Prints a name and a wrapped text; nothing for an empty text.
fn print_line(out: &mut Out, name: &str, text: &str) -> Result<()> {
    for (index, text) in output::wrap(text, 0, out.columns().saturating_sub(18)).iter().enumerate() {
        out.line(format_args!("  {:<16}{text}", if index == 0 { name } else { "" }))?;
    }
    Ok(())
}

fn print_identity(device: &BlockDevice, out: &mut Out) -> Result<()> {
    let identity = &device.identity;
    let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
    print_line(out, "node", &format!("{} ({})", device.path.display(), device.number))?;
    print_line(out, "vendor", &or_empty(&identity.vendor))?;
    print_line(out, "firmware", &or_empty(&identity.firmware))?;
    print_line(out, "serial", &or_empty(&identity.serial))?;
    print_line(out, "wwid", &or_empty(&identity.wwid))?;
    print_line(out, "attached by", identity.transport.map_or("", |transport| transport.label()))?;
    for link in &identity.links {
        print_line(out, "also called", &format!("/dev/{link}"))?;
    }
    if device.disk.is_none() && device.is_present() {
        match udev::stable_id(device) {
            Ok(id) => print_line(out, "found again by", &format!("{} {}", id.what, id.value))?,
            Err(error) => print_line(out, "found again by", &format!("nothing: {error}"))?,
        }
    }
    Ok(())
}

fn print_use(root: &Root, all: &[BlockDevice], device: &BlockDevice, out: &mut Out) -> Result<()> {
    let below: Vec<&str> = all_below(root, all, device).iter().skip(1).map(|other| other.name.as_str()).collect();
    print_line(out, "lies on", &below.join(", "))?;
    if let Some(file) = &device.backing_file {
        print_line(out, "file", &file.display().to_string())?;
    }
    for name in &device.partitions {
        let Some(partition) = all.iter().find(|other| other.name == *name) else { continue };
        let holders = match partition.holders.is_empty() {
            true => String::new(),
            false => format!("holds {}", partition.holders.join(", ")),
        };
        let text = [bytes(partition.bytes), uses(partition), holders].into_iter().filter(|text| !text.is_empty());
        print_line(out, "partition", &format!("{}: {}", partition.name, text.collect::<Vec<_>>().join(", ")))?;
    }
    print_line(out, "made of it", &device.holders.join(", "))?;
    for mount in &device.mounts {
        print_line(out, "mounted at", &format!("{} ({})", mount.at.display(), mount.file_system))?;
    }
    if device.swap {
        print_line(out, "used as", "swap")?;
    }
    if device.read_only {
        print_line(out, "writes", "are refused")?;
    }
    let openers: Vec<String> =
        openers(root, device).iter().map(|opener| format!("{} ({})", opener.comm, opener.pid)).collect();
    print_line(out, "open by", &openers.join(", "))
}

fn print_queue(root: &Root, device: &BlockDevice, queue: &Queue, out: &mut Out) -> Result<()> {
    out.line("")?;
    out.heading("Queue")?;
    let no_choice = || format!("none to choose: {}", why_no_choice(root, device));
    print_line(out, "scheduler", &if queue.has_choice() { schedulers(queue) } else { no_choice() })?;
    if queue.has_choice() {
        print_line(out, "module", &ModuleState::read(root).sentence(Some(queue)).unwrap_or_default())?;
    }
    let rotates = queue.rotational.map_or("", |rotates| if rotates { "yes, as the kernel assumes" } else { "no" });
    print_line(out, "rotates", if device.kind.is_memory() { "" } else { rotates })?;
    print_line(out, "zoned", queue.zoned.as_deref().unwrap_or_default())?;
    print_line(out, "depth", &depth(queue))?;
    print_line(out, "write cache", &cache(queue))?;
    let blocks = queue.logical_block_bytes.zip(queue.physical_block_bytes);
    print_line(
        out,
        "blocks",
        &blocks.map_or_else(String::new, |(logical, physical)| format!("{logical} bytes, {physical} on the medium")),
    )?;
    print_line(out, "discard", &queue.discard_max_bytes.map_or_else(String::new, discard))
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
        Some(WriteCache::Through) => "none that is volatile (write through)",
        None => return String::new(),
    };
    let fua = if queue.fua == Some(true) { ", or writes past the cache (FUA)" } else { "" };
    format!("{cache}{fua}")
}

fn discard(max_bytes: u64) -> String {
    if max_bytes == 0 { "not supported".to_owned() } else { format!("up to {} at once", bytes(max_bytes)) }
}

fn print_attributes_of_scheduler(queue: &Queue, out: &mut Out) -> Result<()> {
    let Some(scheduler) = queue.scheduler.as_deref().filter(|_| !queue.tunables.is_empty()) else { return Ok(()) };
    out.line("")?;
    out.heading(format_args!("Tunables of {scheduler}"))?;
    if let Some(kind) = elevator_of_scheduler(scheduler) {
        out.paragraph(2, kind.info().idea)?;
        out.line("")?;
    }
    print_attributes(&queue.tunables.iter().collect::<Vec<_>>(), out)
}

fn print_settings(queue: &Queue, out: &mut Out) -> Result<()> {
    let settings = QUEUE_SETTINGS.iter().filter_map(|info| queue.setting(info.name));
    let writable: Vec<&Attribute> = settings.filter(|setting| setting.writable).collect();
    if writable.is_empty() {
        return Ok(());
    }
    out.line("")?;
    out.heading("Settings of the queue")?;
    print_attributes(&writable, out)
}

fn print_attributes(attributes: &[&Attribute], out: &mut Out) -> Result<()> {
    let mut table = output::table(&["  name", "now", "default", "range"], 1);
    for attribute in attributes {
        let default = attribute.info.and_then(|info| Some(info.with_unit(&info.default?.to_string())));
        let range = attribute.info.map_or_else(String::new, |info| info.range());
        let default = default.unwrap_or_else(|| "-".to_owned());
        table.add_row([format!("  {}", attribute.name), attribute.with_unit(), default, range]);
    }
    out.table(&mut table)?;
    for attribute in attributes {
        let Some(info) = attribute.info else { continue };
        out.line("")?;
        out.paragraph(2, &format!("{}: {}", attribute.name, info.meaning))?;
        if !info.trade_off.is_empty() {
            out.paragraph(4, &format!("Trade-off: {}", info.trade_off))?;
        }
    }
    Ok(())
}

fn print_remarks(all: &[BlockDevice], device: &BlockDevice, queue: &Queue, out: &mut Out) -> Result<()> {
    for remark in queue_remarks(all, device) {
        out.line("")?;
        out.paragraph(0, &format!("Note: {remark}"))?;
    }
    if queue.has_choice() {
        out.line("")?;
        let other = if queue.scheduler.as_deref() == Some("bfq") { "mq-deadline" } else { "bfq" };
        out.paragraph(0, &format!("To set: hoistway devices set {} scheduler={other} --dry-run", device.name))?;
    }
    Ok(())
}
