//! `cargo xtask kernel bench`: the cost of a request in a guest, in instructions.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use hoistway_guest::protocol::Counts;

use hoistway_vm::architecture;
use hoistway_workspace::parts;

use super::plans::{self, Choice};
use super::test::Session;
use super::{Selection, build};

/// The page with the table.
const PAGE: &str = "docs/kernel.md";

/// Options of `cargo xtask kernel bench`.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    selection: Selection,
    /// The requests of each measurement
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    requests: u64,
    /// The elevators beside `none`; all of the kernel and of the module by default
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "write")]
    elevators: Vec<String>,
    /// Further options of the kernel
    #[arg(long, value_name = "TEXT", default_value = "")]
    boot_options: String,
    /// Write the table to docs/kernel.md; for one kernel
    #[arg(long)]
    write: bool,
}

/// Measures the elevators of the kernel and of the module, one after the other, in one boot.
pub fn run(options: &Options) -> Result<()> {
    super::test::require_programs(architecture::BUILD, false, true)?;
    let session = Session::new("bench", 768, &options.boot_options)?.counting_instructions();
    for fetched in super::present(&options.selection.kernels()?, session.folder())? {
        println!("{}: {}", fetched.kernel.name, fetched.release);
        let built = build::build(&fetched, session.folder())?;
        let subject = plans::all();
        let mut elevators = vec!["none".to_owned()];
        if options.elevators.is_empty() {
            elevators = plans::OWN.map(str::to_owned).to_vec();
            elevators.extend(subject.elevators.iter().cloned());
        } else {
            elevators.extend(options.elevators.iter().cloned());
        }
        let choice = Choice { subject: Some(subject), elevators: elevators.clone(), full: true, seed: 1 };
        let boot = session.boot(&fetched, Some(&built.file), plans::cost(&choice, options.requests), false)?;
        if !boot.failures.is_empty() {
            bail!("{}\nthe logs are in {}", boot.failures.join("\n"), boot.directory.display());
        }
        let table = table(&elevators, &boot.counts);
        println!("{table}");
        if options.write {
            let text = format!(
                "Linux {}, {} requests of each:\n\n{table}",
                fetched.release,
                hoistway_units::figures::grouped(options.requests)
            );
            parts::put(PAGE, &[("cost", text)])?;
        }
    }
    Ok(())
}

/// The table: a row for each elevator, with the instructions of a request under each load, and how
/// many of them `none` does not need.
fn table(elevators: &[String], counts: &BTreeMap<String, Counts>) -> String {
    let figure = |load: &str, elevator: &str| counts.get(load).and_then(|counts| counts.get(elevator)).copied();
    let mut lines = vec![
        format!("| elevator | {} |", plans::COST_LOADS.map(|(name, _)| name).join(" | ")),
        format!("|---|{}", "---|".repeat(plans::COST_LOADS.len())),
    ];
    for elevator in elevators {
        let cells = plans::COST_LOADS.map(|(load, _)| match (figure(load, elevator), figure(load, "none")) {
            (Some(all), Some(_)) if elevator == "none" => format!("{all}"),
            (Some(all), Some(none)) => format!("{all} ({:+})", all as i64 - none as i64),
            _ => String::new(),
        });
        lines.push(format!("| `{elevator}` | {} |", cells.join(" | ")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_the_instructions_and_those_above_none() {
        let counts = |figure| Counts::from([("none".to_owned(), 5000), ("cfq".to_owned(), figure)]);
        let counts = plans::COST_LOADS.iter().map(|(name, _)| ((*name).to_owned(), counts(6200))).collect();
        let table = table(&["none".to_owned(), "cfq".to_owned()], &counts);
        assert!(table.contains("| `none` | 5000 | 5000 | 5000 |"), "{table}");
        assert!(table.ends_with("| `cfq` | 6200 (+1200) | 6200 (+1200) | 6200 (+1200) |"), "{table}");
    }
}
