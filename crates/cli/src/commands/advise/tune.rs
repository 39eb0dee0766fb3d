//! `hoistway advise --tune`: a search over tunables.

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;
use hoistway_advise::facts::kind_of;
use hoistway_advise::tune::{Progress, Space};
use hoistway_advise::{TuneRequest, Tuned, Verdict, told, tune};
use hoistway_core::Kind;

use super::apply::{self, Plan};
use super::case::Case;
use super::{failed, json, page, tell, usage};
use crate::cli::AdviseArgs;
use crate::commands::compare::WholeFile;
use crate::failure::{Exit, tell as tell_on_stderr};
use crate::names::did_you_mean;
use crate::output::{Out, table, wrap};
use crate::progress::Bar;

/// How long a search takes unless something is said.
const SECONDS: u64 = 60;
/// Rows of the front that are printed.
const FRONT_ROWS: usize = 12;

/// Searches and tells.
pub fn run(
    args: &AdviseArgs,
    case: &Case,
    report: Option<&WholeFile>,
    cancel: &AtomicBool,
    out: &mut Out,
) -> Result<Exit> {
    let request = TuneRequest {
        bench: case.bench.clone(),
        now: case.now.clone(),
        spaces: spaces(args, case)?,
        objective: case.objective.clone(),
        seed: args.seed,
        evaluations: args.evaluations.map(|most| most as usize),
    };
    let tuned = search(args, &request, cancel)?;
    let plan = match tuned.verdict {
        Verdict::Change => Plan::new(case, &tuned.winner),
        Verdict::Leave => Plan::new(case, &case.now),
    };
    if let Some(report) = report {
        report.write(&hoistway_report::sheet_page(&page::tuned(case, &tuned, &plan))?, cancel)?;
    }
    if args.json {
        out.json(&json::tuned(case, &tuned, &plan))?;
    } else {
        print(args, case, &tuned, &plan, out)?;
    }
    apply::run(args, case, &plan, tuned.verdict, out)
}

fn search(args: &AdviseArgs, request: &TuneRequest, cancel: &AtomicBool) -> Result<Tuned> {
    let begun = Instant::now();
    let seconds = args.seconds.or(args.evaluations.is_none().then_some(SECONDS));
    let is_over = || seconds.is_some_and(|seconds| begun.elapsed() >= Duration::from_secs(seconds));
    let length = seconds.map_or_else(|| request.evaluations.unwrap_or(1) as u64, |seconds| seconds * 10);
    let bar = Bar::new(length, "searching");
    let figure = request.objective.goals[0].figure.clone();
    let last = Cell::new(0);
    let tell = |progress: Progress| {
        let steps = match seconds {
            Some(_) => begun.elapsed().as_millis() as u64 / 100,
            None => progress.evaluations as u64,
        };
        bar.set(steps.min(length));
        if let (Some((name, mean)), true) = (progress.best, progress.evaluations != last.get()) {
            last.set(progress.evaluations);
            bar.say(&format!(
                "{}: {} tried, best {figure} {} by {name}",
                progress.stage,
                progress.evaluations,
                told(mean.abs(), figure.what.unit())
            ));
        }
    };
    let tuned = tune(request, &is_over, &tell, cancel).map_err(failed);
    bar.clear();
    tuned
}

/// What is searched: all tunables of all that can be set, or what was named.
fn spaces(args: &AdviseArgs, case: &Case) -> Result<Vec<Space>> {
    if args.tunables.is_empty() {
        return Ok(case.candidates.iter().map(|kind| Space::of(*kind)).collect());
    }
    let mut named: Vec<(Kind, Option<Vec<String>>)> = Vec::new();
    let mut queue = Vec::new();
    for word in &args.tunables {
        let word = word.trim();
        if ["read_ahead_kb", "nr_requests", "queue_depth"].contains(&word) {
            queue.push(word);
            continue;
        }
        let (scheduler, tunable) = word.split_once('.').map_or((word, None), |(name, tunable)| (name, Some(tunable)));
        let kind = candidate(case, scheduler)?;
        let place = named.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
            named.push((kind, Some(Vec::new())));
            named.len() - 1
        });
        match tunable {
            None => named[place].1 = None,
            Some(tunable) => {
                check_tunable(kind, scheduler, tunable)?;
                if let Some(names) = &mut named[place].1 {
                    names.push(tunable.to_owned());
                }
            }
        }
    }
    if named.is_empty() {
        named = case.candidates.iter().map(|kind| (*kind, Some(Vec::new()))).collect();
    }
    if case.recorded.is_some() && queue.iter().any(|word| *word != "queue_depth") {
        return Err(usage(
            "read_ahead_kb and nr_requests cannot be searched for a trace: requests are taken as they were recorded, below both",
        ));
    }
    let spaces = named.into_iter().map(|(kind, names)| {
        let space = Space::of(kind);
        let space = match names {
            Some(names) => space.only(&names.iter().map(String::as_str).collect::<Vec<_>>()),
            None => space,
        };
        queue.iter().fold(space, |space, word| with_queue(space, word, case))
    });
    Ok(spaces.collect())
}

fn with_queue(space: Space, word: &str, case: &Case) -> Space {
    let host = &case.bench.host;
    let own = hoistway_drive::describe(&case.bench.profile).depth;
    let depth = host.depth_max.map_or(own, |most| most.min(own));
    match word {
        "read_ahead_kb" => space.with_read_ahead(host.read_ahead_kib),
        "nr_requests" => {
            let usual = depth.clamp(32, 128) * 2;
            let now = if host.pool_follows_drive { usual } else { host.queue.nr_requests.unwrap_or(usual) };
            space.with_requests(u64::from(now))
        }
        _ => space.with_depth(u64::from(depth)),
    }
}

fn candidate(case: &Case, name: &str) -> Result<Kind> {
    let known = || case.candidates.iter().map(|kind| hoistway_advise::scheduler_name(*kind));
    let there = known().collect::<Vec<_>>().join(", ");
    kind_of(name).filter(|kind| case.candidates.contains(kind)).ok_or_else(|| {
        usage(format!(
            "--tunables: `{name}` is no scheduler that could be set{}; there are {there}, and read_ahead_kb, nr_requests and queue_depth of the queue",
            did_you_mean(name, known())
        ))
    })
}

fn check_tunable(kind: Kind, scheduler: &str, tunable: &str) -> Result<()> {
    let space = Space::of(kind);
    let names: Vec<&str> = space.ladders.iter().filter_map(|(what, ..)| what.tunable()).map(|row| row.name).collect();
    if names.contains(&tunable) {
        return Ok(());
    }
    let there = if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
    Err(usage(format!(
        "--tunables: {scheduler} has no tunable `{tunable}` that could be searched{}; {there}",
        did_you_mean(tunable, names.iter().copied())
    )))
}

fn print(args: &AdviseArgs, case: &Case, tuned: &Tuned, plan: &Plan, out: &mut Out) -> Result<()> {
    tell::heading(case, out)?;
    out.paragraph(0, &format!("{} things were tried; the search {}.", tuned.tried.len(), began_anew(tuned.restarts)))?;
    if args.evaluations.is_none() {
        out.paragraph(
            0,
            &format!("--evaluations {} --seed {} tries the same on any machine.", tuned.tried.len(), args.seed),
        )?;
    }
    out.line("")?;
    front(tuned, out)?;
    out.line("")?;
    for line in wrap(&verdict(tuned), 0, out.columns()) {
        out.heading(line)?;
    }
    reasons(tuned).iter().try_for_each(|text| out.paragraph(2, text))?;
    let confidence = case.confidence();
    out.paragraph(
        2,
        &format!("Confidence {}: {}.", super::confidence::word(confidence.level), confidence.reasons.join("; ")),
    )?;
    plan.print(out)?;
    let warnings: Vec<_> = case.subject.iter().flat_map(|subject| &subject.warnings).collect();
    if !warnings.is_empty() {
        out.line("")?;
        out.heading("To be known")?;
        warnings.iter().try_for_each(|warning| out.paragraph(2, &format!("- {}", warning.text)))?;
    }
    if let Some(path) = &args.report {
        out.line("")?;
        out.line(format_args!("The page is in {}.", path.display()))?;
    }
    case.notes.iter().for_each(|note| tell_on_stderr(&format!("note: {note}")));
    Ok(())
}

/// What nothing else is better than in both figures.
fn front(tuned: &Tuned, out: &mut Out) -> Result<()> {
    let (goal, other) = (&tuned.figures[0], &tuned.figures[tuned.other]);
    out.heading(format_args!("Nothing that was tried is better in both of {goal} and {other}"))?;
    let (goal_head, other_head) = (goal.to_string(), other.to_string());
    let mut rows = table(&["what", &goal_head, &other_head, "constraints"], 1);
    let step = tuned.front.len().div_ceil(FRONT_ROWS).max(1);
    for place in tuned.front.iter().step_by(step) {
        let tried = &tuned.tried[*place];
        let keeps = if tried.score.violation > 0.0 { "broken" } else { "kept" };
        rows.add_row([
            tried.choice.name(),
            told(tried.spreads[0].mean, goal.what.unit()),
            told(tried.spreads[tuned.other].mean, other.what.unit()),
            keeps.to_owned(),
        ]);
    }
    out.table(&mut rows)?;
    if let Some(text) = behind_the_front(tuned) {
        out.line("")?;
        out.paragraph(0, &text)?;
    }
    if step > 1 {
        out.line(format_args!(
            "({} of {} shown; --json and --report have them all)",
            tuned.front.len().div_ceil(step),
            tuned.front.len()
        ))?;
    }
    Ok(())
}

/// The verdict in a line.
pub fn verdict(tuned: &Tuned) -> String {
    let goal = &tuned.figures[0];
    let mean = |place: usize| told(tuned.spreads[place][0].mean, goal.what.unit());
    match tuned.verdict {
        Verdict::Change => format!("Set {}: {goal} is {} instead of {}.", tuned.winner.name(), mean(0), mean(1)),
        Verdict::Leave if !tuned.keeps => {
            "Leave it as it is: nothing that was found keeps to the constraints on other seeds.".into()
        }
        Verdict::Leave => format!(
            "Leave it as it is: {goal} is {} with the best that was found and {} now, which could be chance or is too little.",
            mean(0),
            mean(1)
        ),
    }
}

/// How far luck went, and what tuning is worth beside choosing.
pub fn reasons(tuned: &Tuned) -> Vec<String> {
    let goal = &tuned.figures[0];
    let mut reasons = vec![format!(
        "On the seeds of the search {goal} changes by {}; on other seeds, by which nothing was chosen, by {}.",
        tell::change(&tuned.found),
        tell::change(&tuned.holds)
    )];
    if !tuned.winner.is_plain() {
        reasons.push(format!(
            "Against {} with its defaults it is {}{}.",
            hoistway_advise::scheduler_name(tuned.winner.kind),
            tell::change(&tuned.against_defaults),
            if tuned.against_defaults.is_told {
                ""
            } else {
                ", which cannot be told from chance: the defaults do as well"
            }
        ));
    }
    reasons
}

fn began_anew(count: usize) -> String {
    match count {
        0 => "never had to begin anew".into(),
        1 => "began anew once".into(),
        count => format!("began anew {count} times"),
    }
}

/// Why what is advised does not stand on the front, where it does not.
pub fn behind_the_front(tuned: &Tuned) -> Option<String> {
    let is_there = |place: &usize| tuned.tried[*place].choice == tuned.winner;
    (tuned.verdict == Verdict::Change && !tuned.front.iter().any(is_there)).then(|| {
        format!(
            "These figures are of the few seeds of the search, where luck has its part; {} is not among these, and did best of the best on other seeds.",
            tuned.winner.name()
        )
    })
}
