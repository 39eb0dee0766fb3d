//! `hoistway elevators`: the registry, listed or explained.

use anyhow::Result;
use hoistway_core::{Info, Kind, Tunable, Unit};
use hoistway_sim::group_switch;
use serde::Serialize;

use crate::cli::ElevatorsArgs;
use crate::failure::Exit;
use crate::output::{self, Out};
use crate::setting::{range, with_unit};

/// Lists the elevators, or explains one.
pub fn run(args: &ElevatorsArgs, out: &mut Out) -> Result<Exit> {
    let kinds = args.name.as_ref().map_or(Kind::ALL, std::slice::from_ref);
    if args.json {
        out.json(&Document { schema: 1, elevators: kinds.iter().map(|kind| Elevator::new(kind.info())).collect() })?;
    } else if let Some(kind) = args.name {
        explain(kind, out)?;
    } else {
        list(out)?;
    }
    Ok(Exit::Success)
}

/// The JSON document of `hoistway elevators --json`.
#[derive(Serialize)]
struct Document {
    /// The version of this form: 1.
    schema: u32,
    /// All elevators, or the one that was named.
    elevators: Vec<Elevator>,
}

/// One elevator.
#[derive(Serialize)]
struct Elevator {
    /// Its name.
    name: &'static str,
    /// Other names that are taken for it.
    aliases: &'static [&'static str],
    /// The kernels whose decisions it takes.
    kernel: &'static str,
    /// How it works.
    idea: &'static str,
    /// What it is good for, and what not.
    suits: &'static str,
    /// Whether it can divide the disk among groups of processes.
    groups: bool,
    /// Whether processes can reserve bandwidth from it.
    reservations: bool,
    /// Its tunables.
    tunables: Vec<TunableRow>,
}

/// One tunable.
#[derive(Serialize)]
struct TunableRow {
    /// The kernel's name.
    name: &'static str,
    /// The unit of `default`, `min` and `max`: ms, requests, KiB, times, factor, 0/1, form.
    unit: &'static str,
    /// What it is unless set.
    default: i64,
    /// The least that it takes.
    min: i64,
    /// The most that it takes.
    max: i64,
    /// What it does.
    meaning: &'static str,
    /// What one wins and loses by changing it.
    trade_off: &'static str,
}

impl Elevator {
    fn new(info: &'static Info) -> Elevator {
        let Info { name, aliases, kernel, idea, suits, groups, reservations, .. } = *info;
        let tunables = info.tunables.iter().map(TunableRow::new).collect();
        Elevator { name, aliases, kernel, idea, suits, groups, reservations, tunables }
    }
}

impl TunableRow {
    fn new(row: &'static Tunable) -> TunableRow {
        let Tunable { name, unit, default, min, max, meaning, trade_off } = *row;
        TunableRow { name, unit: unit.label(), default, min, max, meaning, trade_off }
    }
}

fn list(out: &mut Out) -> Result<()> {
    let width = Kind::ALL.iter().map(|kind| kind.info().name.len()).max().unwrap_or(0);
    for kind in Kind::ALL {
        let Info { name, idea, .. } = kind.info();
        out.line(format_args!("{name:width$}  {}", first_sentence(idea)))?;
    }
    out.line("")?;
    out.paragraph(0, "`hoistway elevators NAME` explains one, with its tunables.")?;
    Ok(())
}

/// The idea up to its first full stop, semicolon or colon: enough for a list.
fn first_sentence(text: &str) -> &str {
    let end = [". ", "; ", ": "].iter().filter_map(|stop| text.find(stop)).min();
    end.map_or_else(|| text.trim_end_matches('.'), |end| &text[..end])
}

fn explain(kind: Kind, out: &mut Out) -> Result<()> {
    let info = kind.info();
    out.heading(info.name)?;
    if !info.aliases.is_empty() {
        out.paragraph(2, &format!("Also called {}.", info.aliases.join(", ")))?;
    }
    out.paragraph(2, &format!("Decides as Linux {} did.", info.kernel))?;
    if info.groups {
        let switch = group_switch(kind).filter(|row| row.default == 0);
        let when = switch.map_or_else(String::new, |row| format!(" when its tunable `{}` is 1", row.name));
        out.paragraph(2, &format!("Divides the disk among control groups{when}: cgroup and cgroup_weight of a job."))?;
    }
    if info.reservations {
        out.paragraph(2, "Takes reservations of bandwidth: hoistway_reserve of a job.")?;
    }
    for (heading, text) in [("Idea", info.idea), ("Suits", info.suits)] {
        out.line("")?;
        out.heading(heading)?;
        out.paragraph(2, text)?;
    }
    out.line("")?;
    out.heading("Tunables")?;
    if info.tunables.is_empty() {
        out.paragraph(2, "None.")?;
        return Ok(());
    }
    let mut table = output::table(&["  name", "default", "range"], 1);
    for row in info.tunables {
        table.add_row([format!("  {}", row.name), with_unit(row.default, row.unit), range(row)]);
    }
    out.table(&mut table)?;
    for row in info.tunables {
        out.line("")?;
        out.paragraph(2, &format!("{}: {}", row.name, row.meaning))?;
        out.paragraph(4, &format!("Trade-off: {}", row.trade_off))?;
    }
    out.line("")?;
    let Tunable { name, default, unit, .. } = &info.tunables[0];
    let unit = if *unit == Unit::Milliseconds { "ms" } else { "" };
    let set = format!("{}.{name}={default}{unit}", info.name);
    out.paragraph(0, &format!("To try another value: hoistway compare --set {set}"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_ends_at_its_stop() {
        assert_eq!(first_sentence("Sorts requests. And merges."), "Sorts requests");
        assert_eq!(first_sentence("First in, first out."), "First in, first out");
        assert_eq!(first_sentence("Slices of time; at the end it waits."), "Slices of time");
    }
}
