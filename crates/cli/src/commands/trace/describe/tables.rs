//! Formats the tables of a description.

use comfy_table::{CellAlignment, Table};
use hoistway_trace::describe::{
    Depths, Description, Figures, Mix, Phases, ProcessFigures, RequestFigures, Rule, RuleKind, SeekFigures,
};

use crate::output;
use hoistway_units::figures::{figure, percent};

/// Cell without a value.
const NONE: &str = "-";
/// Index of the column of requests right after a completion.
const AFTER: usize = 5;

/// Requests by operation. `merged` is the number of merged bios of reads and writes, known for the
/// whole trace only.
pub fn mix(part: &RequestFigures, merged: Option<[u64; 2]>, seconds: f64) -> Table {
    let header = ["", "bios", "merged", "requests", "MB", "MB/s", "mean kB"];
    let mut table = output::table(&header, 1);
    let Mix { reads, writes, discards, flushes, others, .. } = part.mix;
    let requests = |of: usize| {
        let count = |size: &hoistway_trace::describe::SizeCount| [size.reads, size.writes, size.discards][of];
        part.sizes.iter().map(count).sum::<u64>()
    };
    let rows = [
        ("reads", reads, merged.map(|merged| merged[0]), requests(0), part.mix.read_bytes),
        ("writes", writes, merged.map(|merged| merged[1]), requests(1), part.mix.write_bytes),
        ("discards", discards, None, requests(2), part.mix.discard_bytes),
    ];
    for (name, bios, merged, requests, bytes) in rows.into_iter().filter(|row| row.1 > 0) {
        let merged = merged.map_or(String::new(), |merged| merged.to_string());
        let size = if requests == 0 { NONE.to_owned() } else { figure(bytes as f64 / requests as f64 / 1e3) };
        let megabytes = bytes as f64 / 1e6;
        let texts = [bios.to_string(), merged, requests.to_string(), figure(megabytes), rate(megabytes, seconds), size];
        table.add_row(std::iter::once(name.to_owned()).chain(texts));
    }
    for (name, bios) in [("flushes", flushes), ("others", others)].into_iter().filter(|row| row.1 > 0) {
        table.add_row([name.to_owned(), bios.to_string(), String::new(), bios.to_string()]);
    }
    table
}

/// Durations of the steps, optionally with explanations.
pub fn phases(phases: &Phases, explained: bool) -> Table {
    let mut header = vec!["ms", "", "count", "mean", "p50", "p90", "p99", "max"];
    if !explained {
        header.remove(1);
    }
    let mut table = output::table(&header, if explained { 2 } else { 1 });
    let rows = [
        ("Q2Q", "between submissions", &phases.q2q_ns),
        ("Q2G", "until a request is free", &phases.q2g_ns),
        ("G2I", "in the plug", &phases.g2i_ns),
        ("Q2M", "until merged", &phases.q2m_ns),
        ("I2D", "in the elevator", &phases.i2d_ns),
        ("M2D", "merged, until issued", &phases.m2d_ns),
        ("D2C", "in the device", &phases.d2c_ns),
        ("Q2C", "in all", &phases.q2c_ns),
        ("flush", "flushes, in all", &phases.flush_q2c_ns),
        ("pre", "flush before the data", &phases.preflush_ns),
        ("post", "flush after the data", &phases.postflush_ns),
    ];
    for (name, what, figures) in rows.into_iter().filter(|row| row.2.count > 0) {
        let mut cells = vec![name.to_owned()];
        if explained {
            cells.push(what.to_owned());
        }
        cells.push(figures.count.to_string());
        cells.extend(spread(figures, ms));
        table.add_row(cells);
    }
    table
}

/// Distances between consecutive requests, one row for each order.
pub fn seeks(rows: &[(&str, &SeekFigures)]) -> Table {
    let header = ["distances, MB", "next %", "back %", "mean", "p50", "p90", "p99", "max"];
    let mut table = output::table(&header, 1);
    for (name, seeks) in rows.iter().filter(|row| row.1.distance_sectors.count > 0) {
        let mut cells = vec![(*name).to_owned(), percent(seeks.sequential_share()), percent(seeks.backward_share())];
        cells.extend(spread(&seeks.distance_sectors, |sectors| figure(sectors * 512.0 / 1e6)));
        table.add_row(cells);
    }
    table
}

/// Queue depths.
pub fn depth(description: &Description) -> Table {
    let mut table = output::table(&["requests", "mean", "p50", "p90", "p99", "max"], 1);
    let depth = &description.depth;
    let rows: [(&str, &Depths); 5] = [
        ("under way, over time", &depth.under_way_over_time),
        ("in the device, over time", &depth.in_device_over_time),
        ("under way when another comes (Q)", &depth.under_way_at_q),
        ("in the device when another comes (Q)", &depth.in_device_at_q),
        ("in the device with one more (D)", &depth.in_device_at_d),
    ];
    let has_issues = description.counts.reads.issued + description.counts.writes.issued > 0;
    for (name, depths) in rows.into_iter().filter(|(name, _)| has_issues || !name.contains("device")) {
        let Depths { mean, p50, p90, p99, max } = *depths;
        let counts = [p50, p90, p99, max].map(|count| count.to_string());
        table.add_row([name.to_owned(), figure(mean)].into_iter().chain(counts));
    }
    table
}

/// Number of requests by size.
pub fn sizes(part: &RequestFigures) -> Table {
    let with_discards = part.mix.discards > 0;
    let header = ["size up to", "reads", "writes", "discards"];
    let mut table = output::table(&header[..if with_discards { 4 } else { 3 }], 1);
    for size in &part.sizes {
        let mut cells = vec![binary(size.bytes_max), size.reads.to_string(), size.writes.to_string()];
        if with_discards {
            cells.push(size.discards.to_string());
        }
        table.add_row(cells);
    }
    table
}

/// One row for each process: amounts and access pattern.
pub fn amounts(processes: &[ProcessFigures], seconds: f64) -> Table {
    let header = ["process", "bios", "MB", "MB/s", "read %", "sync %", "next %", "mean kB"];
    let mut table = output::table(&header, 1);
    for process in processes {
        let part = &process.part;
        let mix = &part.mix;
        let megabytes = mix.bytes() as f64 / 1e6;
        let neighbours = part.seeks.distance_sectors.count;
        table.add_row([
            process.title(),
            part.bios.to_string(),
            figure(megabytes),
            rate(megabytes, seconds),
            percent(mix.read_bytes as f64 / mix.bytes() as f64),
            percent(mix.sync as f64 / part.bios as f64),
            if neighbours == 0 { NONE.to_owned() } else { percent(part.seeks.sequential_share()) },
            figure(mix.bytes() as f64 / (part.bios - mix.flushes) as f64 / 1e3),
        ]);
    }
    table
}

/// One row for each process: latencies and rule, optionally with the requests right after a
/// completion.
pub fn latencies(processes: &[ProcessFigures], with_after: bool) -> Table {
    let mut header =
        vec!["\nprocess", "D2C\nmean ms", "Q2C\nmean ms", "\np99 ms", "think\np50 ms", "right\nafter %", "\nwaits for"];
    if !with_after {
        header.remove(AFTER);
    }
    let mut table = output::table(&header, 1);
    if let Some(last) = table.column_iter_mut().last() {
        last.set_cell_alignment(CellAlignment::Left);
    }
    for process in processes {
        let part = &process.part;
        let (phases, think) = (&part.phases, &part.think_ns);
        let some = |figures: &Figures, ns: f64| if figures.count == 0 { NONE.to_owned() } else { ms(ns) };
        let mut cells = vec![
            process.title(),
            some(&phases.d2c_ns, phases.d2c_ns.mean),
            some(&phases.q2c_ns, phases.q2c_ns.mean),
            some(&phases.q2c_ns, phases.q2c_ns.p99 as f64),
            some(think, think.p50 as f64),
            process.rule.map_or(NONE.to_owned(), |rule| percent(rule.right_after_share)),
            process.rule.as_ref().map_or(NONE.to_owned(), waits_for),
        ];
        if !with_after {
            cells.remove(AFTER);
        }
        table.add_row(cells);
    }
    table
}

/// Describes a rule in a few words.
pub fn waits_for(rule: &Rule) -> String {
    match (rule.kind, rule.period_ns) {
        (RuleKind::Closed, _) if rule.depth == 1 => "its last request".to_owned(),
        (RuleKind::Closed, _) => format!("one of up to {}", rule.depth),
        (RuleKind::Batches, _) => format!("all of up to {}", rule.depth),
        (RuleKind::Timer, Some(period_ns)) => format!("a timer of {} ms", ms(period_ns as f64)),
        (RuleKind::Undetermined, _) => "unknown: too few".to_owned(),
        _ => "nothing seen".to_owned(),
    }
}

/// Mean, p50, p90, p99 and maximum.
fn spread(figures: &Figures, show: impl Fn(f64) -> String) -> [String; 5] {
    let Figures { mean, p50, p90, p99, max, .. } = *figures;
    [mean, p50 as f64, p90 as f64, p99 as f64, max as f64].map(show)
}

/// Milliseconds with three significant digits.
pub fn ms(ns: f64) -> String {
    figure(ns / 1e6)
}

fn rate(megabytes: f64, seconds: f64) -> String {
    if seconds > 0.0 { figure(megabytes / seconds) } else { NONE.to_owned() }
}

/// Formats a power of two of bytes: "512 B", "4 KiB", "1 MiB".
fn binary(bytes: u64) -> String {
    match bytes {
        bytes if bytes < 1 << 10 => format!("{bytes} B"),
        bytes if bytes < 1 << 20 => format!("{} KiB", bytes >> 10),
        bytes if bytes < 1 << 30 => format!("{} MiB", bytes >> 20),
        bytes => format!("{} GiB", bytes >> 30),
    }
}
