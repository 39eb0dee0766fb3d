//! Prints explained priorities as text.

use anyhow::Result;
use hoistway_machine::{
    Class, CpuPolicy, DeviceUse, ExplainedPriority, GroupPolicy, PriorityAtQueue, PriorityOnDevice, PriorityReport,
    Process,
};

use crate::output::Out;
use hoistway_units::figures::bytes;
use hoistway_units::printable::shortened;

/// Longest command line that is shown, in characters: the line fits a terminal.
const COMMAND_MAX: usize = 68;

/// Prints all explanations.
pub fn print(report: &PriorityReport, out: &mut Out) -> Result<()> {
    for (index, explained) in report.explained.iter().enumerate() {
        if index > 0 {
            out.line("")?;
        }
        print_one(explained, out)?;
    }
    Ok(())
}

fn print_one(explained: &ExplainedPriority, out: &mut Out) -> Result<()> {
    match &explained.process {
        Some(process) => print_process(process, explained, out)?,
        None => out.heading(&explained.priority)?,
    }
    if explained.all_files_seen == Some(false) {
        out.paragraph(2, "Only its user and root may list its open files: there may be more devices.")?;
    }
    if explained.devices.is_empty() {
        out.line("")?;
        out.paragraph(
            0,
            "It uses no visible block device, so its priority has no effect. --device NAME explains it for a device.",
        )?;
    }
    explained.devices.iter().try_for_each(|device| print_device(device, out))?;
    if explained.effective_priority.class != Class::Idle
        && explained.devices.iter().flat_map(|device| &device.queues).any(|queue| queue.counts)
    {
        out.line("")?;
        out.paragraph(
            0,
            "It counts for reads and for synchronous writes (O_DIRECT, O_SYNC, fsync). Kernel threads write buffered data to the disk \
             later, with their own priority.",
        )?;
    }
    out.line("")?;
    out.heading(format_args!("The effect of {} under each elevator", explained.effective))?;
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

fn print_process(process: &Process, explained: &ExplainedPriority, out: &mut Out) -> Result<()> {
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
            format!("no priority is set, so it follows nice {}{policy}", process.nice)
        } else {
            "its control group changes it (io.prio.class)".to_owned()
        };
        out.paragraph(2, &format!("It counts as {}: {why}.", explained.effective))?;
    }
    let command = process.command.join(" ");
    if !command.is_empty() {
        out.line(format_args!("  command  {}", shortened(&command, COMMAND_MAX)))?;
    }
    if !process.cgroup.is_empty() {
        out.line(format_args!("  group    {}", process.cgroup))?;
    }
    if let Some((read, written)) = process.moved_bytes {
        out.line(format_args!("  moved    {} read, {} written", bytes(read), bytes(written)))?;
    }
    Ok(())
}

fn print_device(on: &PriorityOnDevice, out: &mut Out) -> Result<()> {
    out.line("")?;
    let used = on.used.as_ref().map_or_else(String::new, |used| format!(" ({})", use_text(used)));
    let path =
        if on.way.len() > 1 { format!(": its requests go through {}", on.way.join(", ")) } else { String::new() };
    out.heading(format_args!("On {}{used}{path}", on.device))?;
    for queue in &on.queues {
        print_queue(queue, out)?;
    }
    if on.queues.is_empty() {
        out.paragraph(2, "No queue is visible below it.")?;
    }
    Ok(())
}

fn use_text(used: &DeviceUse) -> String {
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

fn print_queue(queue: &PriorityAtQueue, out: &mut Out) -> Result<()> {
    let scheduler = queue.scheduler.as_deref().unwrap_or("no scheduler");
    let warning = if queue.counts { "" } else { "No effect: " };
    out.paragraph(2, &format!("{}, {scheduler}: {warning}{}.", queue.device, queue.effect))?;
    for note in &queue.notes {
        out.paragraph(4, &format!("- {note}"))?;
    }
    for group in &queue.groups {
        out.paragraph(4, &format!("- control group {}: {}", group.group, policy_text(group, queue)))?;
    }
    if let Some(first) = queue.would_count.iter().find(|name| *name == "bfq").or(queue.would_count.first()) {
        let which = queue.would_count.join(" and ");
        out.paragraph(4, &format!("- {which} would use it: hoistway devices set {} scheduler={first}", queue.device))?;
    }
    Ok(())
}

fn policy_text(group: &GroupPolicy, queue: &PriorityAtQueue) -> String {
    let mut parts = Vec::new();
    let is_bfq = queue.scheduler.as_deref() == Some("bfq");
    if let Some(weight) = group.bfq_weight {
        parts.push(format!("weight {weight} among groups{}", if is_bfq { "" } else { ", which only bfq applies" }));
    }
    if let Some(weight) = group.weight {
        parts.push(format!("io.weight {weight}"));
    }
    if let Some(latency) = group.latency_us {
        parts.push(format!("a latency target of {latency} us (io.latency), for which other groups are throttled"));
    }
    if let Some(class) = &group.prio_class {
        parts.push(format!("io.prio.class is {class}"));
    }
    if let Some(max) = &group.max {
        parts.push(format!("limits {max} (io.max) apply before the scheduler"));
    }
    parts.join("; ")
}
