//! The table in the terminal: a row per elevator, the best value of each column marked.

use anyhow::Result;
use comfy_table::{Cell, Table};
use hoistway_compare::Judgement;
use hoistway_compare::columns::{Column, columns};
use hoistway_compare::legends::{self, BEST as MARK, STARVES};
use hoistway_sim::Comparison;

use crate::output::{self, Out, best, width};

/// The blank instead of a mark, which keeps other digits aligned.
const NO_MARK: &str = " ";

/// Prints the table and its legend, in two parts if the terminal is too narrow; `reference` is the
/// label of the single stream.
pub fn print(comparison: &Comparison, judgement: &Judgement, reference: &str, out: &mut Out) -> Result<()> {
    let columns = columns(comparison, judgement);
    let rows = Rows {
        names: comparison.runs.iter().map(|run| run.elevator.as_str()).collect(),
        starves: &judgement.starves,
        is_partial: comparison.is_partial,
    };
    let whole = rows.table(&columns);
    if out.takes(width(&whole)) {
        print_one(whole, out)?;
    } else {
        let (first, second) = columns.split_at(SPLIT);
        print_one(rows.table(first), out)?;
        out.line("")?;
        print_one(rows.table(second), out)?;
    }
    out.line("")?;
    out.paragraph(0, &legends::table(comparison, judgement, reference))?;
    Ok(())
}

/// First column of the second part if the table is split; the columns before it are throughput and
/// fairness.
const SPLIT: usize = 5;

/// The rows of the table.
struct Rows<'a> {
    names: Vec<&'a str>,
    starves: &'a [bool],
    /// True if runs ended at different times: none is the best then.
    is_partial: bool,
}

impl Rows<'_> {
    fn table(&self, columns: &[Column]) -> Table {
        let header: Vec<&str> =
            std::iter::once("\nelevator").chain(columns.iter().map(|column| column.header)).collect();
        let mut table = output::table(&header, 1);
        let bests: Vec<Option<usize>> =
            columns.iter().map(|column| column.best(self.starves).filter(|_| !self.is_partial)).collect();
        for (line, name) in self.names.iter().enumerate() {
            let cells = columns.iter().zip(&bests).map(|(column, marked)| match *marked == Some(line) {
                true => best(&format!("{}{MARK}", column.text(line))),
                false => Cell::new(format!("{}{NO_MARK}", column.text(line))),
            });
            let starves = self.starves.get(line).copied().unwrap_or(false);
            let name = if starves { format!("{name} {STARVES}") } else { (*name).to_owned() };
            table.add_row(std::iter::once(Cell::new(name)).chain(cells));
        }
        // The column of the mark already separates columns.
        let last = columns.len();
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, u16::from(index != last)));
        }
        table
    }
}

fn print_one(mut table: Table, out: &mut Out) -> Result<()> {
    Ok(out.table(&mut table)?)
}
