//! The answer as JSON; docs/advise.md has the fields.

use hoistway_advise::{Advice, Change, Difference, Figure, Judged, Spread, Tuned, Unit};
use serde::Serialize;
use serde_json::{Value, json};

use super::apply::Plan;
use super::case::Case;
use super::{Answer, tell};

/// The version of the documents' form.
const SCHEMA: u32 = 1;

/// A figure of a choice.
#[derive(Serialize)]
struct Told<'a> {
    figure: String,
    unit: &'static str,
    #[serde(flatten)]
    spread: &'a Spread,
    against_now: &'a Difference,
}

fn unit(figure: &Figure) -> &'static str {
    match figure.what.unit() {
        Unit::Time => "ns",
        Unit::Rate => "bytes/s",
        Unit::Number => "",
    }
}

fn judged(advice: &Advice, judged: &Judged) -> Value {
    let figures = advice.figures.iter().zip(&judged.spreads).zip(&judged.against_now);
    let figures: Vec<Told<'_>> = figures
        .map(|((figure, spread), against_now)| Told {
            figure: figure.to_string(),
            unit: unit(figure),
            spread,
            against_now,
        })
        .collect();
    let broken: Vec<String> = judged.broken.iter().map(ToString::to_string).collect();
    let mut value = choice(&judged.choice);
    value["can_be_set"] = judged.can_be_set.into();
    value["breaks"] = broken.into();
    value["figures"] = json!(figures);
    value
}

fn choice(choice: &hoistway_advise::Choice) -> Value {
    let tunables: serde_json::Map<String, Value> =
        choice.tunables.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    json!({
        "name": choice.name(),
        "scheduler": hoistway_advise::scheduler_name(choice.kind),
        "tunables": tunables,
        "read_ahead_kb": choice.read_ahead_kib,
        "nr_requests": choice.nr_requests,
        "queue_depth": choice.queue_depth,
    })
}

/// What was asked, on what.
fn asked(case: &Case) -> Value {
    let device = case.subject.as_ref().map(|subject| {
        let named = subject.named.as_ref().map(|named| named.name.clone());
        let alike: Vec<&str> = subject.alike.iter().map(|device| device.name.as_str()).collect();
        json!({ "name": subject.device.name, "line": subject.line(), "named": named, "alike": alike })
    });
    let host = &case.bench.host;
    let recorded = case.recorded.as_ref().map(|recorded| {
        json!({ "under": hoistway_advise::scheduler_name(recorded.under), "miss": recorded.fidelity.miss(), "confidence": recorded.confidence })
    });
    json!({
        "schema": SCHEMA,
        "device": device,
        "workload": { "what": case.workload, "kind": case.kind, "recorded": recorded },
        "objective": { "text": case.objective.text, "merit": case.merit, "goals": case.objective.goals, "constraints": case.objective.constraints },
        "drive": { "profile": case.bench.profile.name(), "why": case.drive.why, "standing": case.drive.standing },
        "host": {
            "kernel": case.bench.kernel().map(|kernel| kernel.name()),
            "cpus": host.cpus,
            "page_cache_mib": host.page_cache_mib,
            "read_ahead_kib": host.read_ahead_kib,
            "depth_max": host.depth_max,
        },
        "now": choice(&case.now),
        "now_is_set": case.now_is_set,
        "not_offered": case.missing,
        "confidence": case.confidence(),
        "notes": case.notes,
    })
}

fn commands(plan: &Plan) -> Value {
    let rules: Vec<Value> = plan
        .rules
        .iter()
        .map(|rule| match rule {
            Ok(rule) => json!({ "path": rule.path, "text": rule.text }),
            Err(why) => json!({ "none": why }),
        })
        .collect();
    json!({ "set": plan.commands(), "for_good": plan.for_good(), "back": plan.way_back(), "assignments": plan.words, "rules": rules })
}

/// The advice.
pub fn advice(case: &Case, answer: &Answer, plan: &Plan) -> Value {
    let advice = &answer.advice;
    let mut value = asked(case);
    let checked = advice.checked.as_ref().map(|checked| {
        let figures = advice.figures.iter().zip(&checked.spreads).zip(&checked.against_now);
        let figures: Vec<Told<'_>> = figures
            .map(|((figure, spread), against_now)| Told { figure: figure.to_string(), unit: unit(figure), spread, against_now })
            .collect();
        json!({ "choice": advice.judged[checked.choice].choice.name(), "seeds": checked.seeds, "holds": checked.holds, "figures": figures })
    });
    let depth = answer.depth.as_ref().map(|depth| {
        let best = depth.advice.judged[depth.advice.chosen].choice.name();
        json!({ "depth": depth.depth, "apart_at_depth": depth.apart[0], "apart_at_one": depth.apart[1], "verdict_at_one": depth.advice.verdict, "best_at_one": best })
    });
    let changes: &[Change] = &advice.changes;
    value["verdict"] = json!(advice.verdict);
    value["advice"] = json!(choice(answer.chosen()));
    value["because"] = json!(advice.because);
    value["why"] = json!(advice.why);
    value["changes"] = json!(changes);
    value["seeds"] = json!(advice.seeds);
    value["checked"] = json!(checked);
    value["depth"] = json!(depth);
    value["choices"] = advice.judged.iter().map(|of| judged(advice, of)).collect();
    value["commands"] = commands(plan);
    value["warnings"] = json!(tell::warnings(case, answer));
    value
}

/// What a search found.
pub fn tuned(case: &Case, tuned: &Tuned, plan: &Plan) -> Value {
    let mut value = asked(case);
    let spreads = |spreads: &[Spread]| -> Vec<Value> {
        let figures = tuned.figures.iter().zip(spreads);
        figures
            .map(|(figure, spread)| json!({ "figure": figure.to_string(), "unit": unit(figure), "mean": spread.mean, "plus_minus": spread.plus_minus, "min": spread.min, "max": spread.max }))
            .collect()
    };
    let tried = |place: &usize| {
        let tried = &tuned.tried[*place];
        let mut value = choice(&tried.choice);
        value["figures"] = spreads(&tried.spreads).into();
        value["violation"] = tried.score.violation.into();
        value
    };
    let all: Vec<usize> = (0..tuned.tried.len()).collect();
    value["verdict"] = json!(tuned.verdict);
    value["advice"] = choice(&tuned.winner);
    value["evaluations"] = tuned.tried.len().into();
    value["restarts"] = tuned.restarts.into();
    value["keeps_constraints"] = tuned.keeps.into();
    value["found"] = json!(tuned.found);
    value["holds"] = json!(tuned.holds);
    value["against_defaults"] = json!(tuned.against_defaults);
    value["winner"] = spreads(&tuned.spreads[0]).into();
    value["now_figures"] = spreads(&tuned.spreads[1]).into();
    value["defaults"] = spreads(&tuned.spreads[2]).into();
    value["front"] = tuned.front.iter().map(tried).collect();
    value["tried"] = all.iter().map(tried).collect();
    value["commands"] = commands(plan);
    value
}
