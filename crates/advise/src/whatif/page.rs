//! Predictions as a page.

use hoistway_report::{ComparePage, Fact};
use hoistway_sim::Comparison;
use hoistway_units::figures::magnitude;

use super::error_table::fidelity_table;
use super::fidelity::Confidence;
use super::report::validation;
use super::wording::{host, rule, sentence, title};
use crate::trace_case::{ModelBasis, TraceCase};
use hoistway_compare::Judgement;

/// The page of `compare` with the error of the model.
pub fn whatif_page(case: &TraceCase, comparison: &Comparison, confidence: &Confidence) -> ComparePage {
    let settings: Vec<String> = case.machine.settings.iter().map(|setting| setting.text().to_owned()).collect();
    let drive = hoistway_drive::describe(&case.machine.profile).what;
    let judgement = Judgement::of(comparison);
    let mut page = hoistway_compare::page(comparison, &judgement, &case.name, &drive, &host(&case.machine), &settings);
    page.command = "hoistway trace whatif".to_owned();
    page.title = format!("{} under other elevators", case.name);
    page.subtitle = match &case.basis {
        ModelBasis::Validated { recorded_under, .. } => format!(
            "{} elevators, predicted from a trace recorded under {}",
            comparison.runs.len(),
            recorded_under.info().name
        ),
        ModelBasis::Unvalidated(_) => {
            format!("{} elevators, predicted from submissions alone: {}", comparison.runs.len(), validation(false))
        }
    };
    // Process ids distinguish processes of the same name.
    let run = comparison.runs.first().map_or(&[][..], |run| &run.processes);
    for (name, process) in page.processes.iter_mut().zip(run) {
        *name = title(&process.name, process.pid);
    }
    // Each process of the trace is a job.
    for (job, process) in page.jobs.iter_mut().zip(run) {
        job.name = title(&process.name, process.pid);
    }
    if let Some(fact) = page.facts.iter_mut().find(|fact| fact.label == "job file") {
        fact.label = "trace".into();
    }
    let fact = |label: &str, value: String| Fact { label: label.to_owned(), value };
    match &case.basis {
        ModelBasis::Validated { fidelity, .. } => {
            page.facts.push(fact("error of the model", format!("{} at most", magnitude(fidelity.miss()))));
            page.tables.push(fidelity_table(fidelity));
        }
        ModelBasis::Unvalidated(of) => {
            page.verdict = format!("Predicted, {}: {}", validation(false), page.verdict);
            page.facts.push(fact("validation", format!("{}: {}", validation(false), of.why)));
            page.facts.push(fact("loop", of.loop_model.name().to_owned()));
        }
    }
    page.facts.push(fact("confidence", confidence.level.name().to_owned()));
    match &case.basis {
        ModelBasis::Validated { .. } => {
            let rules = case.model.findings();
            let rules = rules.map(|(process, finding)| {
                format!("{} waits for {}.", title(&process.name, process.pid), rule(finding))
            });
            page.notes.extend(rules);
        }
        ModelBasis::Unvalidated(of) => {
            page.notes.extend(of.assumptions.iter().map(|assumption| format!("Assumed: {assumption}.")));
        }
    }
    page.notes.extend(confidence.reasons.iter().map(|reason| sentence(reason)));
    page.notes.extend(case.notes.iter().map(|note| sentence(note)));
    page
}
