//! Cases in real time: the server with clients over its socket, and the command.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hoistway_workspace::programs;
use serde_json::Value;

use super::Programs;
use super::pairs::{Case, Got, Pair, Process};

/// The workloads, each with the seed of its clients, the recorded elevator and the predicted ones.
/// bfq is not among them, because it favours new readers for up to 25 s and these runs are shorter.
const RUNS: [(&str, u64, &str, [&str; 2]); 4] = [
    ("streams", 201, "mq-deadline", ["cfq-v3", "anticipatory"]),
    ("random-and-stream", 202, "cfq-v3", ["deadline", "fiops"]),
    ("database", 203, "noop", ["kyber", "cfq-v3"]),
    ("thinker", 204, "deadline", ["anticipatory", "cfq"]),
];
pub(crate) const DRIVE: &str = "sata-7200-2006";
/// The longest time until the server opens its socket, and until it exits.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs all cases one after the other, each several times. The cases of a workload follow each
/// other.
pub fn cases(programs: &Programs, seconds: u64, rounds: u64) -> Result<Vec<Case>> {
    let folder = std::env::temp_dir().join(format!("hoistway-whatif-real-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let runs = RUNS.iter().flat_map(|run| (0..rounds).map(move |_| run));
    let cases = runs.map(|run| case(programs, run, seconds, &folder)).collect();
    let _ = std::fs::remove_dir_all(&folder);
    cases
}

fn case(programs: &Programs, run: &(&str, u64, &str, [&str; 2]), seconds: u64, folder: &Path) -> Result<Case> {
    let (workload, seed, recorded, others) = *run;
    let record = folder.join(workload);
    measure(programs, (workload, seed, recorded), seconds, folder, Some(&record))?;
    let mut command = Command::new(&programs.hoistway);
    command.args(["trace", "whatif"]).arg(&record).args(["--json", "--elevators", &others.join(",")]);
    let output = command.stderr(Stdio::inherit()).output().context("cannot start hoistway trace whatif")?;
    let predicted: Value = serde_json::from_slice(&output.stdout).context("the output of hoistway trace whatif")?;
    let mut case = Case {
        workload: workload.into(),
        seed,
        recorded: recorded.into(),
        drive: super::pairs::GIVEN.into(),
        clients: Vec::new(),
        miss: predicted["model"]["miss"].as_f64(),
        refused: (!output.status.success()).then(|| "the error of the model on the recording exceeds 20 %".to_owned()),
        pairs: Vec::new(),
    };
    for (place, elevator) in others.iter().enumerate() {
        let measured = measure(programs, (workload, seed, elevator), seconds, folder, None)?;
        if case.refused.is_none() {
            case.pairs.push(pair(elevator, &measured, &predicted["elevators"][place])?);
        }
    }
    println!("{workload} in real time is done");
    Ok(case)
}

/// Starts a server with the emulated drive on a socket, with additional arguments.
pub(crate) fn serve(programs: &Programs, elevator: &str, socket: &Path, more: &[&str]) -> Result<Child> {
    let _ = std::fs::remove_file(socket);
    let mut command = Command::new(&programs.hoistway);
    command
        .args(["serve", "--export", "=null:180G", "--drive", DRIVE, "--elevator", elevator, "--socket"])
        .arg(socket)
        .args(more);
    let server =
        command.env("RUST_LOG", "error").stdout(Stdio::null()).spawn().context("cannot start hoistway serve")?;
    let begun = Instant::now();
    while !socket.exists() && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(server)
}

/// Runs the clients on a new server and returns their figures.
fn measure(
    programs: &Programs,
    run: (&str, u64, &str),
    seconds: u64,
    folder: &Path,
    record: Option<&Path>,
) -> Result<Value> {
    let record = record.map(|record| record.display().to_string());
    let more: Vec<&str> = record.iter().flat_map(|record| ["--record", record.as_str()]).collect();
    measure_with(programs, run, seconds, folder, &more)
}

/// Runs the clients on a new server with additional arguments, and returns their figures.
pub(crate) fn measure_with(
    programs: &Programs,
    (workload, seed, elevator): (&str, u64, &str),
    seconds: u64,
    folder: &Path,
    more: &[&str],
) -> Result<Value> {
    let socket = folder.join("socket");
    let mut server = serve(programs, elevator, &socket, more)?;
    let mut clients = Command::new(&programs.clients);
    clients
        .args([
            workload,
            "--elevator",
            elevator,
            "--seed",
            &seed.to_string(),
            "--seconds",
            &seconds.to_string(),
            "--real",
        ])
        .arg(&socket);
    let text = programs::output(&mut clients);
    leave(&mut server)?;
    serde_json::from_str(&text?).context("the output of recorded_clients")
}

/// Sends SIGTERM to a server and waits for its exit.
pub(crate) fn leave(server: &mut Child) -> Result<()> {
    let pid = i32::try_from(server.id()).ok().and_then(rustix::process::Pid::from_raw).context("a process id")?;
    rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(status) = server.try_wait()? {
            return if status.success() { Ok(()) } else { bail!("hoistway serve: {status}") };
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill()?;
    bail!("hoistway serve did not exit in {} s", PATIENCE.as_secs())
}

/// Pairs the measured clients with the predicted connections, which have the same order.
fn pair(elevator: &str, measured: &Value, predicted: &Value) -> Result<Pair> {
    let list = |value: &Value| value["processes"].as_array().cloned().context("processes");
    let (measured, predicted) = (list(measured)?, list(predicted)?);
    if measured.len() != predicted.len() {
        bail!("{elevator}: {} clients and {} predicted processes", measured.len(), predicted.len());
    }
    let number = |value: &Value, what: &str| value.as_f64().with_context(|| what.to_owned());
    let processes = measured.iter().zip(&predicted).map(|(was, is)| {
        Ok(Process {
            name: was["name"].as_str().unwrap_or_default().to_owned(),
            measured: Got {
                bytes_per_s: number(&was["bytes_per_s"], "bytes_per_s")?,
                p99_ns: number(&was["latency_p99_ns"], "p99")?,
            },
            predicted: Got {
                bytes_per_s: number(&is["bytes_per_s"], "bytes_per_s")?,
                p99_ns: number(&is["latency_ns"]["p99"], "p99")?,
            },
        })
    });
    Ok(Pair { elevator: elevator.to_owned(), processes: processes.collect::<Result<_>>()? })
}
