//! Runs clients of four kinds of workload on an emulated drive. `cargo xtask whatif` compares their
//! figures with the predictions of `hoistway trace whatif` from their recordings.
//!
//! ```text
//! cargo run --release -p hoistway-record --example recorded_clients -- ARGUMENTS
//!
//! WORKLOAD --elevator NAME --seed N --seconds S [--drive PROFILE] [--record FILE] [--wake-us N]
//! WORKLOAD --elevator NAME --seed N --seconds S --real SOCKET
//! quality --seeds FROM-TO --seconds S [--wake-us N]
//! ```
//!
//! Without `--real` the server's device runs in virtual time, which takes seconds for minutes. With
//! `--real` the same clients connect by NBD to a server that listens on SOCKET. The requests and
//! pauses of a client depend on the seed alone, not on time, elevator or other clients. `quality`
//! records, predicts and runs all kinds of workload for some seeds. With `--wake-us`, a client of a
//! simulated machine continues later after a completion, by this time for each doubling of the
//! machine's idle time above 0.1 ms.

mod clients {
    pub mod quality;
    pub mod real;
    pub mod simulated;
    pub mod workloads;
}

use std::path::PathBuf;

use clients::workloads::{Client, workload};
use hdrhistogram::Histogram;
use hoistway_core::Kind;

/// The parsed arguments.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) workload: String,
    pub(crate) elevator: Kind,
    pub(crate) seed: u64,
    pub(crate) seconds: u64,
    pub(crate) drive: String,
    pub(crate) record: Option<PathBuf>,
    /// Time in us by which each doubling of the idle time delays a simulated client.
    pub(crate) wake_us: u64,
    pub(crate) real: Option<PathBuf>,
}

/// The results of a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientResult {
    pub(crate) bytes: u64,
    pub(crate) latencies_ns: Vec<u64>,
}

fn main() {
    if let Err(problem) = run() {
        eprintln!("error: {problem}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), String> {
    let (request, seeds) = request(std::env::args().skip(1).collect())?;
    if request.workload == "quality" {
        println!("{:#}", clients::quality::run(&seeds, &request)?);
        return Ok(());
    }
    let clients = workload(&request.workload, request.seed).ok_or_else(|| {
        format!("there is no workload `{}`: there are {}", request.workload, clients::workloads::NAMES.join(", "))
    })?;
    let result = match &request.real {
        Some(socket) => clients::real::run(&clients, socket, &request)?,
        None => clients::simulated::run(&clients, &request)?,
    };
    println!("{:#}", document(&request, &clients, &result));
    Ok(())
}

/// Renders the figures, with units in their names.
fn document(request: &Request, clients: &[Client], result: &[ClientResult]) -> serde_json::Value {
    let process = |(index, (client, result)): (usize, (&Client, &ClientResult))| {
        let mut value = figures(result, request.seconds);
        value["name"] = client.name.into();
        value["pid"] = (index + 1).into();
        value
    };
    let processes: Vec<_> = clients.iter().zip(result).enumerate().map(process).collect();
    serde_json::json!({
        "workload": request.workload,
        "elevator": request.elevator.info().name,
        "seed": request.seed,
        "seconds": request.seconds,
        "processes": processes,
    })
}

/// Renders the figures of one client.
pub(crate) fn figures(result: &ClientResult, seconds: u64) -> serde_json::Value {
    let mut latencies = Histogram::<u64>::new(2).expect("two digits are possible");
    for latency_ns in &result.latencies_ns {
        latencies.record(*latency_ns).expect("it grows");
    }
    let value = serde_json::json!({
        "requests": result.latencies_ns.len(),
        "bytes_per_s": result.bytes as f64 / seconds as f64,
        "latency_mean_ns": latencies.mean(),
        "latency_p50_ns": latencies.value_at_quantile(0.5),
        "latency_p99_ns": latencies.value_at_quantile(0.99),
    });
    value
}

fn request(arguments: Vec<String>) -> Result<(Request, Vec<u64>), String> {
    let mut seeds = Vec::new();
    let mut request = Request {
        workload: String::new(),
        elevator: Kind::Noop,
        seed: 1,
        seconds: 60,
        drive: "sata-7200-2006".into(),
        record: None,
        wake_us: 0,
        real: None,
    };
    let mut words = arguments.into_iter();
    while let Some(word) = words.next() {
        if !word.starts_with("--") {
            request.workload = word;
            continue;
        }
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word} is `{value}`: it takes a number"));
        match word.as_str() {
            "--elevator" => {
                request.elevator = Kind::from_name(&value).ok_or_else(|| format!("there is no elevator `{value}`"))?;
            }
            "--seeds" => {
                let (from, to) =
                    value.split_once('-').ok_or_else(|| format!("{word} is `{value}`: it takes FROM-TO"))?;
                let number =
                    |text: &str| text.parse::<u64>().map_err(|_| format!("{word} is `{value}`: it takes FROM-TO"));
                seeds = (number(from)?..=number(to)?).collect();
            }
            "--seed" => request.seed = number()?,
            "--seconds" => request.seconds = number()?.max(1),
            "--drive" => request.drive = value,
            "--wake-us" => request.wake_us = number()?,
            "--record" => request.record = Some(value.into()),
            "--real" => request.real = Some(value.into()),
            _ => return Err(format!("{word} is not known")),
        }
    }
    Ok((request, seeds))
}
