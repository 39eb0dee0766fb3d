//! docs/serve-benchmarks.md from what was measured.

use std::fmt::Write;
use std::fs;

use anyhow::{Context, Result};

use super::crowd::{ACTIVE, Crowd, OPEN};
use super::servers::Server;
use super::sharing::Shares;
use super::transport::{self, Medians, Sample, Workload, best_peer};
use crate::repository;

const PAGE: &str = "docs/serve-benchmarks.md";
const OURS: Server = Server::HoistwayMemory(None);

/// A statement, what was found, and whether it holds.
struct Goal {
    text: &'static str,
    found: String,
    holds: bool,
}

/// The tables of what a request costs, and the goals.
pub fn cost(tables: &[(Workload, Medians)], rounds: u32, seconds: f64) -> String {
    let mut text = format!("Medians of {rounds} rounds of {seconds} s each.\n\n");
    let goals = goals(tables);
    text.push_str("| goal | found | |\n|---|---|---|\n");
    for goal in &goals {
        let word = if goal.holds { "yes" } else { "**no**" };
        let _ = writeln!(text, "| {} | {} | {word} |", goal.text, goal.found);
    }
    for (workload, medians) in tables {
        let _ = writeln!(text, "\n### {}\n", workload.title);
        let unit = if workload.in_bytes { "MB/s" } else { "IOPS" };
        let _ = writeln!(
            text,
            "| server | {unit} | p50 (us) | p99 (us) | server CPU an operation (us) |\n|---|---|---|---|---|"
        );
        for server in workload.servers.iter() {
            let Some(sample) = medians.get(server) else {
                let _ = writeln!(text, "| {} | not installed | | | |", server.name());
                continue;
            };
            let rate = if workload.in_bytes { sample.bytes_per_s / 1e6 } else { sample.operations_per_s };
            let _ = writeln!(
                text,
                "| {} | {} | {:.0} | {:.0} | {:.2} |",
                server.name(),
                grouped(rate),
                sample.p50_us,
                sample.p99_us,
                sample.server_us
            );
        }
    }
    text
}

fn goals(tables: &[(Workload, Medians)]) -> Vec<Goal> {
    let table = |title: &str| tables.iter().find(|(workload, _)| workload.title == title).map(|(_, medians)| medians);
    let mut goals = Vec::new();
    if let Some(medians) = table(transport::QD16) {
        let (cpu, iops): (Figure, Figure) = (|s| s.server_us, |s| s.operations_per_s);
        goals.extend(at_most(
            "QD16, memory: CPU an operation <= qemu-storage-daemon null-co's",
            medians,
            OURS,
            Server::QsdNull,
            cpu,
        ));
        goals.extend(at_least(
            "QD16, memory: IOPS >= qemu-storage-daemon null-co's",
            medians,
            OURS,
            Server::QsdNull,
            iops,
        ));
        let file = Server::HoistwayFile;
        goals.extend(at_most("QD16, file: CPU an operation <= nbdkit's", medians, file, Server::NbdkitFile, cpu));
        goals.extend(at_least("QD16, file: IOPS >= nbdkit's", medians, file, Server::NbdkitFile, iops));
    }
    if let Some(medians) = table(transport::QD1) {
        goals.extend(beats_best("QD1: p50 <= the best peer's", medians, |s| s.p50_us));
    }
    if let Some(medians) = table(transport::QD64) {
        goals.extend(beats_best("QD64: p99 <= the best peer's", medians, |s| s.p99_us));
    }
    if let Some(medians) = table(transport::FOUR) {
        goals.extend(at_most("4 connections, QD16: p99 <= nbd-server's", medians, OURS, Server::NbdServerFile, |s| {
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
            goals.extend(at_least(text[0], medians, OURS, Server::NbdkitMemory, rate));
            goals.extend(at_least(text[1], medians, Server::HoistwayFile, Server::NbdkitFile, rate));
        }
    }
    if let Some(medians) = table(transport::SCHEDULING) {
        goals.extend(scheduling(medians));
    }
    goals
}

type Figure = fn(&Sample) -> f64;

fn at_most(text: &'static str, medians: &Medians, ours: Server, peer: Server, figure: Figure) -> Option<Goal> {
    let (mine, theirs) = (figure(medians.get(&ours)?), figure(medians.get(&peer)?));
    Some(Goal { text, found: compared(mine, theirs), holds: mine <= theirs })
}

fn at_least(text: &'static str, medians: &Medians, ours: Server, peer: Server, figure: Figure) -> Option<Goal> {
    let (mine, theirs) = (figure(medians.get(&ours)?), figure(medians.get(&peer)?));
    Some(Goal { text, found: compared(mine, theirs), holds: mine >= theirs })
}

fn beats_best(text: &'static str, medians: &Medians, figure: Figure) -> Option<Goal> {
    let mine = figure(medians.get(&OURS)?);
    let (peer, theirs) = best_peer(medians, figure)?;
    Some(Goal { text, found: format!("{} ({})", compared(mine, theirs), peer.name()), holds: mine <= theirs })
}

/// The dearest elevator over `noop`.
fn scheduling(medians: &Medians) -> Option<Goal> {
    let noop = medians.get(&Server::HoistwayMemory(Some("noop")))?.server_us;
    let others = medians.iter().map(|(server, sample)| (server, sample.server_us - noop));
    let (dearest, more_us) = others.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let found = format!("{more_us:+.2} us ({})", dearest.name());
    Some(Goal { text: "an elevator costs at most 0.5 us an operation over noop", found, holds: more_us <= 0.5 })
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

/// The table of shares.
pub fn sharing(results: &[Shares]) -> String {
    let mut text = "| what | under | wanted | found | off by | within |\n|---|---|---|---|---|---|\n".to_owned();
    for row in results {
        let word = if row.holds() { String::new() } else { " **no**".to_owned() };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {:+.1} % | {}{word} |",
            row.what, row.under, row.wanted, row.found, row.off_percent, row.bound
        );
    }
    text
}

/// What the crowd needed.
pub fn crowd(crowd: &Crowd) -> String {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    format!(
        "{OPEN} connections open, {ACTIVE} of them busy with one 4 KiB read at a time each:\n\n\
         | | |\n|---|---|\n\
         | resident memory before anybody came | {:.1} MiB |\n\
         | with {OPEN} connections open | {:.1} MiB ({:.1} KiB a connection) |\n\
         | with {ACTIVE} of them busy (goal: under 1 GiB) | {:.1} MiB |\n\
         | operations a second | {} |\n\
         | operations of the busy connection that had fewest : most | {} : {} |\n",
        mib(crowd.alone_bytes),
        mib(crowd.open_bytes),
        (crowd.open_bytes.saturating_sub(crowd.alone_bytes)) as f64 / 1024.0 / OPEN as f64,
        mib(crowd.busy_bytes),
        grouped(crowd.operations_per_s),
        crowd.least,
        crowd.most,
    )
}

/// Puts sections into the page, each between its marks.
pub fn write(sections: &[(&str, String)]) -> Result<()> {
    let path = repository::root().join(PAGE);
    let mut page = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    for (name, section) in sections {
        page = crate::pages::with_part(PAGE, &page, name, section)?;
    }
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))
}

/// Thousands apart.
fn grouped(figure: f64) -> String {
    let digits = format!("{figure:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([grouped(7.0), grouped(1234.4), grouped(1_234_567.0)], ["7", "1,234", "1,234,567"]);
    }
}
