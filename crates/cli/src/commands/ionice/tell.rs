//! What becomes of a priority, as text.

use anyhow::Result;
use hoistway_machine::{BlockDevice, Class, CpuPolicy, GroupPolicy, Kind, Process, Queue, Use};

use super::explain::{AtQueue, Document, Explained, OnDevice};
use crate::figures::bytes;
use crate::output::Out;

/// Prints all that was explained.
pub fn print(document: &Document, out: &mut Out) -> Result<()> {
    for (index, explained) in document.explained.iter().enumerate() {
        if index > 0 {
            out.line("")?;
        }
        one(explained, out)?;
    }
    Ok(())
}

fn one(explained: &Explained, out: &mut Out) -> Result<()> {
    match &explained.process {
        Some(process) => head(process, explained, out)?,
        None => out.heading(&explained.priority)?,
    }
    if explained.all_files_seen == Some(false) {
        out.paragraph(2, "Its open files are not shown to others than its user and root: there may be more devices.")?;
    }
    if explained.devices.is_empty() {
        out.line("")?;
        out.paragraph(0, "It uses no block device that can be seen: nothing becomes of its priority. --device NAME explains it for one.")?;
    }
    explained.devices.iter().try_for_each(|device| on_device(device, out))?;
    if explained.counted.class != Class::Idle
        && explained.devices.iter().flat_map(|device| &device.queues).any(|queue| queue.counts)
    {
        out.line("")?;
        out.paragraph(
            0,
            "It counts for reads, and for writes that are waited for (O_DIRECT, O_SYNC, fsync). What is written into memory goes to the disk later, by \
             threads of the kernel and with their priority.",
        )?;
    }
    out.line("")?;
    out.heading(format_args!("What elevators make of {}", explained.effective))?;
    let mut effects: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in &explained.elevators {
        match effects.iter_mut().find(|(effect, _)| *effect == row.effect) {
            Some((_, names)) => names.push(row.elevator),
            None => effects.push((&row.effect, vec![row.elevator])),
        }
    }
    for (effect, names) in effects {
        out.line(format_args!("  {}", names.join(", ")))?;
        out.paragraph(6, effect)?;
    }
    Ok(())
}

fn head(process: &Process, explained: &Explained, out: &mut Out) -> Result<()> {
    out.heading(format_args!("{} ({}): {}", process.comm, process.pid, explained.priority))?;
    if explained.supposed {
        out.paragraph(2, &format!("As if it had this priority; its own is {}.", process.priority))?;
    }
    if explained.priority != explained.effective {
        let policy = match process.policy {
            CpuPolicy::Normal => String::new(),
            CpuPolicy::Realtime => " and its CPU policy (real time)".to_owned(),
            CpuPolicy::Idle => " and its CPU policy (idle)".to_owned(),
        };
        let why = if explained.priority.starts_with("none") {
            format!("none is set: it follows nice {}{policy}", process.nice)
        } else {
            "its control group makes that of it (io.prio.class)".to_owned()
        };
        out.paragraph(2, &format!("It counts as {}: {why}.", explained.effective))?;
    }
    let command = process.command.join(" ");
    if !command.is_empty() {
        out.line(format_args!("  command  {}", shortened(&command)))?;
    }
    if !process.cgroup.is_empty() {
        out.line(format_args!("  group    {}", process.cgroup))?;
    }
    if let Some((read, written)) = process.moved_bytes {
        out.line(format_args!("  moved    {} read, {} written", bytes(read), bytes(written)))?;
    }
    Ok(())
}

/// A command line that fits on a line of a terminal; what cannot be printed is not.
fn shortened(command: &str) -> String {
    const CHARACTERS_MAX: usize = 68;
    let plain: String = command.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    if plain.chars().count() <= CHARACTERS_MAX {
        return plain;
    }
    plain.chars().take(CHARACTERS_MAX - 3).chain("...".chars()).collect()
}

fn on_device(on: &OnDevice, out: &mut Out) -> Result<()> {
    out.line("")?;
    let used = on.used.as_ref().map_or_else(String::new, |used| format!(" ({})", how(used)));
    let way = if on.way.len() > 1 { format!(": its requests go through {}", on.way.join(", ")) } else { String::new() };
    out.heading(format_args!("On {}{used}{way}", on.device))?;
    for queue in &on.queues {
        at_queue(queue, out)?;
    }
    if on.queues.is_empty() {
        out.paragraph(2, "No queue is to be seen below it.")?;
    }
    Ok(())
}

fn how(used: &Use) -> String {
    let mut ways = Vec::new();
    match used.open_files {
        0 => {}
        1 => ways.push("1 open file".to_owned()),
        count => ways.push(format!("{count} open files")),
    }
    if used.working_directory {
        ways.push("its working directory".to_owned());
    }
    if used.program {
        ways.push("its program".to_owned());
    }
    ways.join(", ")
}

fn at_queue(queue: &AtQueue, out: &mut Out) -> Result<()> {
    let scheduler = queue.scheduler.as_deref().unwrap_or("no scheduler");
    let warning = if queue.counts { "" } else { "No effect: " };
    out.paragraph(2, &format!("{}, {scheduler}: {warning}{}.", queue.device, queue.effect))?;
    for note in &queue.notes {
        out.paragraph(4, &format!("- {note}"))?;
    }
    for group in &queue.groups {
        out.paragraph(4, &format!("- control group {}: {}", group.group, policy(group, queue)))?;
    }
    if let Some(first) = queue.would_count.iter().find(|name| *name == "bfq").or(queue.would_count.first()) {
        let which = queue.would_count.join(" and ");
        out.paragraph(4, &format!("- {which} would heed it: hoistway devices set {} scheduler={first}", queue.device))?;
    }
    Ok(())
}

fn policy(group: &GroupPolicy, queue: &AtQueue) -> String {
    let mut parts = Vec::new();
    let is_bfq = queue.scheduler.as_deref() == Some("bfq");
    if let Some(weight) = group.bfq_weight {
        parts.push(format!("weight {weight} among groups{}", if is_bfq { "" } else { ", which bfq alone counts" }));
    }
    if let Some(weight) = group.weight {
        parts.push(format!("io.weight {weight}"));
    }
    if let Some(latency) = group.latency_us {
        parts.push(format!("a latency of {latency} us is kept for it (io.latency), and others are held back"));
    }
    if let Some(class) = &group.prio_class {
        parts.push(format!("io.prio.class is {class}"));
    }
    if let Some(max) = &group.max {
        parts.push(format!("limits {max} (io.max) hold before the scheduler"));
    }
    parts.join("; ")
}

/// Where a priority may be lost on the way to a queue.
pub fn notes_of_way(way: &[&BlockDevice], device: &BlockDevice) -> Vec<String> {
    let above = way.iter().take_while(|other| other.number != device.number);
    let notes = above.filter_map(|other| match other.kind {
        Kind::Crypt => Some(format!(
            "{} is encrypted: threads of the kernel do part of its requests, and older kernels without the priority",
            other.name
        )),
        Kind::Md => Some(format!(
            "{} is an array: what it writes in the background, and parity, has not this priority",
            other.name
        )),
        Kind::Loop => Some(format!(
            "{} is a file: a thread of the kernel reads and writes it, and older kernels without the priority",
            other.name
        )),
        _ => None,
    });
    notes.collect()
}

/// What counts beside the priority under bfq.
pub fn notes_of_bfq(queue: &Queue) -> Vec<String> {
    let mut notes = Vec::new();
    if queue.tunable("low_latency").is_some_and(|tunable| tunable.value == "1") {
        notes.push(
            "low_latency is 1: programs that start, or play, are raised for a while whatever their level".to_owned(),
        );
    }
    notes
}
