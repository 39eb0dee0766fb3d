//! The table of `hoistway reproduce`.

use anyhow::Result;
use comfy_table::{Cell, Color};
use hoistway_reproduce::{RowResult, Summary, Verdict};

use crate::output::{self, Out};

/// Prints a line per row, the reasons of rows that are not reproduced, and the summary.
pub fn print(results: &[RowResult], out: &mut Out) -> Result<()> {
    let mut table = output::table(&["id", "published", "ours", "tolerance", "verdict"], 5);
    for result in results {
        table.add_row(vec![
            Cell::new(&result.row.id),
            Cell::new(result.published_text()),
            Cell::new(result.measured_text()),
            Cell::new(result.tolerance_text()),
            verdict(result),
        ]);
    }
    out.table(&mut table)?;
    out.line("")?;
    for result in results {
        let why = result.why();
        if !why.is_empty() && result.verdict != Verdict::Input {
            out.paragraph(0, &format!("{} ({}): {why}.", result.row.id, result.row.what))?;
        }
    }
    out.line("")?;
    out.paragraph(0, &Summary::new(results).text())?;
    Ok(())
}

fn verdict(result: &RowResult) -> Cell {
    let text = result.verdict_text();
    let colour = match result.verdict {
        Verdict::Reproduced => return output::best(&text),
        Verdict::Differs => Color::Red,
        Verdict::NotReproducible => Color::Yellow,
        Verdict::Input => Color::DarkGrey,
    };
    Cell::new(text).fg(colour)
}
