//! The cost of a request: the same load on hoistway and other servers in turn.

use std::collections::BTreeMap;

use anyhow::Result;

use super::load::{Cpus, Load};
use super::servers::{Bench, Running, Server};

/// A load and the servers that it runs on.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The heading of its table.
    pub title: &'static str,
    /// Whether its rate is in bytes a second instead of operations a second.
    pub in_bytes: bool,
    pub load: Load,
    pub servers: Vec<Server>,
}

/// The figures of one run.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub operations_per_s: f64,
    pub bytes_per_s: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// CPU time of the server per operation, in us.
    pub server_us: f64,
    /// The smallest of the rounds: disturbances only add CPU time.
    pub server_us_least: f64,
}

/// The median of each figure over the rounds.
pub type Medians = BTreeMap<Server, Sample>;

const MEMORY: Server = Server::HoistwayMemory(None);

/// All loads; the last one runs under each of these elevators.
pub fn workloads(seconds: f64, elevators: &[String]) -> Vec<Workload> {
    let random = vec![
        MEMORY,
        Server::HoistwayNull,
        Server::HoistwayFile,
        Server::NbdkitNull,
        Server::NbdkitMemory,
        Server::NbdkitFile,
        Server::NbdServerFile,
        Server::QemuNbdThreads,
        Server::QemuNbdUring,
        Server::QsdFile,
        Server::QsdNull,
    ];
    let large = vec![
        MEMORY,
        Server::HoistwayFile,
        Server::NbdkitMemory,
        Server::NbdkitFile,
        Server::NbdServerFile,
        Server::QemuNbdUring,
    ];
    // The few names are needed until the task ends.
    let scheduled: Vec<Server> =
        elevators.iter().map(|name| Server::HoistwayMemory(Some(name.clone().leak()))).collect();
    let reads = |depth| Load::random_reads(depth, seconds);
    let sequential = |pattern| Load { pattern, block: "256k", ..reads(16) };
    let row = |title, load, servers: &[Server]| Workload { title, in_bytes: false, load, servers: servers.to_vec() };
    let bulk = |title, load| Workload { title, in_bytes: true, load, servers: large.clone() };
    vec![
        row(QD1_ONE_CPU, Load { cpus: Some(Cpus { server: 0, client: 0 }), ..reads(1) }, &random),
        row(QD1_TWO_CPUS, Load { cpus: Some(Cpus { server: 0, client: 1 }), ..reads(1) }, &random),
        row(QD16, reads(16), &random),
        row(QD64, reads(64), &random),
        row(FOUR, Load { connections: 4, ..reads(16) }, &random),
        bulk(SEQUENTIAL_READ, sequential("read")),
        bulk(SEQUENTIAL_WRITE, sequential("write")),
        row(RANDOM_WRITE, Load { pattern: "randwrite", ..reads(16) }, &large),
        row(SCHEDULING, reads(16), &scheduled),
    ]
}

pub const QD1_ONE_CPU: &str = "4 KiB random read, one connection, QD1, client and server on one CPU";
pub const QD1_TWO_CPUS: &str = "4 KiB random read, one connection, QD1, client and server on one CPU each";
pub const QD16: &str = "4 KiB random read, one connection, QD16";
pub const QD64: &str = "4 KiB random read, one connection, QD64";
pub const FOUR: &str = "4 KiB random read, four connections, QD16 each";
pub const SEQUENTIAL_READ: &str = "256 KiB sequential read, QD16";
pub const SEQUENTIAL_WRITE: &str = "256 KiB sequential write, QD16";
pub const RANDOM_WRITE: &str = "4 KiB random write, QD16";
pub const SCHEDULING: &str = "Cost of an elevator: 4 KiB random read, QD16, from memory";

/// Runs one load on all of its installed servers, in turn, `rounds` times.
pub fn measure(workload: &Workload, bench: &Bench, rounds: u32) -> Result<Medians> {
    let mut samples: BTreeMap<Server, Vec<Sample>> = BTreeMap::new();
    for round in 0..rounds {
        for &server in workload.servers.iter().filter(|server| server.is_installed()) {
            let sample = one(server, &workload.load, bench)?;
            eprintln!(
                "{} · round {} · {}: {:.0}/s, p50 {:.0} us, p99 {:.0} us, server {:.2} us",
                workload.title,
                round + 1,
                server.name(),
                sample.operations_per_s,
                sample.p50_us,
                sample.p99_us,
                sample.server_us
            );
            samples.entry(server).or_default().push(sample);
        }
    }
    Ok(samples.into_iter().map(|(server, samples)| (server, medians(&samples))).collect())
}

fn one(server: Server, load: &Load, bench: &Bench) -> Result<Sample> {
    let running = Running::start(server, bench)?;
    if let Some(cpus) = load.cpus {
        running.pin(cpus.server)?;
    }
    let before = running.cpu()?;
    let result = load.run(&bench.uri(server.export()))?;
    let used_s = running.cpu()?.since(before);
    running.stop();
    let server_us = used_s * 1e6 / result.operations.max(1.0);
    Ok(Sample {
        operations_per_s: result.operations_per_s,
        bytes_per_s: result.bytes_per_s,
        p50_us: result.p50_ns / 1e3,
        p99_us: result.p99_ns / 1e3,
        server_us,
        server_us_least: server_us,
    })
}

fn medians(samples: &[Sample]) -> Sample {
    let of = |figure: fn(&Sample) -> f64| median(samples.iter().map(figure).collect());
    Sample {
        operations_per_s: of(|sample| sample.operations_per_s),
        bytes_per_s: of(|sample| sample.bytes_per_s),
        p50_us: of(|sample| sample.p50_us),
        p99_us: of(|sample| sample.p99_us),
        server_us: of(|sample| sample.server_us),
        server_us_least: samples.iter().map(|sample| sample.server_us_least).fold(f64::INFINITY, f64::min),
    }
}

/// The median: the middle figure, or the mean of the two middle ones.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match (figures.get(middle), figures.len() % 2) {
        (Some(&figure), 1) => figure,
        (Some(&upper), _) => (upper + figures[middle - 1]) / 2.0,
        (None, _) => f64::NAN,
    }
}

/// The peer with the least figure, and the figure.
pub fn best_peer(medians: &Medians, figure: fn(&Sample) -> f64) -> Option<(Server, f64)> {
    let peers = medians.iter().filter(|(server, _)| !server.is_ours());
    peers.map(|(server, sample)| (*server, figure(sample))).min_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
