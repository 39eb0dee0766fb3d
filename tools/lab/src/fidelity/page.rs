//! The generated parts of the page: the agreement in all, and every pair.

use std::fmt::Write as _;

use super::agreement::{self, Errors, GOALS, Order, Pair};
use super::job;
use super::matrix::{self, Drive, Job};
use super::repetition::{Repetition, Spread};

/// The verdict on a goal: a figure that must not be above a bound, or below it.
fn verdict(reached: bool) -> &'static str {
    if reached { "reached" } else { "missed" }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The table of the agreement by kernel and drive, and in all.
pub fn summary(pairs: &[Pair]) -> String {
    let mut text = String::from(
        "| kernel | drive | pairs | runs of each | median spread of the guest's rates | median error of rates | of p50 \
         | of p99 | better scheduler named right |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for kernel in &matrix::KERNELS {
        for drive in kernel.drives() {
            let chosen: Vec<Pair> = pairs
                .iter()
                .filter(|pair| pair.place.kernel == kernel.name && pair.place.drive == drive.name)
                .cloned()
                .collect();
            if !chosen.is_empty() {
                row(&mut text, &format!("{} | `{}`, depth {}", kernel.name, drive.name, drive.depth), &chosen);
            }
        }
    }
    row(&mut text, "**all** | ", pairs);
    let (errors, orders) = (agreement::errors(pairs), agreement::orders(pairs));
    let right = share_right(&orders);
    let _ = write!(
        text,
        "\nGoals: a median error of at most {} of rates ({}) and {} of p99 ({}); the better of two schedulers \
         named right in {} of the cases ({}).",
        percent(GOALS[0]),
        verdict(agreement::median(&errors.rate) <= GOALS[0]),
        percent(GOALS[1]),
        verdict(agreement::median(&errors.p99) <= GOALS[1]),
        percent(GOALS[2]),
        verdict(right >= GOALS[2]),
    );
    text
}

fn share_right(orders: &[Order]) -> f64 {
    let right = orders.iter().filter(|order| order.is_right()).count();
    if orders.is_empty() { 1.0 } else { right as f64 / orders.len() as f64 }
}

fn row(text: &mut String, name: &str, pairs: &[Pair]) {
    let Errors { rate, p50, p99 } = agreement::errors(pairs);
    let [rate, p50, p99] = [rate, p50, p99].map(|errors| percent(agreement::median(&errors)));
    let spread = match agreement::spreads(pairs) {
        spreads if spreads.is_empty() => "-".to_owned(),
        spreads => percent(agreement::median(&spreads)),
    };
    let orders = agreement::orders(pairs);
    let right = orders.iter().filter(|order| order.is_right()).count();
    let _ = writeln!(
        text,
        "| {name} | {} | {} | {spread} | {rate} | {p50} | {p99} | {right} of {} |",
        pairs.len(),
        counts(pairs),
        orders.len()
    );
}

/// The number of runs of each pair, or the least and the greatest.
fn counts(pairs: &[Pair]) -> String {
    let counts = || pairs.iter().map(|pair| pair.real.count());
    match (counts().min().unwrap_or(0), counts().max().unwrap_or(0)) {
        (least, most) if least == most => most.to_string(),
        (least, most) => format!("{least} to {most}"),
    }
}

/// The tables of all jobs of a kernel on a drive.
pub fn jobs(pairs: &[Pair], kernel: &str, drive: &Drive) -> String {
    let mut text = String::new();
    for job in drive.jobs() {
        let chosen: Vec<&Pair> = pairs
            .iter()
            .filter(|pair| (pair.place.kernel.as_str(), pair.place.drive.as_str()) == (kernel, drive.name))
            .filter(|pair| pair.place.job == job.name)
            .collect();
        if chosen.is_empty() {
            continue;
        }
        let _ = write!(
            text,
            "**{}**: {} ([job](../tools/lab/jobs/{}.fio)).\n\n\
             | scheduler | section | MB/s, guest | its runs | simulated | error | p50 ms, guest | simulated | p99 ms, guest | simulated |\n\
             |---|---|---|---|---|---|---|---|---|---|\n",
            job.name,
            job.description(),
            job.name
        );
        for pair in &chosen {
            for (real, simulated) in agreement::beside(pair) {
                let section = format!("{}, {}", real.section, real.direction.name());
                let [rate, p50, p99] = match simulated {
                    Some(simulated) => [
                        format!(
                            "{} | {:+.1} %",
                            rate(simulated.bytes_per_s),
                            (simulated.bytes_per_s / real.bytes_per_s.max(1.0) - 1.0) * 100.0
                        ),
                        milliseconds(simulated.p50_ns),
                        milliseconds(simulated.p99_ns),
                    ],
                    None => ["none | -100 %".to_owned(), "-".to_owned(), "-".to_owned()],
                };
                let _ = writeln!(
                    text,
                    "| {} | {section} | {} | {} | {rate} | {} | {p50} | {} | {p99} |",
                    pair.place.scheduler,
                    self::rate(real.bytes_per_s),
                    range(&pair.real, &pair.real.rates(&real.section, real.direction)),
                    milliseconds(real.p50_ns),
                    milliseconds(real.p99_ns)
                );
            }
        }
        text.push('\n');
        text.push_str(&walk_times(job, &chosen));
    }
    text
}

/// The times of walks that came to the end of their tree, as a paragraph; empty without one.
fn walk_times(job: &Job, pairs: &[&Pair]) -> String {
    let mut times = Vec::new();
    for walk in job::walks(job.text) {
        for pair in pairs {
            let of = |runs: &Repetition| {
                let figure = runs.figures.iter().find(|figure| figure.section == walk.section)?;
                let is_complete = figure.seconds > 0.0 && figure.seconds < walk.seconds as f64;
                is_complete.then_some(figure.seconds)
            };
            if let (Some(real), Some(simulated)) = (of(&pair.real), of(&pair.simulated)) {
                times.push(format!("{} {real:.2} s and {simulated:.2} s", pair.place.scheduler));
            }
        }
    }
    match times.is_empty() {
        true => String::new(),
        false => format!("Time of the whole tree, guest and simulated: {}.\n\n", times.join(", ")),
    }
}

/// The agreement of synced jobs: the rates within the goal, and the largest errors.
pub fn syncs(pairs: &[Pair]) -> String {
    let Errors { rate, p99, .. } = agreement::errors(pairs);
    let within = rate.iter().filter(|error| error.abs() <= agreement::SYNC_GOAL).count();
    let largest = rate.iter().fold(0.0, |largest: f64, error| largest.max(error.abs()));
    format!(
        "{within} of {} rates are within {} (median error {}, largest {}); median error of the 99th percentiles {}.\n\n",
        rate.len(),
        percent(agreement::SYNC_GOAL),
        percent(agreement::median(&rate)),
        percent(largest),
        percent(agreement::median(&p99)),
    )
}

/// The list of orders that the simulator has wrong.
pub fn wrong_orders(pairs: &[Pair]) -> String {
    let mut text = String::new();
    for order in agreement::orders(pairs).iter().filter(|order| !order.is_right()) {
        let place = &order.better;
        let section = order.section.as_deref().unwrap_or("in all");
        let _ = writeln!(
            text,
            "- {}, `{}`, {}, {section}: {} is {:.2} times {} in the guest, {:.2} times simulated",
            place.kernel, place.drive, place.job, place.scheduler, order.ratios[0], order.worse, order.ratios[1]
        );
    }
    if text.is_empty() { "None.\n".to_owned() } else { text }
}

/// The line of a pair on a terminal.
pub fn line(pair: &Pair) -> String {
    let [real, simulated] = [&pair.real, &pair.simulated].map(|runs| runs.totals().median);
    let Errors { rate, p99, .. } = agreement::errors([pair]);
    let list = |errors: &[f64]| {
        let shown: Vec<String> = errors.iter().map(|error| format!("{:+.0}", error * 100.0)).collect();
        shown.join(" ")
    };
    let place = &pair.place;
    format!(
        "{:<6} {:<14} {:<28} {:<11} {} {:>7} {:>7} MB/s; errors of rates {} %, of p99 {} %",
        place.kernel,
        place.drive,
        place.job,
        place.scheduler,
        pair.real.count(),
        self::rate(real),
        self::rate(simulated),
        list(&rate),
        list(&p99)
    )
}

/// The slowest and the fastest of several runs.
fn range(runs: &Repetition, spread: &Spread) -> String {
    match runs.count() {
        ..=1 => "one".to_owned(),
        _ => format!("{} to {}", rate(spread.slowest), rate(spread.fastest)),
    }
}

fn rate(bytes_per_s: f64) -> String {
    let megabytes = bytes_per_s / 1e6;
    if megabytes < 10.0 { format!("{megabytes:.3}") } else { format!("{megabytes:.1}") }
}

fn milliseconds(ns: f64) -> String {
    let ms = ns / 1e6;
    match ms {
        0.0 => "-".to_owned(),
        ms if ms < 0.1 => format!("{ms:.4}"),
        ms if ms < 10.0 => format!("{ms:.2}"),
        ms => format!("{ms:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::figures::{Figure, example};
    use crate::fidelity::store::Place;

    #[test]
    fn the_summary_has_a_row_for_a_drive_and_the_verdicts() {
        let figure = |bytes_per_s| example("random", bytes_per_s, 1e6);
        let [kernel, drive, job, scheduler] = ["6.12", "cmr-4tb", "random-depth-16", "none"].map(str::to_owned);
        let place = Place { kernel, drive, job, scheduler };
        let runs = |rates: &[f64]| Repetition::new(rates.iter().map(|rate| vec![figure(*rate)]).collect());
        let pair = |real: &[f64]| Pair { place: place.clone(), real: runs(real), simulated: runs(&[2.2e6]) };
        let once = [pair(&[2e6])];
        let text = summary(&once);
        assert!(
            text.contains("| 6.12 | `cmr-4tb`, depth 32 | 1 | 1 | - | 10.0 % | 0.0 % | 0.0 % | 0 of 0 |"),
            "{text}"
        );
        assert!(text.contains("of rates (missed)") && text.contains("of p99 (reached)"), "{text}");
        let drive = matrix::DRIVES[1];
        assert!(jobs(&once, "6.12", &drive).contains("| none | random, read | 2.000 | one | 2.200 | +10.0 % |"));
        let thrice = [pair(&[1.9e6, 2e6, 2.1e6])];
        assert!(summary(&thrice).contains("| 1 | 3 | 10.0 % | 10.0 % |"), "{}", summary(&thrice));
        let table = jobs(&thrice, "6.12", &drive);
        assert!(table.contains("| none | random, read | 2.000 | 1.900 to 2.100 | 2.200 | +10.0 % |"), "{table}");
    }

    #[test]
    fn a_tree_that_was_read_to_its_end_has_its_time_and_no_latencies_of_the_guest() {
        let figure = |seconds| Figure { seconds, ..example("tree", 6e6, 0.0) };
        let [kernel, drive, job, scheduler] = ["6.12", "sata-7200-2006", "tree-archive", "bfq"].map(str::to_owned);
        let place = Place { kernel, drive, job, scheduler };
        let runs = |seconds| Repetition::new(vec![vec![figure(seconds)]]);
        let table = |real| {
            let pair = Pair { place: place.clone(), real: runs(real), simulated: runs(3.5) };
            jobs(&[pair], "6.12", &matrix::DRIVES[0])
        };
        assert!(table(3.25).contains("| +0.0 % | - | - | - | - |"), "{}", table(3.25));
        assert!(table(3.25).contains("guest and simulated: bfq 3.25 s and 3.50 s.\n"), "{}", table(3.25));
        assert!(!table(100.0).contains("Time of the whole tree"));
    }
}
