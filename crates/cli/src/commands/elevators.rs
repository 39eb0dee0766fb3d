//! `hoistway elevators`: lists the elevators, or explains one.

use anyhow::Result;
use hoistway_core::{Info, Kind, Tunable, Unit};
use hoistway_sim::{ElevatorList, GroupSupport};

use crate::cli::ElevatorsArgs;
use crate::failure::Exit;
use crate::output::{self, Out};
use crate::setting::{range, with_unit};

/// Lists the elevators, or explains one.
pub fn run(args: &ElevatorsArgs, out: &mut Out) -> Result<Exit> {
    let kinds = args.name.map_or_else(hoistway_custom::all, |kind| vec![kind]);
    if args.json {
        out.json(&ElevatorList::new(&kinds))?;
    } else if let Some(kind) = args.name {
        if args.markdown { markdown(kind, out)? } else { explain(kind, out)? }
    } else {
        list(&kinds, out)?;
    }
    Ok(Exit::Success)
}

fn list(kinds: &[Kind], out: &mut Out) -> Result<()> {
    let mut table = output::table(&["elevator", "Linux", "groups", "reserves", "idea"], 5);
    for kind in kinds {
        let Info { name, in_linux, headline, reservations, .. } = *kind.info();
        let groups = match GroupSupport::of(*kind) {
            GroupSupport::No => "no",
            GroupSupport::IfSet(_) => "if set",
            GroupSupport::Yes => "yes",
        };
        table.add_row([name, in_linux, groups, if reservations { "yes" } else { "no" }, headline]);
    }
    out.table(&mut table)?;
    out.line("")?;
    out.paragraph(
        0,
        "groups: the elevator divides the disk among control groups by weight; the others treat all processes as one \
         group. reserves: a process can reserve a bandwidth.",
    )?;
    out.paragraph(0, "`hoistway elevators NAME` explains one, with its tunables.")?;
    Ok(())
}

/// Prints the table of tunables for the elevator's page in docs/elevators.
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
    let source = if let Kind::Custom(_) = kind { "Version" } else { "Kernel" };
    out.paragraph(2, &format!("{source}: {}.", info.kernel))?;
    let groups = match GroupSupport::of(kind) {
        GroupSupport::No => "Knows no control groups: all processes count as of one.".to_owned(),
        support => {
            let when = match support {
                GroupSupport::IfSet(switch) => format!(" when its tunable `{}` is 1", switch.name),
                _ => String::new(),
            };
            format!("Divides the disk among control groups{when}: cgroup and cgroup_weight of a job.")
        }
    };
    out.paragraph(2, &groups)?;
    if info.reservations {
        out.paragraph(2, "Takes reservations of bandwidth: hoistway_reserve of a job.")?;
    }
    let texts = [("Idea", info.idea), ("Suits", info.suits)];
    for (heading, text) in texts.into_iter().filter(|(_, text)| !text.is_empty() && *text != info.headline) {
        out.line("")?;
        out.heading(heading)?;
        out.paragraph(2, text)?;
    }
    out.line("")?;
    out.heading("Tunables")?;
    if info.tunables.is_empty() {
        out.paragraph(2, "None.")?;
        return more(kind, out);
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
    more(kind, out)
}

/// Prints where to read more.
fn more(kind: Kind, out: &mut Out) -> Result<()> {
    if let Kind::Custom(_) = kind {
        return Ok(());
    }
    let page = format!("docs/elevators/{}.md", kind.info().name);
    out.line("")?;
    out.paragraph(0, &format!("A drawing, the life of a request, when to choose it, known defects: {page}"))?;
    Ok(())
}
