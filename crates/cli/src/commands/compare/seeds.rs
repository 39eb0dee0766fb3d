//! The table of a comparison over several seeds.

use anyhow::Result;
use comfy_table::{Cell, Table};
use hoistway_compare::Spread;
use hoistway_compare::columns::ms;
use hoistway_compare::legends::{self, BEST as MARK, CHANCE, STARVES};
use hoistway_compare::{Measure, SeededComparison, SeededMeasure, SeededRun};
use hoistway_units::figures::figure;

use crate::output::{self, Out, best, width};

/// Prints means and intervals of each elevator, and its legend.
pub fn print(seeded: &SeededComparison, out: &mut Out) -> Result<()> {
    let mut whole = table(seeded, |_| true);
    let has_syncs =
        seeded.elevators.iter().flat_map(|run| &run.measures).any(|measured| measured.measure.is_of_syncs());
    if has_syncs && !out.takes(width(&whole)) {
        out.table(&mut table(seeded, |measure| !measure.is_of_syncs()))?;
        out.line("")?;
        whole = table(seeded, Measure::is_of_syncs);
    }
    out.table(&mut whole)?;
    out.line("")?;
    out.paragraph(0, &legends::seeds(seeded))?;
    Ok(())
}

/// The table of the measures for which `shows` returns true.
fn table(seeded: &SeededComparison, shows: fn(Measure) -> bool) -> Table {
    let headings = seeded.elevators.first().into_iter().flat_map(|run| shown(run, shows));
    let headings = headings.map(|measured| measured.measure.heading());
    let headers: Vec<&str> = ["elevator"].into_iter().chain(headings).collect();
    let mut table = output::table(&headers, 1);
    for run in &seeded.elevators {
        let name = if run.starves > 0 { format!("{} {STARVES}", run.name) } else { run.name.clone() };
        let cells = shown(run, shows).map(|measured| cell(measured, run.starves > 0));
        table.add_row(std::iter::once(Cell::new(name)).chain(cells));
    }
    table
}

fn shown(run: &SeededRun, shows: fn(Measure) -> bool) -> impl Iterator<Item = &SeededMeasure> {
    run.measures.iter().filter(move |measured| shows(measured.measure))
}

/// "73.9 +-2 %*".
fn cell(measured: &SeededMeasure, starves: bool) -> Cell {
    let Spread { mean, plus_minus, .. } = measured.spread;
    if mean.is_infinite() {
        // No sync completed with some seed.
        return Cell::new("- ");
    }
    let value = match measured.measure {
        Measure::BytesPerS | Measure::SlowestBytesPerS => figure(mean / 1e6),
        _ => ms(mean),
    };
    let part = if mean == 0.0 { 0.0 } else { plus_minus / mean * 100.0 };
    let spread = if part < 9.95 { format!("{part:.1}") } else { format!("{part:.0}") };
    let text = format!("{value} +-{spread} %");
    match (measured.is_chance, measured.against_best.is_none()) {
        (true, _) => Cell::new(format!("{text}{CHANCE}")),
        (false, true) if !starves => best(&format!("{text}{MARK}")),
        _ => Cell::new(format!("{text} ")),
    }
}
