//! One case: the advice, the prediction, and the measurements under each scheduler.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use hoistway_workspace::{programs, repository};
use serde_json::Value;

use super::case::{CANDIDATES, Case, From, elevator};
use crate::whatif::Programs;
use crate::whatif::real::{DRIVE, leave, measure_with, serve};

/// The results of a case.
pub struct Outcome {
    pub case: &'static Case,
    /// The output of `hoistway advise --json`; `None` if it refused.
    pub advice: Option<Value>,
    /// The best candidate by `trace whatif` in the deciding figure; `None` for a job file or if it
    /// refused.
    pub whatif: Option<String>,
    /// Each scheduler with its tunables, as measured.
    pub measured: Vec<Measured>,
}

/// The deciding figure of each run under one scheduler, in rising order.
pub struct Measured {
    pub name: String,
    pub values: Vec<f64>,
}

impl Measured {
    /// The median of an odd number of runs.
    pub fn median(&self) -> f64 {
        self.values.get(self.values.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// The number of runs of the advised choice: the result of a run may depend on its first moments.
const RUNS: usize = 3;

/// The figures of a process; of a job with several processes the first one counts.
struct Got {
    name: String,
    bytes_per_s: f64,
    p99_ns: f64,
}

/// Advises, predicts and measures.
pub fn outcome(programs: &Programs, case: &'static Case, seconds: u64, folder: &Path) -> Result<Outcome> {
    let record = folder.join("recording");
    let mut objective = case.objective.to_owned();
    let mut whatif = None;
    if let From::Clients(workload, seed) = case.from {
        let path = record.display().to_string();
        let run = (workload, seed, elevator(case.now));
        let recorded = measure_with(programs, run, seconds, folder, &["--record", &path])?;
        if let Some(predicted) = predicted(programs, &record)? {
            let names: Vec<String> = processes(&recorded, p99_of_clients)?.into_iter().map(|got| got.name).collect();
            objective = by_pid(&objective, &names, &predicted)?;
            whatif = Some(best(case, &names, &predicted)?);
        }
    }
    let advice = advice(programs, case, &objective, seconds, &record)?;
    let mut schedulers: Vec<(String, Vec<String>)> =
        CANDIDATES.iter().map(|name| ((*name).into(), Vec::new())).collect();
    if let Some(advice) = &advice {
        let tunables = settings(&advice["advice"]);
        if !tunables.is_empty() {
            let name = advice["advice"]["name"].as_str().unwrap_or_default().to_owned();
            schedulers.push((name, tunables));
        }
    }
    let mut measured = Vec::new();
    let advised = advice.as_ref().and_then(|advice| advice["advice"]["name"].as_str());
    for (name, settings) in schedulers {
        let runs = if advised == Some(&name) { RUNS } else { 1 };
        let value = |_| figure(case.goal().0, &measure(programs, case, &name, &settings, seconds, folder)?);
        let values: Result<Vec<f64>> = (0..runs).map(value).collect();
        let mut values = values?;
        values.sort_by(f64::total_cmp);
        measured.push(Measured { name, values });
    }
    println!("{} is done", case.name);
    Ok(Outcome { case, advice, whatif, measured })
}

fn p99_of_clients(process: &Value) -> Option<f64> {
    process["latency_p99_ns"].as_f64()
}

fn p99_predicted(process: &Value) -> Option<f64> {
    process["latency_ns"]["p99"].as_f64()
}

/// The objective with the names of clients replaced by the numbers of their connections, because a
/// recording of the server has no names. Clients and connections have the same order. Of several
/// clients with one name the first counts.
fn by_pid(objective: &str, names: &[String], predicted: &Value) -> Result<String> {
    let list = predicted["elevators"][0]["processes"].as_array().context("processes")?;
    let mut objective = objective.to_owned();
    for (name, process) in names.iter().zip(list) {
        let pid = process["pid"].as_u64().context("a pid")?;
        objective = objective.replace(&format!("({name})"), &format!("(pid {pid})"));
    }
    Ok(objective)
}

/// The tunables of a choice, as `--set` takes them.
fn settings(choice: &Value) -> Vec<String> {
    let scheduler = elevator(choice["scheduler"].as_str().unwrap_or_default());
    let tunables = choice["tunables"].as_object().into_iter().flatten();
    tunables.map(|(name, value)| format!("{scheduler}.{name}={value}")).collect()
}

/// The text of a job file with another run time.
fn with_runtime(job: &Path, seconds: u64) -> Result<String> {
    let text = std::fs::read_to_string(job).with_context(|| job.display().to_string())?;
    let lines = text.lines().map(|line| match line.strip_prefix("runtime=") {
        Some(_) => format!("runtime={seconds}\n"),
        None => format!("{line}\n"),
    });
    Ok(lines.collect())
}

fn advice(programs: &Programs, case: &Case, objective: &str, seconds: u64, record: &Path) -> Result<Option<Value>> {
    let mut command = Command::new(&programs.hoistway);
    command.args(["advise", "--drive", DRIVE, "--json", "--objective", objective]);
    match case.from {
        From::Clients(..) => command.arg("--trace").arg(record),
        From::Job(job) => {
            let path = record.with_extension("fio");
            std::fs::write(&path, with_runtime(&repository::root().join(job), seconds)?)?;
            command.arg("--job").arg(path)
        }
    };
    let output = command.output().context("cannot start hoistway advise")?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => Ok(Some(serde_json::from_slice(&output.stdout).context("the output of hoistway advise")?)),
        // A refusal because of the error of the model is a result, not an error.
        Some(1) if said.contains("misses the recording") => Ok(None),
        _ => bail!("hoistway advise: {}: {said}", output.status),
    }
}

/// The output of `trace whatif` for a recording; `None` if it refuses.
fn predicted(programs: &Programs, record: &Path) -> Result<Option<Value>> {
    let elevators = CANDIDATES.map(elevator).join(",");
    let mut command = Command::new(&programs.hoistway);
    command.args(["trace", "whatif"]).arg(record).args(["--drive", DRIVE, "--json", "--elevators", &elevators]);
    let output = command.stderr(Stdio::inherit()).output().context("cannot start hoistway trace whatif")?;
    match output.status.success() {
        true => Ok(Some(serde_json::from_slice(&output.stdout).context("the output of hoistway trace whatif")?)),
        false => Ok(None),
    }
}

/// The best candidate of the prediction.
fn best(case: &Case, names: &[String], predicted: &Value) -> Result<String> {
    let runs = predicted["elevators"].as_array().context("elevators")?;
    let (goal, least) = case.goal();
    let mut best: Option<(&str, f64)> = None;
    for (scheduler, run) in CANDIDATES.iter().zip(runs) {
        let mut got = processes(run, p99_predicted)?;
        got.iter_mut().zip(names).for_each(|(got, name)| got.name.clone_from(name));
        let value = figure(goal, &got)?;
        if best.is_none_or(|(_, known)| value != known && (value < known) == least) {
            best = Some((scheduler, value));
        }
    }
    best.map(|(name, _)| name.to_owned()).context("no candidates")
}

fn processes(run: &Value, p99_ns: impl Fn(&Value) -> Option<f64>) -> Result<Vec<Got>> {
    let list = run["processes"].as_array().context("processes")?;
    let got = list.iter().map(|process| {
        Ok(Got {
            name: process["name"].as_str().context("a name")?.to_owned(),
            bytes_per_s: process["bytes_per_s"].as_f64().context("bytes_per_s")?,
            p99_ns: p99_ns(process).context("a percentile")?,
        })
    });
    got.collect()
}

fn measure(
    programs: &Programs,
    case: &Case,
    scheduler: &str,
    settings: &[String],
    seconds: u64,
    folder: &Path,
) -> Result<Vec<Got>> {
    let more: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting.as_str()]).collect();
    let elevator = elevator(scheduler.split(' ').next().unwrap_or_default());
    match case.from {
        From::Clients(workload, seed) => {
            let document = measure_with(programs, (workload, seed, elevator), seconds, folder, &more)?;
            processes(&document, p99_of_clients)
        }
        From::Job(job) => {
            let socket = folder.join("socket");
            let mut server = serve(programs, elevator, &socket, &more)?;
            let printed = fio(&repository::root().join(job), &socket, seconds, folder);
            leave(&mut server)?;
            of_fio(&printed?)
        }
    }
}

/// Runs a job file on the server, with fio's nbd engine in place of its engine.
fn fio(job: &Path, socket: &Path, seconds: u64, folder: &Path) -> Result<String> {
    let text = with_runtime(job, seconds)?;
    let engine = format!("ioengine=nbd\nuri=nbd+unix:///?socket={}", socket.display());
    let text = text.replace("ioengine=libaio", &engine).replace("direct=1\n", "");
    let path = folder.join("job.fio");
    std::fs::write(&path, text)?;
    let mut command = Command::new("fio");
    command.arg(&path).args(["--output-format=json", "--thread"]);
    programs::output(&mut command)
}

/// Reads the JSON of fio; clones of a job have its name.
fn of_fio(text: &str) -> Result<Vec<Got>> {
    let from = text.find('{').context("the output of fio has no JSON")?;
    let document: Value = serde_json::from_str(&text[from..]).context("the output of fio")?;
    let jobs = document["jobs"].as_array().context("jobs")?;
    let got = jobs.iter().map(|job| {
        let side = if job["read"]["total_ios"].as_u64().unwrap_or(0) > 0 { &job["read"] } else { &job["write"] };
        let p99 = side["clat_ns"]["percentile"]["99.000000"].as_f64();
        Ok(Got {
            name: job["jobname"].as_str().context("a name")?.to_owned(),
            bytes_per_s: side["bw_bytes"].as_f64().context("bw_bytes")?,
            p99_ns: p99.context("a percentile")?,
        })
    });
    got.collect()
}

/// `throughput`, `throughput(JOB)`, `p99(JOB)` or `p99(worst)`. Of several processes of a job rates
/// are added, and the percentile is the first one's.
fn figure(text: &str, got: &[Got]) -> Result<f64> {
    let (name, job) = match text.split_once('(') {
        Some((name, job)) => (name, Some(job.trim_end_matches(')'))),
        None => (text, None),
    };
    let chosen: Vec<&Got> = got.iter().filter(|got| job.is_none_or(|job| job == "worst" || job == got.name)).collect();
    if chosen.is_empty() {
        bail!("{text}: no job has this name");
    }
    match (name, job) {
        ("throughput", _) => Ok(chosen.iter().map(|got| got.bytes_per_s).sum()),
        ("p99", Some("worst")) => Ok(chosen.iter().map(|got| got.p99_ns).fold(0.0, f64::max)),
        ("p99", _) => Ok(chosen[0].p99_ns),
        _ => bail!("{text} is not measured"),
    }
}
