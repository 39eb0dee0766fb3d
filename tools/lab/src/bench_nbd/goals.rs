//! The goals for the server.

use super::connections::{ACTIVE, ConnectionFigures};
use super::servers::Server;
use super::sharing::Shares;
use super::transport::{self, Medians, Sample, Workload, best_peer};
use crate::goals::{Goal, grouped};

const OURS: Server = Server::HoistwayMemory(None);
/// The maximum resident memory with all connections open and busy, in bytes: 1 GiB.
const CONNECTIONS_BYTES_MAX: u64 = 1 << 30;
/// The smallest number of operations of a busy connection, as a part of the largest number. The
/// client serves its connections in turn, so a difference is due to chance or to the server.
const LEAST_PART: f64 = 1.0 / 3.0;

/// One goal for each row.
pub fn of_sharing(rows: &[Shares]) -> Vec<Goal> {
    let goal = |row: &Shares| {
        let found = format!("{}, deviation {:+.1} %, tolerance {}", row.found, row.off_percent, row.bound);
        Goal::found(&format!("{}, under {}: {}", row.what, row.under, row.wanted), found, row.holds())
    };
    rows.iter().map(goal).collect()
}

/// The goals for many connections.
pub fn of_connections(figures: &ConnectionFigures) -> Vec<Goal> {
    let mib = figures.busy_bytes as f64 / f64::from(1 << 20);
    let part = figures.least as f64 / figures.most.max(1) as f64;
    vec![
        Goal::found("resident memory under 1 GiB", format!("{mib:.1} MiB"), figures.busy_bytes < CONNECTIONS_BYTES_MAX),
        Goal::found(
            &format!("each of the {ACTIVE} busy connections has at least a third of the operations of any other"),
            format!("{} : {} = {part:.2}", figures.least, figures.most),
            part >= LEAST_PART,
        ),
    ]
}

/// The goals for the cost of a request.
pub fn of_cost(tables: &[(Workload, Medians)]) -> Vec<Goal> {
    let table = |title: &str| tables.iter().find(|(workload, _)| workload.title == title).map(|(_, medians)| medians);
    let mut goals = Vec::new();
    if let Some(medians) = table(transport::QD16) {
        let (cpu, iops): (Figure, Figure) = (|s| s.server_us, |s| s.operations_per_s);
        goals.push(at_most(
            "QD16, memory: CPU per operation <= qemu-storage-daemon null-co's",
            medians,
            OURS,
            Server::QsdNull,
            cpu,
        ));
        goals.push(at_least(
            "QD16, memory: IOPS >= qemu-storage-daemon null-co's",
            medians,
            OURS,
            Server::QsdNull,
            iops,
        ));
        let file = Server::HoistwayFile;
        goals.push(at_most("QD16, file: CPU per operation <= nbdkit's", medians, file, Server::NbdkitFile, cpu));
        goals.push(at_least("QD16, file: IOPS >= nbdkit's", medians, file, Server::NbdkitFile, iops));
    }
    for (title, text) in [
        (transport::QD1_ONE_CPU, "QD1, both on one CPU: p50 <= the best peer's"),
        (transport::QD1_TWO_CPUS, "QD1, on one CPU each: p50 <= the best peer's"),
    ] {
        if let Some(medians) = table(title) {
            goals.push(beats_best(text, medians, |s| s.p50_us));
        }
    }
    if let Some(medians) = table(transport::QD64) {
        goals.push(beats_best("QD64: p99 <= the best peer's", medians, |s| s.p99_us));
    }
    if let Some(medians) = table(transport::FOUR) {
        goals.push(at_most("4 connections, QD16: p99 <= nbd-server's", medians, OURS, Server::NbdServerFile, |s| {
            s.p99_us
        }));
    }
    for (title, text) in [
        (
            transport::SEQUENTIAL_READ,
            ["256 KiB reads, memory: >= nbdkit memory", "256 KiB reads, file: >= nbdkit file"],
        ),
        (
            transport::SEQUENTIAL_WRITE,
            ["256 KiB writes, memory: >= nbdkit memory", "256 KiB writes, file: >= nbdkit file"],
        ),
    ] {
        if let Some(medians) = table(title) {
            let rate: Figure = |s| s.bytes_per_s;
            goals.push(at_least(text[0], medians, OURS, Server::NbdkitMemory, rate));
            goals.push(at_least(text[1], medians, Server::HoistwayFile, Server::NbdkitFile, rate));
        }
    }
    if let Some(medians) = table(transport::SCHEDULING) {
        goals.push(scheduling(medians));
    }
    goals
}

type Figure = fn(&Sample) -> f64;

fn at_most(text: &str, medians: &Medians, ours: Server, peer: Server, figure: Figure) -> Goal {
    against(text, medians, ours, peer, figure, |mine, theirs| mine <= theirs)
}

fn at_least(text: &str, medians: &Medians, ours: Server, peer: Server, figure: Figure) -> Goal {
    against(text, medians, ours, peer, figure, |mine, theirs| mine >= theirs)
}

fn against(
    text: &str,
    medians: &Medians,
    ours: Server,
    peer: Server,
    figure: Figure,
    holds: fn(f64, f64) -> bool,
) -> Goal {
    match (medians.get(&ours), medians.get(&peer)) {
        (Some(mine), Some(theirs)) => {
            let (mine, theirs) = (figure(mine), figure(theirs));
            Goal::found(text, compared(mine, theirs), holds(mine, theirs))
        }
        (mine, _) => {
            let missing = if mine.is_none() { ours } else { peer };
            Goal::not_measured(text, &format!("{} is not installed", missing.name()))
        }
    }
}

fn beats_best(text: &str, medians: &Medians, figure: Figure) -> Goal {
    match (medians.get(&OURS), best_peer(medians, figure)) {
        (Some(mine), Some((peer, theirs))) => {
            let mine = figure(mine);
            Goal::found(text, format!("{} ({})", compared(mine, theirs), peer.name()), mine <= theirs)
        }
        _ => Goal::not_measured(text, "no peer is installed"),
    }
}

/// The goal for the most expensive elevator compared with `noop`. The differences are a few
/// percent, so the least disturbed rounds are compared.
fn scheduling(medians: &Medians) -> Goal {
    let text = "an elevator costs at most 0.5 us per operation more than noop (least of the rounds)";
    let noop = medians.get(&Server::HoistwayMemory(Some("noop"))).map(|sample| sample.server_us_least);
    let costs = medians.iter().map(|(server, sample)| (server, sample.server_us_least));
    match (noop, costs.max_by(|a, b| a.1.total_cmp(&b.1))) {
        (Some(noop_us), Some((dearest, us))) => {
            let more_us = us - noop_us;
            Goal::found(text, format!("{more_us:+.2} us ({})", dearest.name()), more_us <= 0.5)
        }
        _ => Goal::not_measured(text, "noop was not measured"),
    }
}

fn compared(mine: f64, theirs: f64) -> String {
    let shown = |figure: f64| {
        if figure >= 1e6 {
            format!("{} M", grouped(figure / 1e6))
        } else if figure >= 100.0 {
            grouped(figure)
        } else {
            format!("{figure:.2}")
        }
    };
    format!("{} : {} = {:.2}", shown(mine), shown(theirs), mine / theirs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::judge;

    fn sample(us: f64) -> Sample {
        Sample {
            operations_per_s: 1e6 / us,
            bytes_per_s: 4096e6 / us,
            p50_us: us,
            p99_us: 2.0 * us,
            server_us: us,
            server_us_least: us,
        }
    }

    #[test]
    fn a_goal_whose_peer_is_missing_stays_in_the_list() {
        let workload = |title| transport::workloads(1.0, &[]).into_iter().find(|one| one.title == title).unwrap();
        let medians: Medians = [(OURS, sample(2.0)), (Server::QsdNull, sample(4.0))].into();
        let goals = of_cost(&[(workload(transport::QD16), medians)]);
        let found: Vec<_> = goals.iter().map(|goal| goal.holds).collect();
        assert_eq!(found, [Some(true), Some(true), None, None]);
        assert_eq!(goals[2].found, "hoistway file is not installed");
        let error = judge(&goals).expect_err("two were not measured").to_string();
        assert!(error.starts_with("2 of 4 goals:") && error.contains("not measured: QD16, file: IOPS"), "{error}");
    }

    #[test]
    fn only_a_missed_goal_is_an_error() {
        let with_least = |least| ConnectionFigures {
            alone_bytes: 1,
            open_bytes: 2,
            busy_bytes: 3,
            operations_per_s: 1.0,
            least,
            most: 900,
            seconds: 1.0,
        };
        assert!(judge(&of_connections(&with_least(300))).is_ok());
        let error = judge(&of_connections(&with_least(299))).expect_err("less than a third").to_string();
        assert!(error.starts_with("1 of 2 goals:\n  missed: each of the 1000 busy"), "{error}");
    }
}
