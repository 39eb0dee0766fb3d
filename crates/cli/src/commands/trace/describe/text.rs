//! Prints a description as text.

use anyhow::Result;
use hoistway_trace::describe::{
    Description, Evidence, ProcessFigures, REQUESTS_OF_RULE_MAX, REQUESTS_OF_RULE_MIN, RequestFigures, Rule,
};

use super::tables::{self, ms, waits_for};
use crate::output::{Out, width};
use hoistway_units::figures::{bytes, figure, percent};

/// Maximum number of kinds of elevator messages that are shown, the most frequent ones.
const NOTES_SHOWN: usize = 12;

/// Prints the statistics of the whole trace.
pub fn whole(name: &str, description: &Description, top: usize, out: &mut Out) -> Result<()> {
    let seconds = description.duration_ns as f64 / 1e9;
    let all = &description.all;
    out.heading(format_args!(
        "{name}: {} requests, {} in {} s, {}on {}",
        all.requests,
        bytes(all.mix.bytes()),
        figure(seconds),
        processes_of(description),
        devices(description),
    ))?;
    out.line("")?;
    let merged = Some([description.counts.reads.merged, description.counts.writes.merged]);
    out.table(&mut tables::mix(all, merged, seconds))?;
    out.line("")?;
    phases(all, out)?;
    processes_table(description, top, seconds, out)?;
    if description.completions() > 0 {
        out.table(&mut tables::depth(description))?;
        out.line("")?;
    }
    out.table(&mut tables::seeks(&[("in order of Q", &all.seeks), ("in order of D", &description.seeks_at_d)]))?;
    out.line("")?;
    out.table(&mut tables::sizes(all))?;
    out.line("")?;
    remarks(description, out)?;
    for device in description.devices.iter().filter(|device| !device.settings.is_empty()) {
        out.line("")?;
        out.paragraph(0, &format!("{} was recorded under {}.", device.device, device.settings))?;
    }
    notes(description, out)
}

/// Prints the statistics of the selected processes.
pub fn processes(description: &Description, out: &mut Out) -> Result<()> {
    for (index, process) in description.processes.iter().enumerate() {
        if index > 0 {
            out.line("")?;
        }
        one(process, description.duration_ns as f64 / 1e9, out)?;
    }
    Ok(())
}

fn one(process: &ProcessFigures, seconds: f64, out: &mut Out) -> Result<()> {
    let part = &process.part;
    let (name, size) = (process.title(), bytes(part.mix.bytes()));
    out.heading(format_args!("{name}: {} bios, {size} in {} s", part.bios, figure(seconds)))?;
    out.line("")?;
    out.table(&mut tables::mix(part, None, seconds))?;
    out.line("")?;
    phases(part, out)?;
    if part.seeks.distance_sectors.count > 0 {
        out.table(&mut tables::seeks(&[("in order of Q", &part.seeks)]))?;
        out.line("")?;
    }
    out.table(&mut tables::sizes(part))?;
    out.line("")?;
    if let Some(rule) = &process.rule {
        out.paragraph(0, &rule_text(rule, part))?;
    }
    let marks = marks(part);
    if !marks.is_empty() {
        out.paragraph(0, &format!("Bios: {}.", marks.join(", ")))?;
    }
    Ok(())
}

/// The rule of a process in words, with its evidence.
fn rule_text(rule: &Rule, part: &RequestFigures) -> String {
    let requests = rule.requests;
    if rule.evidence == Evidence::TooFewRequests {
        let made = counted(requests, "completed request", "completed requests");
        return format!("The rule of the process is unknown: it has {made}, and a rule needs {REQUESTS_OF_RULE_MIN}.");
    }
    let first = if requests >= REQUESTS_OF_RULE_MAX as u64 { "first " } else { "" };
    let assumed = match rule.evidence {
        Evidence::SimilarLatencies => " This is assumed: its latencies are too similar to show what it waits for.",
        Evidence::Observed | Evidence::TooFewRequests => "",
    };
    let think = part.think_ns;
    format!(
        "A request waits for {}: {} % of its {first}{requests} requests follow that rule, {} % came right after a \
         completion.{assumed} It thinks for {} ms (p50; p90 {}, p99 {}) from a completion to the next submission.",
        waits_for(rule),
        percent(rule.explained_share),
        percent(rule.right_after_share),
        ms(think.p50 as f64),
        ms(think.p90 as f64),
        ms(think.p99 as f64),
    )
}

fn phases(part: &RequestFigures, out: &mut Out) -> Result<()> {
    let explained = tables::phases(&part.phases, true);
    let mut table = if out.takes(width(&explained)) { explained } else { tables::phases(&part.phases, false) };
    out.table(&mut table)?;
    Ok(out.line("")?)
}

fn processes_table(description: &Description, top: usize, seconds: f64, out: &mut Out) -> Result<()> {
    let shown = &description.processes[..description.processes.len().min(top)];
    let unknown = |process: &ProcessFigures| process.pid == 0 && process.name.is_empty();
    if shown.iter().all(unknown) {
        return Ok(());
    }
    out.table(&mut tables::amounts(shown, seconds))?;
    out.line("")?;
    if description.completions() > 0 {
        let whole = tables::latencies(shown, true);
        let mut went = if out.takes(width(&whole)) { whole } else { tables::latencies(shown, false) };
        out.table(&mut went)?;
        out.line("")?;
    }
    let more = description.processes.len() as u64 + description.processes_left_out - shown.len() as u64;
    if more > 0 {
        let are = counted(more, "process is", "processes are");
        out.paragraph(0, &format!("{are} not shown: --top N shows more, --json all that have separate statistics."))?;
        out.line("")?;
    }
    Ok(())
}

/// Prints remarks about notable findings.
fn remarks(description: &Description, out: &mut Out) -> Result<()> {
    let (plug, counts) = (&description.plug, &description.counts);
    let busy = percent(description.depth.busy_share);
    let mut remarks =
        vec![match (description.completions(), description.counts.reads.issued + description.counts.writes.issued) {
            (0, _) => "This trace has no completions: it shows the submitted requests without latencies.".to_owned(),
            (_, 0) => "This trace has no issues to the device.".to_owned(),
            _ if description.devices.len() > 1 => {
                format!("At least one of the devices was busy for {busy} % of the time.")
            }
            _ => format!("The device was busy for {busy} % of the time."),
        }];
    if plug.plugged_ns.count > 0 {
        let released = &plug.requests_an_unplug;
        remarks.push(format!(
            "{} lasted {} ms (mean; p99 {}); an unplug released {} requests (mean; at most {}).",
            counted(plug.plugged_ns.count, "plug", "plugs"),
            ms(plug.plugged_ns.mean),
            ms(plug.plugged_ns.p99 as f64),
            figure(released.mean),
            released.max,
        ));
    }
    if description.all.merged > 0 {
        remarks.push(format!("{} % of bios were merged.", percent(plug.merge_share)));
    }
    let marks = marks(&description.all);
    if !marks.is_empty() {
        remarks.push(format!("Bios: {}.", marks.join(", ")));
    }
    let events = [
        (counts.sleeps, "waits for a free request"),
        (counts.splits, "splits"),
        (counts.remaps, "remaps"),
        (counts.bounces, "bounces"),
        (description.all.requeues, "requeues"),
        (if description.completions() > 0 { description.all.unfinished } else { 0 }, "requests without a completion"),
        (description.backward.events, "events earlier than those before them"),
    ];
    let events: Vec<String> =
        events.iter().filter(|events| events.0 > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if !events.is_empty() {
        remarks.push(format!("Also: {}.", events.join(", ")));
    }
    for (error, count) in &description.errors {
        let requests = counted(*count, "request", "requests");
        let reason = std::io::Error::from_raw_os_error(i32::from(*error));
        remarks.push(format!("{requests} failed: {reason}."));
    }
    Ok(out.paragraph(0, &remarks.join(" "))?)
}

/// Numbers of bios with flags.
fn marks(part: &RequestFigures) -> Vec<String> {
    let mix = &part.mix;
    let marks = [
        (mix.sync, "synchronous"),
        (mix.meta, "of file-system metadata"),
        (mix.ahead, "read ahead"),
        (mix.fua, "with force unit access (FUA)"),
        (mix.preflush, "with a preflush"),
    ];
    marks.iter().filter(|mark| mark.0 > 0).map(|(count, what)| format!("{count} {what}")).collect()
}

fn notes(description: &Description, out: &mut Out) -> Result<()> {
    for (elevator, kinds) in &description.notes {
        let mut kinds: Vec<(&String, &u64)> = kinds.iter().collect();
        kinds.sort_by_key(|(kind, count)| (std::cmp::Reverse(**count), (*kind).clone()));
        let total: u64 = kinds.iter().map(|(_, count)| **count).sum();
        let mut shown: Vec<String> =
            kinds.iter().take(NOTES_SHOWN).map(|(kind, count)| format!("{kind} {count}")).collect();
        if kinds.len() > NOTES_SHOWN {
            shown.push(format!("{} kinds more", kinds.len() - NOTES_SHOWN));
        }
        out.line("")?;
        out.paragraph(0, &format!("{elevator} noted {total}: {}.", shown.join(", ")))?;
    }
    Ok(())
}

/// The number of processes in the heading, if processes are known.
fn processes_of(description: &Description) -> String {
    let known = description.processes.iter().any(|process| process.pid > 0 || !process.name.is_empty());
    let count = description.processes.len() as u64 + description.processes_left_out;
    if known { format!("of {} ", counted(count, "process", "processes")) } else { String::new() }
}

fn devices(description: &Description) -> String {
    match &description.devices[..] {
        [one] => one.device.clone(),
        [] => "no device".to_owned(),
        many => format!("{} devices", many.len()),
    }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
