//! A description as text.

use anyhow::Result;
use hoistway_trace::describe::{Description, ProcessFigures, REQUESTS_OF_RULE_MAX, RequestFigures};

use super::tables::{self, ms, waits_for};
use crate::figures::{bytes, figure, percent};
use crate::output::{Out, width};

/// So many kinds of an elevator's notes are shown, the most frequent ones.
const NOTES_SHOWN: usize = 12;

/// What a process is called: by its name and number, as far as they are known.
pub fn title(name: &str, pid: u32) -> String {
    match (name, pid) {
        ("", 0) => "(unknown)".to_owned(),
        ("", pid) => pid.to_string(),
        (name, pid) => format!("{name} ({pid})"),
    }
}

/// All of it.
pub fn whole(name: &str, told: &Description, top: usize, out: &mut Out) -> Result<()> {
    let seconds = told.duration_ns as f64 / 1e9;
    let all = &told.all;
    out.heading(format_args!(
        "{name}: {} requests, {} in {} s, {}on {}",
        all.requests,
        bytes(all.mix.bytes()),
        figure(seconds),
        processes_of(told),
        devices(told),
    ))?;
    out.line("")?;
    let merged = Some([told.counts.reads.merged, told.counts.writes.merged]);
    out.table(&mut tables::mix(all, merged, seconds))?;
    out.line("")?;
    phases(all, out)?;
    processes_table(told, top, seconds, out)?;
    if completions(told) > 0 {
        out.table(&mut tables::depth(told))?;
        out.line("")?;
    }
    out.table(&mut tables::seeks(&[("in order of Q", &all.seeks), ("in order of D", &told.seeks_at_d)]))?;
    out.line("")?;
    out.table(&mut tables::sizes(all))?;
    out.line("")?;
    remarks(told, out)?;
    notes(told, out)
}

/// The processes that were chosen, each by itself.
pub fn processes(told: &Description, out: &mut Out) -> Result<()> {
    for (place, process) in told.processes.iter().enumerate() {
        if place > 0 {
            out.line("")?;
        }
        one(process, told.duration_ns as f64 / 1e9, out)?;
    }
    Ok(())
}

fn one(process: &ProcessFigures, seconds: f64, out: &mut Out) -> Result<()> {
    let part = &process.part;
    let (name, size) = (title(&process.name, process.pid), bytes(part.mix.bytes()));
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
        let first = if rule.requests >= REQUESTS_OF_RULE_MAX as u64 { "first " } else { "" };
        let think = part.think_ns;
        out.paragraph(
            0,
            &format!(
                "A request waits for {}: {} % of its {first}{} requests follow that rule, {} % came right after a completion. It \
                 thinks for {} ms (p50; p90 {}, p99 {}) from a completion to the next submission.",
                waits_for(rule),
                percent(rule.explained_share),
                rule.requests,
                percent(rule.right_after_share),
                ms(think.p50 as f64),
                ms(think.p90 as f64),
                ms(think.p99 as f64),
            ),
        )?;
    }
    let marks = marks(part);
    if !marks.is_empty() {
        out.paragraph(0, &format!("Bios: {}.", marks.join(", ")))?;
    }
    Ok(())
}

fn phases(part: &RequestFigures, out: &mut Out) -> Result<()> {
    let explained = tables::phases(&part.phases, true);
    let mut table = if out.takes(width(&explained)) { explained } else { tables::phases(&part.phases, false) };
    out.table(&mut table)?;
    Ok(out.line("")?)
}

fn processes_table(told: &Description, top: usize, seconds: f64, out: &mut Out) -> Result<()> {
    let shown = &told.processes[..told.processes.len().min(top)];
    let unknown = |process: &ProcessFigures| process.pid == 0 && process.name.is_empty();
    if shown.iter().all(unknown) {
        return Ok(());
    }
    out.table(&mut tables::did(shown, seconds))?;
    out.line("")?;
    if completions(told) > 0 {
        let whole = tables::went(shown, true);
        let mut went = if out.takes(width(&whole)) { whole } else { tables::went(shown, false) };
        out.table(&mut went)?;
        out.line("")?;
    }
    let more = told.processes.len() as u64 + told.processes_left_out - shown.len() as u64;
    if more > 0 {
        let are = counted(more, "process is", "processes are");
        out.paragraph(0, &format!("{are} not shown: --top N shows more, --json those that are told apart."))?;
        out.line("")?;
    }
    Ok(())
}

/// What is worth a sentence.
fn remarks(told: &Description, out: &mut Out) -> Result<()> {
    let (plug, counts) = (&told.plug, &told.counts);
    let busy = percent(told.depth.busy_share);
    let mut remarks = vec![match (completions(told), told.counts.reads.issued + told.counts.writes.issued) {
        (0, _) => "This trace shows no completions: it tells what was asked for, and not how it went.".to_owned(),
        (_, 0) => "This trace does not show when the device took requests.".to_owned(),
        _ if told.devices.len() > 1 => format!("At least one of the devices was busy for {busy} % of the time."),
        _ => format!("The device was busy for {busy} % of the time."),
    }];
    if plug.plugged_ns.count > 0 {
        let let_go = &plug.requests_an_unplug;
        remarks.push(format!(
            "{} lasted {} ms (mean; p99 {}); an unplug let {} requests go (mean; at most {}).",
            counted(plug.plugged_ns.count, "plug", "plugs"),
            ms(plug.plugged_ns.mean),
            ms(plug.plugged_ns.p99 as f64),
            figure(let_go.mean),
            let_go.max,
        ));
    }
    if told.all.merged > 0 {
        remarks.push(format!("{} % of bios were merged.", percent(plug.merge_share)));
    }
    let marks = marks(&told.all);
    if !marks.is_empty() {
        remarks.push(format!("Bios: {}.", marks.join(", ")));
    }
    let seldom = [
        (counts.sleeps, "waits for a free request"),
        (counts.splits, "splits"),
        (counts.remaps, "remaps"),
        (counts.bounces, "bounces"),
        (told.all.requeues, "requeues"),
        (if completions(told) > 0 { told.all.unfinished } else { 0 }, "requests without a completion"),
        (told.backward.events, "events earlier than those before them"),
    ];
    let seldom: Vec<String> =
        seldom.iter().filter(|seldom| seldom.0 > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if !seldom.is_empty() {
        remarks.push(format!("Also: {}.", seldom.join(", ")));
    }
    for (error, count) in &told.errors {
        let requests = counted(*count, "request", "requests");
        let reason = std::io::Error::from_raw_os_error(i32::from(*error));
        remarks.push(format!("{requests} failed: {reason}."));
    }
    Ok(out.paragraph(0, &remarks.join(" "))?)
}

/// How many bios are marked how.
fn marks(part: &RequestFigures) -> Vec<String> {
    let mix = &part.mix;
    let marks = [
        (mix.sync, "synchronous"),
        (mix.meta, "of a file system's own data"),
        (mix.ahead, "read ahead"),
        (mix.fua, "durable by themselves (FUA)"),
        (mix.preflush, "with a flush before them"),
    ];
    marks.iter().filter(|mark| mark.0 > 0).map(|(count, what)| format!("{count} {what}")).collect()
}

fn notes(told: &Description, out: &mut Out) -> Result<()> {
    for (elevator, kinds) in &told.notes {
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

/// Of how many processes it is, where any is known.
fn processes_of(told: &Description) -> String {
    let known = told.processes.iter().any(|process| process.pid > 0 || !process.name.is_empty());
    let count = told.processes.len() as u64 + told.processes_left_out;
    if known { format!("of {} ", counted(count, "process", "processes")) } else { String::new() }
}

fn completions(told: &Description) -> u64 {
    told.counts.reads.completed + told.counts.writes.completed
}

fn devices(told: &Description) -> String {
    match &told.devices[..] {
        [one] => one.device.clone(),
        [] => "no device".to_owned(),
        many => format!("{} devices", many.len()),
    }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
