//! The table of a comparison over several seeds.

use anyhow::Result;
use comfy_table::Cell;
use hoistway_advise::Spread;
use hoistway_advise::compare::legends::{self, BEST as MARK, CHANCE, STARVES};
use hoistway_advise::compare::{Measure, SeededComparison, SeededMeasure};
use hoistway_units::figures::figure;

use super::table::ms;
use crate::output::{self, Out, best};

/// Prints means and intervals of each elevator, and its legend.
pub fn print(seeded: &SeededComparison, out: &mut Out) -> Result<()> {
    let headers: Vec<&str> = ["elevator"].into_iter().chain(Measure::ALL.map(Measure::heading)).collect();
    let mut table = output::table(&headers, 1);
    for run in &seeded.elevators {
        let name = if run.starves > 0 { format!("{} {STARVES}", run.name) } else { run.name.clone() };
        let cells = run.measures.iter().map(|measure| cell(measure, run.starves > 0));
        table.add_row(std::iter::once(Cell::new(name)).chain(cells));
    }
    out.table(&mut table)?;
    out.line("")?;
    out.paragraph(0, &legends::seeds(seeded))?;
    Ok(())
}

/// "73.9 +-2 %*".
fn cell(measured: &SeededMeasure, starves: bool) -> Cell {
    let Spread { mean, plus_minus, .. } = measured.spread;
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
