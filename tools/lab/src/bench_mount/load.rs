//! Loads of fio on a file, and their figures.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use hoistway_workspace::programs;
use serde_json::Value;

use super::ways::Reached;

/// A load on one file.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The heading of the load's table.
    pub title: &'static str,
    /// The options of fio, without file and output.
    pub options: &'static [&'static str],
}

/// The figures of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Bytes a second.
    pub bytes_per_second: f64,
    /// The number of operations.
    pub operations: f64,
    /// The median latency of an operation, in us.
    pub median_us: f64,
    /// The CPU time of fio and of the processes that serve the mount, in s.
    pub cpu_s: f64,
}

impl Figures {
    /// The CPU time per operation, in us.
    pub fn cpu_us(&self) -> f64 {
        self.cpu_s * 1e6 / self.operations.max(1.0)
    }

    /// The median of each figure.
    pub fn medians(of: &[Figures]) -> Figures {
        let median = |figure: fn(&Figures) -> f64| {
            let mut figures: Vec<f64> = of.iter().map(figure).collect();
            figures.sort_by(f64::total_cmp);
            figures.get(figures.len() / 2).copied().unwrap_or(0.0)
        };
        // CPU time per operation is comparable between runs with different numbers of operations.
        let operations = median(|figures| figures.operations);
        Figures {
            bytes_per_second: median(|figures| figures.bytes_per_second),
            operations,
            median_us: median(|figures| figures.median_us),
            cpu_s: median(Figures::cpu_us) * operations / 1e6,
        }
    }
}

impl Load {
    /// Runs the load on a file.
    pub fn run(&self, reached: &Reached, file: &str) -> Result<Figures> {
        let path = reached.at.join(file);
        let before = reached.cpu()?;
        let printed = programs::output(fio(&path).args(self.options))?;
        let daemon_s = reached.cpu()?.since(before);
        let document: Value = serde_json::from_str(&printed).context("the output of fio")?;
        let job = &document["jobs"][0];
        let figure = |value: &Value| value.as_f64().unwrap_or(0.0);
        let side = if figure(&job["read"]["total_ios"]) > 0.0 { &job["read"] } else { &job["write"] };
        let runtime_s = figure(&job["job_runtime"]) / 1e3;
        let fio_s = (figure(&job["usr_cpu"]) + figure(&job["sys_cpu"])) / 100.0 * runtime_s;
        Ok(Figures {
            bytes_per_second: figure(&side["bw_bytes"]),
            operations: figure(&side["total_ios"]),
            median_us: figure(&side["clat_ns"]["percentile"]["50.000000"]) / 1e3,
            cpu_s: daemon_s + fio_s,
        })
    }
}

fn fio(path: &Path) -> Command {
    let mut command = Command::new("fio");
    command.args([
        "--name=load",
        "--output-format=json",
        "--ioengine=psync",
        "--allow_file_create=0",
        "--randrepeat=0",
    ]);
    command.arg(format!("--filename={}", path.display()));
    command
}
