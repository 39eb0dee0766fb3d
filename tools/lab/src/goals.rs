//! Goals of measurements, shared by the tasks that measure.

use std::fmt::Write;

use anyhow::{Result, bail};
use hoistway_units::figures;

/// A goal with its measured value.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    pub text: String,
    pub found: String,
    /// Whether the goal is reached; `None` if it could not be measured.
    pub holds: Option<bool>,
}

impl Goal {
    /// Creates a measured goal.
    pub fn found(text: &str, found: String, holds: bool) -> Goal {
        Goal { text: text.to_owned(), found, holds: Some(holds) }
    }

    /// Creates a goal that could not be measured, with the reason.
    pub fn not_measured(text: &str, why: &str) -> Goal {
        Goal { text: text.to_owned(), found: why.to_owned(), holds: None }
    }
}

/// Returns an error that names all goals that were missed or not measured, if there are any.
pub fn judge(goals: &[Goal]) -> Result<()> {
    let word = |goal: &Goal| if goal.holds.is_none() { "not measured" } else { "missed" };
    let failed: Vec<String> = goals
        .iter()
        .filter(|goal| goal.holds != Some(true))
        .map(|goal| format!("{}: {} ({})", word(goal), goal.text, goal.found))
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{} of {} goals:\n  {}", failed.len(), goals.len(), failed.join("\n  "))
}

/// Appends a table of goals with their measured values.
pub fn goal_rows(text: &mut String, goals: &[Goal]) {
    if goals.is_empty() {
        return;
    }
    text.push_str("| goal | found | met |\n|---|---|---|\n");
    for goal in goals {
        let word = match goal.holds {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "**not measured**",
        };
        let _ = writeln!(text, "| {} | {} | {word} |", goal.text, goal.found);
    }
}

/// Formats a figure as an integer with commas between groups of three digits.
pub fn grouped(figure: f64) -> String {
    figures::grouped(figure.round_ties_even() as u64)
}
