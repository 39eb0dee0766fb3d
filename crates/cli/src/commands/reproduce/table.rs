//! The table of `hoistway reproduce`.

use anyhow::Result;
use comfy_table::{Cell, Color};
use hoistway_sim::published::{RowResult, Verdict};

use super::{Summary, ours, published, tolerance};
use crate::output::{self, Out};

/// Prints a line a row, why rows are not reproduced, and the summary.
pub fn print(outcomes: &[RowResult], out: &mut Out) -> Result<()> {
    let mut table = output::table(&["id", "published", "ours", "tolerance", "verdict"], 5);
    for outcome in outcomes {
        table.add_row(vec![
            Cell::new(&outcome.row.id),
            Cell::new(published(outcome)),
            Cell::new(ours(outcome)),
            Cell::new(tolerance(outcome)),
            verdict(outcome.verdict),
        ]);
    }
    out.table(&mut table)?;
    out.line("")?;
    for outcome in outcomes {
        let why = outcome.why();
        if !why.is_empty() && outcome.verdict != Verdict::Input {
            out.paragraph(0, &format!("{} ({}): {why}.", outcome.row.id, outcome.row.what))?;
        }
    }
    out.line("")?;
    out.paragraph(0, &Summary::new(outcomes).text())?;
    Ok(())
}

fn verdict(verdict: Verdict) -> Cell {
    let colour = match verdict {
        Verdict::Reproduced => return output::best(verdict.name()),
        Verdict::Differs => Color::Red,
        Verdict::NotReproducible => Color::Yellow,
        Verdict::Input => Color::DarkGrey,
    };
    Cell::new(verdict.name()).fg(colour)
}
