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
        if args.markdown { markdown(kind, out)? } else { explain(kind, out)? }
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
    /// The kernels that had it, in a word or two.
    in_linux: &'static str,
    /// The idea in a line.
    headline: &'static str,
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
        let Info { name, aliases, kernel, in_linux, headline, idea, suits, groups, reservations, .. } = *info;
        let tunables = info.tunables.iter().map(TunableRow::new).collect();
        Elevator { name, aliases, kernel, in_linux, headline, idea, suits, groups, reservations, tunables }
    }
}

impl TunableRow {
    fn new(row: &'static Tunable) -> TunableRow {
        let Tunable { name, unit, default, min, max, meaning, trade_off } = *row;
        TunableRow { name, unit: unit.label(), default, min, max, meaning, trade_off }
    }
}

fn list(out: &mut Out) -> Result<()> {
    let mut table = output::table(&["elevator", "Linux", "groups", "reserves", "idea"], 5);
    for kind in Kind::ALL {
        let Info { name, in_linux, headline, groups, reservations, .. } = *kind.info();
        let groups = match group_switch(*kind) {
            _ if !groups => "no",
            Some(Tunable { default: 0, .. }) => "if set",
            _ => "yes",
        };
        table.add_row([name, in_linux, groups, if reservations { "yes" } else { "no" }, headline]);
    }
    out.table(&mut table)?;
    out.line("")?;
    out.paragraph(
        0,
        "groups: it divides the disk among control groups by weight; the others take all processes as of one group. \
         reserves: a process can reserve bytes a second.",
    )?;
    out.paragraph(0, "`hoistway elevators NAME` explains one, with its tunables.")?;
    Ok(())
}

/// The table of tunables as the elevator's page in docs/elevators has it.
fn markdown(kind: Kind, out: &mut Out) -> Result<()> {
    let info = kind.info();
    if info.tunables.is_empty() {
        out.line("None.")?;
        return Ok(());
    }
    out.line("| tunable | default | range | does | trade-off |")?;
    out.line("|---|---|---|---|---|")?;
    for row in info.tunables {
        let (default, range) = (with_unit(row.default, row.unit), range(row));
        let [meaning, trade_off] = [row.meaning, row.trade_off].map(|text| text.replace('|', "\\|"));
        out.line(format_args!("| `{}` | {default} | {range} | {meaning} | {trade_off} |", row.name))?;
    }
    Ok(())
}

fn explain(kind: Kind, out: &mut Out) -> Result<()> {
    let info = kind.info();
    out.heading(format_args!("{}: {}", info.name, info.headline))?;
    if !info.aliases.is_empty() {
        out.paragraph(2, &format!("Also called {}.", info.aliases.join(", ")))?;
    }
    out.paragraph(2, &format!("Kernel: {}.", info.kernel))?;
    if info.groups {
        let switch = group_switch(kind).filter(|row| row.default == 0);
        let when = switch.map_or_else(String::new, |row| format!(" when its tunable `{}` is 1", row.name));
        out.paragraph(2, &format!("Divides the disk among control groups{when}: cgroup and cgroup_weight of a job."))?;
    } else {
        out.paragraph(2, "Knows no control groups: all processes count as of one.")?;
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
        return more(info, out);
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
    more(info, out)
}

/// Where there is more to read.
fn more(info: &Info, out: &mut Out) -> Result<()> {
    let page = format!("docs/elevators/{}.md", info.name);
    out.line("")?;
    out.paragraph(0, &format!("A drawing, the life of a request, when to choose it, known defects: {page}"))?;
    Ok(())
}
