//! `hoistway advise`: reads arguments, runs `hoistway_advise`, and prints text, JSON or a page.

mod apply;
mod overview;
mod render;
mod request;
mod tune;

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use hoistway_advise::{AdviceReport, AdviseError, Answer, AnswerOptions, Case, ChangePlan, advice_page};
use hoistway_report::ReportFile;
use serde::Serialize;

use crate::cli::AdviseArgs;
use crate::failure::{Exit, Interrupted, print_message};
use crate::interrupt;
use crate::output::Out;
use crate::progress::Bar;
use request::{CaseOrRefusal, subject};

pub use request::trace_error;

/// Runs the command.
pub fn run(args: &AdviseArgs, out: &mut Out) -> Result<Exit> {
    apply::check(args)?;
    request::check_reading(args)?;
    let subject = args.device.as_deref().map(|name| subject(args, name)).transpose()?;
    if args.use_.is_none() && args.job.is_none() && args.trace.is_none() {
        return overview::run(args, subject, out);
    }
    let report = args.report.as_deref().map(ReportFile::new).transpose()?;
    let cancel = interrupt::watch()?;
    let case = match request::case(args, subject, &cancel)? {
        CaseOrRefusal::Case(case) => *case,
        CaseOrRefusal::Refused(refusal) => {
            print_message(&refusal);
            return Ok(Exit::Failed);
        }
    };
    if args.tune {
        return tune::run(args, &case, report.as_ref(), &cancel, out);
    }
    let answer = answer(args, &case, &cancel)?;
    let plan = ChangePlan::new(&case, answer.chosen());
    if let Some(report) = &report {
        report.write(&hoistway_report::sheet_page(&advice_page(&case, &answer, &plan))?, &cancel)?;
    }
    if args.json {
        print_json(&AdviceReport::new(&case, &answer, &plan), out)?;
    } else {
        render::advice(&case, &answer, &plan, out)?;
        if let Some(path) = &args.report {
            out.line("")?;
            out.line(format_args!("The page is in {}.", path.display()))?;
        }
    }
    apply::run(args, &case, &plan, answer.advice.verdict, out)
}

fn answer(args: &AdviseArgs, case: &Case, cancel: &AtomicBool) -> Result<Answer> {
    let bar = Bar::new(1000, "simulating");
    let progress = |finished: usize, all: usize| bar.set(finished as u64 * 1000 / all.max(1) as u64);
    let options = AnswerOptions { seeds: args.seeds, seed: args.seed, all_schedulers: args.all };
    let answer = Answer::of(case, options, &progress, cancel).map_err(simulation_error);
    bar.clear();
    answer
}

/// Prints a report with the keys of each object in alphabetical order.
fn print_json(report: &impl Serialize, out: &mut Out) -> Result<()> {
    out.json(&serde_json::to_value(report)?)
}

/// Converts an error of a simulation, so that a cancelled one ends as an interrupted command.
fn simulation_error(error: AdviseError) -> anyhow::Error {
    if error.is_cancelled() { Interrupted.into() } else { error.into() }
}
