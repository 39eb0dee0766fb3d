//! What is wanted of the server, and whether it was found.

use super::crowd::{ACTIVE, Crowd};
use super::servers::Server;
use super::sharing::Shares;
use super::transport::{self, Medians, Sample, Workload, best_peer};
use crate::goals::{Goal, grouped};

const OURS: Server = Server::HoistwayMemory(None);
/// The most resident memory with all connections open and busy, in bytes: 1 GiB.
const CROWD_BYTES_MAX: u64 = 1 << 30;
/// Of equal connections none may have less than this part of what another has: the client itself
/// takes them in turns, so that what they are apart is chance and the server's doing.
const CROWD_LEAST: f64 = 1.0 / 3.0;

/// Each row is one.
pub fn of_sharing(rows: &[Shares]) -> Vec<Goal> {
    let goal = |row: &Shares| {
        let found = format!("{}, off by {:+.1} %, within {}", row.found, row.off_percent, row.bound);
        Goal::found(&format!("{}, under {}: {}", row.what, row.under, row.wanted), found, row.holds())
    };
    rows.iter().map(goal).collect()
}

/// Of many connections.
pub fn of_crowd(crowd: &Crowd) -> Vec<Goal> {
    let mib = crowd.busy_bytes as f64 / f64::from(1 << 20);
    let part = crowd.least as f64 / crowd.most.max(1) as f64;
    vec![
        Goal::found("resident memory under 1 GiB", format!("{mib:.1} MiB"), crowd.busy_bytes < CROWD_BYTES_MAX),
        Goal::found(
            &format!("none of the {ACTIVE} busy connections has less than a third of what another has"),
            format!("{} : {} = {part:.2}", crowd.least, crowd.most),
            part >= CROWD_LEAST,
        ),
    ]
}

/// Of what a request costs.
pub fn of_cost(tables: &[(Workload, Medians)]) -> Vec<Goal> {
    let table = |title: &str| tables.iter().find(|(workload, _)| workload.title == title).map(|(_, medians)| medians);
    let mut goals = Vec::new();
    if let Some(medians) = table(transport::QD16) {
        let (cpu, iops): (Figure, Figure) = (|s| s.server_us, |s| s.operations_per_s);
        goals.push(at_most(
            "QD16, memory: CPU an operation <= qemu-storage-daemon null-co's",
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
        goals.push(at_most("QD16, file: CPU an operation <= nbdkit's", medians, file, Server::NbdkitFile, cpu));
        goals.push(at_least("QD16, file: IOPS >= nbdkit's", medians, file, Server::NbdkitFile, iops));
    }
    for (title, text) in [
        (transport::QD1_ONE_CPU, "QD1, on one CPU: p50 <= the best peer's"),
        (transport::QD1_TWO_CPUS, "QD1, on a CPU each: p50 <= the best peer's"),
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
            Goal::not_measured(text, &format!("{} is not here", missing.name()))
        }
    }
}

fn beats_best(text: &str, medians: &Medians, figure: Figure) -> Goal {
    match (medians.get(&OURS), best_peer(medians, figure)) {
        (Some(mine), Some((peer, theirs))) => {
            let mine = figure(mine);
            Goal::found(text, format!("{} ({})", compared(mine, theirs), peer.name()), mine <= theirs)
        }
        _ => Goal::not_measured(text, "no peer is here"),
    }
}

/// The dearest elevator over `noop`: differences of a few percent, so of the least disturbed
/// rounds.
fn scheduling(medians: &Medians) -> Goal {
    let text = "an elevator costs at most 0.5 us an operation over noop (least of the rounds)";
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
        assert_eq!(goals[2].found, "hoistway file is not here");
        let error = judge(&goals).expect_err("two were not measured").to_string();
        assert!(error.starts_with("2 of 4 goals:") && error.contains("not measured: QD16, file: IOPS"), "{error}");
    }

    #[test]
    fn a_missed_goal_is_an_error_and_none_is_not() {
        let crowd = |least| Crowd {
            alone_bytes: 1,
            open_bytes: 2,
            busy_bytes: 3,
            operations_per_s: 1.0,
            least,
            most: 900,
            seconds: 1.0,
        };
        assert!(judge(&of_crowd(&crowd(300))).is_ok());
        let error = judge(&of_crowd(&crowd(299))).expect_err("less than a third").to_string();
        assert!(error.starts_with("1 of 2 goals:\n  missed: none of the 1000 busy"), "{error}");
    }
}
