//! Advice as text.

use anyhow::Result;
use hoistway_advise::wording::{broken, cell, facts, name, reasons, verdict};
use hoistway_advise::{Advice, Answer, Case, ChangePlan};
use hoistway_compare::scheduler_name;
use hoistway_machine::{MODULE, MODULE_ELEVATORS};

use super::apply;
use crate::failure::print_message;
use crate::output::{Out, best, table, width, wrap};

/// Prints device, workload, objective, drive and host.
pub fn heading(case: &Case, out: &mut Out) -> Result<()> {
    match &case.subject {
        Some(subject) => {
            out.heading(format_args!("Advice for {}", subject.line()))?;
            if let Some(named) = &subject.named {
                let alike: Vec<&str> = subject.alike.iter().map(|device| device.name.as_str()).collect();
                let alike = match alike.as_slice() {
                    [] => String::new(),
                    alike => format!(" (and for {}, which is below it as well)", alike.join(", ")),
                };
                out.paragraph(0, &format!("{} is on {}: that queue counts{alike}.", named.name, subject.device.name))?;
            }
        }
        None => out.heading(format_args!("Advice for a drive like {}", case.bench.profile.name()))?,
    }
    out.line("")?;
    for (label, value) in facts(case) {
        let mut lines = wrap(&value, 0, out.columns().saturating_sub(11)).into_iter();
        out.line(format_args!("{label:<10} {}", lines.next().unwrap_or_default()))?;
        lines.try_for_each(|line| out.line(format_args!("{:10} {line}", "")))?;
    }
    out.line("")?;
    Ok(())
}

/// Prints the whole answer.
pub fn advice(case: &Case, answer: &Answer, plan: &ChangePlan, out: &mut Out) -> Result<()> {
    heading(case, out)?;
    let advice = &answer.advice;
    print_choices(advice, out)?;
    out.line("")?;
    for line in wrap(&verdict(case, answer), 0, out.columns()) {
        out.heading(line)?;
    }
    for paragraph in reasons(case, answer) {
        out.paragraph(2, &paragraph)?;
    }
    let confidence = case.confidence();
    out.paragraph(2, &format!("Confidence {}: {}.", confidence.level.name(), confidence.reasons.join("; ")))?;
    apply::print(plan, out)?;
    let warnings = answer.warnings(case);
    if !warnings.is_empty() {
        out.line("")?;
        out.heading("To be known")?;
        warnings.iter().try_for_each(|warning| out.paragraph(2, &format!("- {warning}")))?;
    }
    case.notes.iter().for_each(|note| print_message(&format!("note: {note}")));
    Ok(())
}

/// Prints the choices and their figures.
fn print_choices(advice: &Advice, out: &mut Out) -> Result<()> {
    let heads: Vec<String> = advice.figures.iter().map(ToString::to_string).collect();
    let head: Vec<&str> = ["", "scheduler"].into_iter().chain(heads.iter().map(String::as_str)).collect();
    let make = |with_spread: bool| {
        let mut rows = table(&head, 2);
        for (index, judged) in advice.judged.iter().enumerate() {
            let mark = if index == advice.chosen { ">" } else { "" };
            let name = name(advice, index);
            let cells =
                judged.spreads.iter().zip(&advice.figures).map(|(spread, figure)| cell(spread, figure, with_spread));
            let mut row = vec![mark.into(), if index == advice.chosen { best(&name) } else { name.into() }];
            row.extend(cells.map(Into::into));
            rows.add_row(row);
        }
        rows
    };
    let mut full = make(true);
    if out.takes(width(&full)) {
        out.table(&mut full)?
    } else {
        out.table(&mut make(false))?
    }
    let broken = broken(advice);
    if !broken.is_empty() {
        out.line("")?;
        broken.iter().try_for_each(|line| out.paragraph(0, line))?;
    }
    if advice.judged.iter().any(|judged| !judged.can_be_set) {
        out.paragraph(
            0,
            "In brackets: schedulers that the kernel does not offer now, for comparison; they cannot be set.",
        )?;
        let offered: Vec<&str> = advice
            .judged
            .iter()
            .filter(|judged| !judged.can_be_set)
            .map(|judged| scheduler_name(judged.choice.kind))
            .filter(|name| MODULE_ELEVATORS.contains(name))
            .collect();
        if !offered.is_empty() {
            let text = format!("The kernel module {MODULE} would offer {}: docs/kernel.md.", offered.join(", "));
            out.paragraph(0, &text)?;
        }
    }
    Ok(())
}
