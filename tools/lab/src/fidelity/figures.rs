//! The figures of a run: rates and latencies of the sections of a job file.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The direction of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the disk to the process.
    Read,
    /// From the process to the disk.
    Write,
}

impl Direction {
    /// The name in fio's results and on the page.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
        }
    }
}

/// The figures of a section of a job file in one direction, over all its processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The name of the section.
    pub section: String,
    /// The direction.
    pub direction: Direction,
    /// The number of requests of the processes.
    pub requests: u64,
    /// The time of the longest process in seconds; 0 if it was not kept.
    #[serde(default)]
    pub seconds: f64,
    /// The bytes of all processes over the time of the longest, in bytes a second.
    pub bytes_per_s: f64,
    /// The median completion latency in ns: the mean over the processes, weighted by requests.
    pub p50_ns: f64,
    /// The 10th percentile, by the same mean.
    pub p10_ns: f64,
    /// The 90th percentile, by the same mean.
    pub p90_ns: f64,
    /// The 99th percentile of the completion latency in ns, by the same mean.
    pub p99_ns: f64,
}

impl Figure {
    /// The figure of a section without requests.
    fn new(section: String, direction: Direction) -> Figure {
        let [seconds, bytes_per_s, p10_ns, p50_ns, p90_ns, p99_ns] = [0.0; 6];
        Figure { section, direction, requests: 0, seconds, bytes_per_s, p10_ns, p50_ns, p90_ns, p99_ns }
    }

    /// Returns true if the figure is that of a section in a direction.
    pub fn is_same_part(&self, section: &str, direction: Direction) -> bool {
        self.section == section && self.direction == direction
    }

    /// The percentiles, each with its name in fio's results.
    fn percentiles(&mut self) -> [(&'static str, &mut f64); 4] {
        [
            ("10.000000", &mut self.p10_ns),
            ("50.000000", &mut self.p50_ns),
            ("90.000000", &mut self.p90_ns),
            ("99.000000", &mut self.p99_ns),
        ]
    }
}

/// A figure for tests: 1,000 reads, with the same time for each.
#[cfg(test)]
pub fn example(section: &str, bytes_per_s: f64, latency_ns: f64) -> Figure {
    let mut figure = Figure::new(section.to_owned(), Direction::Read);
    figure.percentiles().into_iter().for_each(|(_, value)| *value = latency_ns);
    Figure { requests: 1000, bytes_per_s, ..figure }
}

/// The figures in results of fio, or of the simulator in fio's format. If a prefix is given, only
/// jobs whose names begin with it are read, and their sections have the rest of the name.
pub fn of_fio(document: &Value, prefix: &str) -> Vec<Figure> {
    let mut figures: Vec<(Figure, f64)> = Vec::new();
    for job in document["jobs"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let Some(section) = job["jobname"].as_str().and_then(|name| name.strip_prefix(prefix)) else { continue };
        for direction in [Direction::Read, Direction::Write] {
            let part = &job[direction.name()];
            let requests = part["total_ios"].as_u64().unwrap_or(0);
            if requests == 0 {
                continue;
            }
            let at = figures.iter().position(|(figure, _)| figure.is_same_part(section, direction));
            let at = at.unwrap_or_else(|| {
                let section = section.to_owned();
                figures.push((Figure::new(section, direction), 0.0));
                figures.len() - 1
            });
            let (figure, longest_ms) = &mut figures[at];
            let number = |value: &Value| value.as_f64().unwrap_or(0.0);
            let latency = &part["clat_ns"]["percentile"];
            figure.requests += requests;
            // Sums, from which means are made below.
            figure.bytes_per_s += number(&part["io_bytes"]);
            for (percentile, sum) in figure.percentiles() {
                *sum += number(&latency[percentile]) * requests as f64;
            }
            *longest_ms = longest_ms.max(number(&part["runtime"]));
        }
    }
    let mean = |(mut figure, longest_ms): (Figure, f64)| {
        figure.seconds = longest_ms / 1e3;
        figure.bytes_per_s *= 1e3 / longest_ms.max(1.0);
        let requests = figure.requests as f64;
        figure.percentiles().into_iter().for_each(|(_, sum)| *sum /= requests);
        figure
    };
    figures.into_iter().map(mean).collect()
}

/// The rate of all sections in bytes a second.
pub fn total(figures: &[Figure]) -> f64 {
    figures.iter().map(|figure| figure.bytes_per_s).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_a_section_are_those_of_its_processes() {
        let text = r#"{"jobs": [
            {"jobname": "none/a", "read": {"total_ios": 10, "io_bytes": 3000, "runtime": 1000,
              "clat_ns": {"percentile": {"50.000000": 100, "99.000000": 1000}}}, "write": {"total_ios": 0}},
            {"jobname": "none/a", "read": {"total_ios": 30, "io_bytes": 3000, "runtime": 2000,
              "clat_ns": {"percentile": {"50.000000": 200, "99.000000": 2000}}}},
            {"jobname": "bfq/a", "read": {"total_ios": 1, "io_bytes": 1, "runtime": 1}}]}"#;
        let document = serde_json::from_str(text).expect("it is JSON");
        let figures = of_fio(&document, "none/");
        assert_eq!(figures.len(), 1);
        let figure = &figures[0];
        assert_eq!((figure.section.as_str(), figure.direction, figure.requests), ("a", Direction::Read, 40));
        assert_eq!((figure.seconds, figure.bytes_per_s, figure.p50_ns, figure.p99_ns), (2.0, 3000.0, 175.0, 1750.0));
        assert_eq!(total(&figures), 3000.0);
    }
}
