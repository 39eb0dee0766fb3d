//! Measures the quality of predictions: each workload is recorded under one elevator, all others
//! are predicted from the recording, and then run.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use hoistway_advise::whatif::{Fidelity, LoadedTrace, Machine, Model, QueueLimits, service_times};
use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_drive::fit::{FitOptions, fit_profile};
use hoistway_sim::Comparison;
use hoistway_trace::{Input, OpenOptions};
use serde_json::{Value, json};

use super::workloads::{Client, NAMES, workload};
use super::{simulated, workloads};
use crate::{ClientResult, Request, figures};

/// The elevators that are recorded, in turn.
const RECORDED: [Kind; 6] = [Kind::Noop, Kind::Bfq, Kind::MqDeadline, Kind::CfqV3, Kind::Kyber, Kind::Cfq];

/// One workload of one seed, and the recorded elevator.
#[derive(Clone)]
struct Case {
    request: Request,
    clients: Vec<Client>,
}

/// Runs all cases of these seeds, on as many threads as there are processors. Returns an array with
/// a value for each case and drive.
pub fn run(seeds: &[u64], template: &Request) -> Result<Value, String> {
    let mut cases = Vec::new();
    for (turn, seed) in seeds.iter().enumerate() {
        for (index, name) in NAMES.iter().enumerate() {
            let elevator = RECORDED[(turn + index) % RECORDED.len()];
            let request = Request { workload: (*name).into(), elevator, seed: *seed, ..template.clone() };
            cases.push(Case { request, clients: workload(name, *seed).unwrap_or_default() });
        }
    }
    let folder = std::env::temp_dir().join(format!("hoistway-whatif-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let (next, done) = (AtomicUsize::new(0), Mutex::new(HashMap::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((index, case)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|index| Some((index, cases.get(index)?)))
                {
                    let describe = run_case(case, &folder.join(format!("{index}.blktrace.0")));
                    eprintln!(
                        "{} of seed {} under {} is done",
                        case.request.workload,
                        case.request.seed,
                        case.request.elevator.info().name
                    );
                    done.lock().unwrap_or_else(PoisonError::into_inner).insert(index, describe);
                }
            });
        }
    });
    let _ = std::fs::remove_dir_all(&folder);
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut all = Vec::new();
    for index in 0..cases.len() {
        all.extend(done.remove(&index).ok_or("a thread panicked")??);
    }
    Ok(Value::Array(all))
}

/// Runs one case, with the known drive and with a fitted one.
fn run_case(case: &Case, file: &Path) -> Result<Vec<Value>, String> {
    let recorded = case.request.elevator;
    simulated::run(&case.clients, &Request { record: Some(file.to_owned()), ..case.request.clone() })?;
    let others: Vec<Kind> = Kind::ALL.iter().copied().filter(|kind| *kind != recorded).collect();
    let mut measured = Vec::new();
    for elevator in &others {
        measured.push(simulated::run(
            &case.clients,
            &Request { elevator: *elevator, record: None, ..case.request.clone() },
        )?);
    }
    let mut source = hoistway_trace::open(vec![Input::Path(file.to_owned())], &OpenOptions::default())
        .map_err(|error| error.to_string())?;
    let loaded = LoadedTrace::read(&mut *source, None).map_err(|error| error.to_string())?;
    let describe = Profile::builtin(&case.request.drive).ok_or("a drive that is not built in")?;
    let records = service_times(&loaded.requests);
    let fitted = fit_profile(&records, &FitOptions { name: "fitted", kind: None, base: None });
    let model = Model::new(loaded.recording.clone()).map_err(|error| error.to_string())?;
    let predicted = |drive: &str, profile: Profile| {
        predict(case, &model, &loaded, (drive, profile), &others, &measured)
            .unwrap_or_else(|error| json!({ "case": head(case, drive), "refused": error }))
    };
    let mut values = vec![predicted("told", describe)];
    values.push(match fitted {
        Ok(fitted) => predicted("fitted", fitted.profile),
        Err(error) => json!({ "case": head(case, "fitted"), "refused": error.to_string() }),
    });
    let _ = std::fs::remove_file(file);
    Ok(values)
}

fn head(case: &Case, drive: &str) -> Value {
    json!({
        "workload": case.request.workload,
        "seed": case.request.seed,
        "recorded": case.request.elevator.info().name,
        "seconds": case.request.seconds,
        "drive": drive,
        "clients": case.clients.iter().map(workloads::Client::describe).collect::<Vec<_>>(),
    })
}

fn predict(
    case: &Case,
    model: &Model,
    loaded: &LoadedTrace,
    (drive, profile): (&str, Profile),
    others: &[Kind],
    measured: &[Vec<ClientResult>],
) -> Result<Value, String> {
    let machine = Machine {
        profile,
        depth_max: loaded.setting.depth,
        kernel: None,
        groups: loaded.setting.is_server,
        settings: Vec::new(),
        queue: QueueLimits::default(),
        seed: 1,
    };
    let cancel = AtomicBool::new(false);
    let fidelity = model.fidelity(case.request.elevator, &machine, &cancel).map_err(|error| error.to_string())?;
    let case_head = head(case, drive);
    if !fidelity.holds() {
        let why = format!("the error of the model on the recording is {:.0} %", fidelity.miss() * 100.0);
        return Ok(json!({ "case": case_head, "refused": why, "miss": fidelity.miss() }));
    }
    let comparison = model.predict(others, &machine, false, &|_| {}, &cancel).map_err(|error| error.to_string())?;
    Ok(document(case, case_head, &fidelity, &comparison, (others, measured)))
}

/// Renders a case with all its pairs.
fn document(
    case: &Case,
    head: Value,
    fidelity: &Fidelity,
    comparison: &Comparison,
    (others, measured): (&[Kind], &[Vec<ClientResult>]),
) -> Value {
    let pair = |(index, kind): (usize, &Kind)| {
        let processes: Vec<Value> = case
            .clients
            .iter()
            .enumerate()
            .map(|(client, describe)| {
                let was = figures(&measured[index][client], case.request.seconds);
                let is = &comparison.runs[index].processes[client];
                json!({
                    "name": describe.name,
                    "measured": was,
                    "predicted": {
                        "requests": is.read.ios + is.write.ios,
                        "bytes_per_s": is.bytes_per_s,
                        "latency_mean_ns": is.latency_ns.mean,
                        "latency_p99_ns": is.latency_ns.p99,
                    },
                })
            })
            .collect();
        json!({ "elevator": kind.info().name, "processes": processes })
    };
    json!({
        "case": head,
        "miss": fidelity.miss(),
        "pairs": others.iter().enumerate().map(pair).collect::<Vec<_>>(),
    })
}
