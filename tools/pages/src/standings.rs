//! What pages state of the standings of docs/arena.md, which `cargo xtask bench-arena` wrote.
//!
//! Each sentence is checked against the tables. If one is not true any more, the check of the pages
//! fails and names it, because then the words and not only the figures have to change.

use anyhow::{Context, Result, ensure};
use hoistway_workspace::parts;

const ARENA: &str = "docs/arena.md";
/// The elevator that no kernel has.
const OWN: &str = "paternoster";
/// The schedulers of present kernels, by their names in the arena; `noop` stands for `none`.
const PRESENT: [&str; 4] = ["noop", "mq-deadline", "kyber", "bfq"];
const DISKS: [&str; 4] = ["sata-7200-2006", "scsi-15k-73", "cmr-8tb", "laptop-5400"];
const ARRAYS: [&str; 1] = ["array-8x15k"];
const FLASH: [&str; 4] = ["ssd-fiops", "ssd-nvme-tlc", "samsung-980-pro", "cloud-gp3"];

/// The parts of pages that state the standings: page, name of the part, and the text.
pub fn parts() -> Result<Vec<(&'static str, &'static str, String)>> {
    let page = parts::read_page(ARENA)?;
    let means = Table::parse(&page, "## Standings")?;
    let by_drive = ByDrive {
        throughput: Table::parse(&page, "### By drive: throughput")?,
        latency: Table::parse(&page, "### By drive: latency")?,
        isolation: Table::parse(&page, "### By drive: isolation")?,
    };
    Ok(vec![
        ("README.md", "standings", own(&means)?),
        ("docs/which-scheduler.md", "choice", by_drive.choice()?),
        (ARENA, "own", bounds(&means)?),
    ])
}

/// A table of figures: a row for each elevator.
struct Table {
    columns: Vec<String>,
    rows: Vec<(String, Vec<String>)>,
}

impl Table {
    /// Parses the first table after a heading of docs/arena.md.
    fn parse(page: &str, heading: &str) -> Result<Table> {
        let line = format!("\n{heading}\n");
        let (_, rest) = page.split_once(&line).with_context(|| format!("{ARENA} has no `{heading}`"))?;
        let lines = rest.lines().skip_while(|line| !line.starts_with('|'));
        let mut rows = lines.take_while(|line| line.starts_with('|')).map(cells);
        let columns = rows.next().with_context(|| format!("`{heading}` has no table"))?;
        let rows = rows.skip(1).filter_map(|row| row.split_first().map(|(name, rest)| (name.clone(), rest.to_vec())));
        Ok(Table { columns: columns.into_iter().skip(1).collect(), rows: rows.collect() })
    }

    /// A figure as it is written.
    fn text(&self, elevator: &str, column: &str) -> Result<&str> {
        let place = self.columns.iter().position(|name| name == column);
        let row = self.rows.iter().find(|(name, _)| name == elevator);
        place
            .and_then(|place| row?.1.get(place))
            .map(String::as_str)
            .with_context(|| format!("{ARENA} has no {column} of {elevator}"))
    }

    fn value(&self, elevator: &str, column: &str) -> Result<f64> {
        let text = self.text(elevator, column)?;
        text.parse().with_context(|| format!("{ARENA}: `{text}` of {elevator} is no number"))
    }

    /// The figures of an elevator in several columns.
    fn values(&self, elevator: &str, columns: &[&str]) -> Result<Vec<f64>> {
        columns.iter().map(|column| self.value(elevator, column)).collect()
    }

    /// The geometric mean of the figures of an elevator in several columns.
    fn mean(&self, elevator: &str, columns: &[&str]) -> Result<f64> {
        let values = self.values(elevator, columns)?;
        Ok((values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp())
    }

    /// The smallest and the largest figure of an elevator in several columns, as a range.
    fn range(&self, elevator: &str, columns: &[&str]) -> Result<String> {
        Ok(range(&self.values(elevator, columns)?, |value| format!("{value:.2}")))
    }

    /// The figures in a column of all elevators but one.
    fn others<'a>(&'a self, elevator: &'a str, column: &'a str) -> impl Iterator<Item = Result<(&'a str, f64)>> {
        let others = self.rows.iter().map(|(name, _)| name.as_str()).filter(move |name| *name != elevator);
        others.map(move |name| Ok((name, self.value(name, column)?)))
    }
}

/// The cells of a row of a table in Markdown.
fn cells(row: &str) -> Vec<String> {
    row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// The smallest and the largest of some values; once if both look the same.
fn range(values: &[f64], text: impl Fn(f64) -> String) -> String {
    let least = text(values.iter().copied().fold(f64::INFINITY, f64::min));
    let most = text(values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    if least == most { least } else { format!("{least} to {most}") }
}

/// States what the elevator of this project is worth.
fn own(means: &Table) -> Result<String> {
    let mut next = Vec::new();
    for column in ["throughput", "isolation"] {
        let ours = means.value(OWN, column)?;
        let others: Vec<(&str, f64)> = means.others(OWN, column).collect::<Result<_>>()?;
        let (name, best) =
            others.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).context("the arena has one elevator")?;
        ensure!(ours > best, "README.md says that {OWN} has the highest mean of {column}: {name} has");
        next.push(means.text(name, column)?);
    }
    let [throughput, isolation] = next[..] else { unreachable!("two columns") };
    Ok(format!(
        "[`{OWN}`](docs/elevators/{OWN}.md), a scheduler of this project that learns the costs of a drive, has the \
         highest means there: it reaches {} of the throughput of the best scheduler that starves no process (the \
         next best: {throughput}), and under it the process that is served least gets {} of the throughput that it \
         would have if it had its share of the drive for itself (the next best: {isolation}). On some drives and \
         workloads another scheduler is better; the page lists them.",
        means.text(OWN, "throughput")?,
        means.text(OWN, "isolation")?,
    ))
}

/// States in how many cases the elevator of this project is within the bounds.
fn bounds(means: &Table) -> Result<String> {
    let text = |column| means.text(OWN, column);
    for (name, latency) in means.others(OWN, "latency").collect::<Result<Vec<_>>>()? {
        ensure!(latency > means.value(OWN, "latency")?, "{ARENA} says that {OWN} has the least latency: {name} has");
    }
    ensure!(text("missed deadlines")? == "0.0", "{ARENA} says that {OWN} misses no deadline");
    Ok(format!(
        "[`{OWN}`](elevators/{OWN}.md), which learns the costs of the drive, has the highest means of throughput and \
         isolation and the lowest mean of latency. It misses no deadline. It is within the bounds in {} cases for \
         throughput, {} for isolation and {} for latency; the page lists [the others](#cases-that-{OWN}-loses).",
        text("cases at least 0.97")?,
        text("cases at least 0.9")?,
        text("cases at most 1.1")?,
    ))
}

/// The tables with a column for each drive.
struct ByDrive {
    throughput: Table,
    latency: Table,
    isolation: Table,
}

impl ByDrive {
    /// The table of docs/which-scheduler.md.
    fn choice(&self) -> Result<String> {
        Ok(format!(
            "| device | choose | reason, compared with `none`, `mq-deadline`, `kyber` and `bfq` |\n|---|---|---|\n{}\n{}\n{}",
            self.disks()?,
            self.arrays()?,
            self.flash()?
        ))
    }

    /// Checks that an elevator is the best of the current ones in the mean over drives.
    fn ensure_best(&self, elevator: &str, table: &Table, drives: &[&str], greatest: bool) -> Result<()> {
        let ours = table.mean(elevator, drives)?;
        for other in PRESENT.into_iter().filter(|other| *other != elevator) {
            let theirs = table.mean(other, drives)?;
            ensure!(
                if greatest { ours >= theirs } else { ours <= theirs },
                "docs/which-scheduler.md says that {elevator} is the best of the four on {}: {other} is",
                drives.join(", ")
            );
        }
        Ok(())
    }

    fn disks(&self) -> Result<String> {
        let (bfq, deadline) = ("bfq", "mq-deadline");
        self.ensure_best(bfq, &self.isolation, &DISKS, true)?;
        self.ensure_best(deadline, &self.throughput, &DISKS, true)?;
        let (ours, theirs) = (self.latency.values(bfq, &DISKS)?, self.latency.values(deadline, &DISKS)?);
        ensure!(
            ours.iter().zip(&theirs).all(|(ours, theirs)| ours < theirs),
            "docs/which-scheduler.md says that bfq's latencies are below those of mq-deadline on every disk"
        );
        let more = self.throughput.values(deadline, &DISKS)?.into_iter().zip(self.throughput.values(bfq, &DISKS)?);
        let more: Vec<f64> = more.map(|(deadline, bfq)| (deadline / bfq - 1.0) * 100.0).collect();
        Ok(format!(
            "| rotating disk | `bfq`; `mq-deadline` if only throughput counts | `bfq` has the best isolation ({}, \
             `mq-deadline` {}) and lower latencies than `mq-deadline` ({} times the lowest, `mq-deadline` {}); \
             `mq-deadline` has {} % more throughput |",
            self.isolation.range(bfq, &DISKS)?,
            self.isolation.range(deadline, &DISKS)?,
            range(&ours, |value| format!("{value:.1}")),
            range(&theirs, |value| format!("{value:.1}")),
            range(&more, |value| format!("{value:.0}")),
        ))
    }

    fn arrays(&self) -> Result<String> {
        for (table, greatest) in [(&self.throughput, true), (&self.latency, false), (&self.isolation, true)] {
            self.ensure_best("bfq", table, &ARRAYS, greatest)?;
        }
        let mut others = Vec::new();
        for other in PRESENT.into_iter().filter(|other| *other != "bfq") {
            others.extend(self.throughput.values(other, &ARRAYS)?);
        }
        Ok(format!(
            "| array of disks | `bfq` | `bfq` is the best of the four in throughput ({}, the others {}), latency and isolation |",
            self.throughput.range("bfq", &ARRAYS)?,
            range(&others, |value| format!("{value:.2}")),
        ))
    }

    fn flash(&self) -> Result<String> {
        let (none, bfq) = ("noop", "bfq");
        self.ensure_best(none, &self.throughput, &FLASH, true)?;
        self.ensure_best(bfq, &self.latency, &FLASH, false)?;
        let parts = self.throughput.values(bfq, &FLASH)?.into_iter().zip(self.throughput.values(none, &FLASH)?);
        let parts: Vec<f64> = parts.map(|(bfq, none)| bfq / none * 100.0).collect();
        Ok(format!(
            "| flash: SATA, NVMe, a volume of a cloud | `none`; `bfq` if latency counts more than throughput | \
             `none` has the throughput of the best elevator ({}), and no CPU cost; `bfq` has the lowest latencies \
             ({} times the lowest, `none` {}) with {} % of the throughput of `none` |",
            self.throughput.range(none, &FLASH)?,
            range(&self.latency.values(bfq, &FLASH)?, |value| format!("{value:.1}")),
            range(&self.latency.values(none, &FLASH)?, |value| format!("{value:.1}")),
            range(&parts, |value| format!("{value:.0}")),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Arena\n\n## Standings\n\nText.\n\n\
        | elevator | throughput | cases at least 0.97 | latency | cases at most 1.1 | isolation | cases at least 0.9 | missed deadlines |\n\
        | --- | --- | --- | --- | --- | --- | --- | --- |\n\
        | paternoster | 0.92 | 140 of 198 | 1.9 | 33 of 108 | 0.76 | 139 of 198 | 0.0 |\n\
        | bfq | 0.67 | 86 of 198 | 2.0 | 9 of 108 | 0.46 | 5 of 198 | 70.1 |\n\
        | noop | 0.85 | 3 of 198 | 3.0 | 8 of 108 | 0.1 | 4 of 198 | 0.0 |\n\n\
        ### By drive: throughput\n";

    #[test]
    fn means_are_stated_as_the_standings_have_them() {
        let means = Table::parse(PAGE, "## Standings").expect("a table");
        let text = own(&means).expect("the highest means");
        assert!(text.contains("0.92 of the throughput") && text.contains("(the next best: 0.85)"), "{text}");
        assert!(text.contains("least gets 0.76 of the throughput") && text.contains("(the next best: 0.46)"), "{text}");
        let beaten = Table::parse(&PAGE.replace("| 0.46 |", "| 0.77 |"), "## Standings").expect("a table");
        let error = own(&beaten).expect_err("bfq isolates better").to_string();
        assert!(error.contains("isolation") && error.contains("bfq"), "{error}");
        let text = bounds(&means).expect("the least latency");
        assert!(text.contains("in 140 of 198 cases for throughput, 139 of 198 for isolation and 33 of 108"), "{text}");
        for (old, new) in [("| 2.0 |", "| 1.8 |"), ("139 of 198 | 0.0", "139 of 198 | 0.1")] {
            let other = Table::parse(&PAGE.replace(old, new), "## Standings").expect("a table");
            assert!(bounds(&other).is_err(), "{new}");
        }
        assert!(Table::parse(PAGE, "### By drive: throughput").is_err());
        assert!(means.text("cfq", "throughput").is_err() && means.value("bfq", "cases at least 0.97").is_err());
    }

    #[test]
    fn a_choice_that_the_figures_contradict_is_an_error() {
        let table = |own: f64| {
            let drives = [&DISKS[..], &ARRAYS, &FLASH].concat();
            let row = |name: &str, value: f64| (name.to_owned(), vec![value.to_string(); drives.len()]);
            Table {
                columns: drives.iter().map(|drive| (*drive).to_owned()).collect(),
                rows: PRESENT.iter().map(|name| row(name, if *name == "bfq" { own } else { 1.0 })).collect(),
            }
        };
        let tables = |throughput, latency, isolation| ByDrive {
            throughput: table(throughput),
            latency: table(latency),
            isolation: table(isolation),
        };
        let disks = tables(0.8, 0.5, 2.0).disks().expect("bfq is the choice");
        assert!(disks.contains("isolation (2.00, `mq-deadline` 1.00)") && disks.contains("has 25 % more"), "{disks}");
        assert!(tables(0.8, 0.5, 0.9).disks().is_err() && tables(1.1, 0.5, 2.0).disks().is_err());
        assert!(tables(0.8, 1.5, 2.0).disks().is_err());
        assert!(tables(1.1, 0.5, 2.0).arrays().is_ok() && tables(0.9, 0.5, 2.0).arrays().is_err());
        assert!(tables(0.8, 0.5, 0.1).flash().expect("both").contains("with 80 % of the throughput"));
        assert!(tables(1.1, 0.5, 0.1).flash().is_err() && tables(0.8, 1.5, 0.1).flash().is_err());
    }
}
