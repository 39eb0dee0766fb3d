//! The table of control groups: a row per group, a column per elevator, in as many parts as the
//! terminal's width requires.

use std::ops::Range;

use anyhow::Result;
use comfy_table::Table;
use hoistway_sim::{Comparison, Run};

use crate::output::{self, Out, width};
use hoistway_units::figures::percent;

/// Prints the share of each group, if the jobs have groups.
pub fn print(comparison: &Comparison, out: &mut Out) -> Result<()> {
    let runs = &comparison.runs;
    if runs.first().is_none_or(|run| run.groups.is_empty()) {
        return Ok(());
    }
    for part in parts(runs.len(), |part| out.takes(width(&table(&runs[part])))) {
        out.line("")?;
        out.table(&mut table(&runs[part]))?;
    }
    out.line("")?;
    out.paragraph(
        0,
        "Each group's share, in percent, of all bytes that moved while all processes ran; subgroups are included. no groups: \
         the elevator treats all processes as one group.",
    )?;
    Ok(())
}

/// Splits `count` columns into parts that fit, each of at least one column.
pub fn parts(count: usize, fits: impl Fn(Range<usize>) -> bool) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    while start < count {
        let end = (start + 1..=count).rev().find(|end| *end == start + 1 || fits(start..*end)).unwrap_or(count);
        parts.push(start..end);
        start = end;
    }
    parts
}

fn table(runs: &[Run]) -> Table {
    let header = |run: &Run| format!("{}\n{}", run.elevator, if run.divides_by_groups { "" } else { "no groups" });
    let headers: Vec<String> =
        ["group\n".into(), "weight\n".into()].into_iter().chain(runs.iter().map(header)).collect();
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let mut table = output::table(&headers, 1);
    for (line, group) in runs.first().map_or(&[][..], |run| &run.groups).iter().enumerate() {
        // A group is below its parent and indented by one step.
        let depth = group.name.matches('/').count();
        let name = format!("{}{}", "  ".repeat(depth), group.name);
        let shares = runs.iter().map(|run| run.groups.get(line).map_or_else(String::new, |group| percent(group.share)));
        table.add_row([name, group.weight.to_string()].into_iter().chain(shares));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_do_not_fit_form_a_second_table() {
        assert_eq!(parts(5, |part| part.len() <= 2), [0..2, 2..4, 4..5]);
        assert_eq!(parts(3, |_| true).len(), 1);
        // A column that is too wide is a part of its own.
        assert_eq!(parts(3, |part| !part.contains(&1)), [0..1, 1..2, 2..3]);
        assert!(parts(0, |_| true).is_empty());
    }
}
