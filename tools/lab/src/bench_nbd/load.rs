//! Loads of fio's nbd engine, one process per tenant.

use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A load of fio.
#[derive(Clone, Debug)]
pub struct Load {
    /// `randread`, `read`, `write` ...
    pub pattern: &'static str,
    /// The block size in fio's form, such as `4k`.
    pub block: &'static str,
    /// The queue depth of each connection.
    pub depth: u32,
    /// The number of connections.
    pub connections: u32,
    /// The duration in seconds.
    pub seconds: f64,
    /// The time before the measurement, in seconds.
    pub ramp_seconds: f64,
    /// The CPUs of client and server; `None` for the kernel's choice.
    pub cpus: Option<Cpus>,
    /// Additional options of fio.
    pub more: Vec<String>,
}

/// The CPU of the server and that of the client. The kernel's choice for two processes that wake
/// each other differs from run to run and affects the latency of single requests more than the
/// server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpus {
    pub server: u32,
    pub client: u32,
}

impl Load {
    /// Random reads of 4 KiB on one connection.
    pub fn random_reads(depth: u32, seconds: f64) -> Load {
        Load {
            pattern: "randread",
            block: "4k",
            depth,
            connections: 1,
            seconds,
            ramp_seconds: 0.0,
            cpus: None,
            more: Vec::new(),
        }
    }

    /// The command of fio, as in the published tables of the peers: without fio's map of blocks,
    /// and with different offsets in every run.
    fn command(&self, uri: &str) -> Command {
        let mut command = match self.cpus {
            None => Command::new("fio"),
            Some(cpus) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &cpus.client.to_string(), "fio"]);
                command
            }
        };
        command.args(["--name=j", "--ioengine=nbd", "--size=1G", "--time_based", "--group_reporting", "--thread"]);
        command.args(["--norandommap", "--randrepeat=0", "--output-format=json"]);
        command.arg(format!("--uri={uri}")).arg(format!("--rw={}", self.pattern));
        command.arg(format!("--bs={}", self.block)).arg(format!("--iodepth={}", self.depth));
        command
            .arg(format!("--numjobs={}", self.connections))
            .arg(format!("--runtime={}ms", (self.seconds * 1e3) as u64));
        if self.ramp_seconds > 0.0 {
            command.arg(format!("--ramp_time={}ms", (self.ramp_seconds * 1e3) as u64));
        }
        command.args(&self.more);
        command
    }

    /// Starts the load.
    pub fn start(&self, uri: &str) -> Result<Running> {
        let mut command = self.command(uri);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().context("cannot start fio")?;
        Ok(Running { child })
    }

    /// Runs the load to its end.
    pub fn run(&self, uri: &str) -> Result<FioFigures> {
        self.start(uri)?.finish()
    }
}

/// A running fio.
#[derive(Debug)]
pub struct Running {
    child: Child,
}

impl Running {
    /// Waits for the end of fio and returns its figures.
    pub fn finish(self) -> Result<FioFigures> {
        let output = self.child.wait_with_output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            bail!("fio: {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
        }
        let json = text.find('{').map(|start| &text[start..]).context("fio printed no JSON")?;
        FioFigures::read(&serde_json::from_str(json).context("the output of fio")?)
    }
}

/// The figures of fio; rates of reads and writes are added.
#[derive(Clone, Copy, Debug)]
pub struct FioFigures {
    pub operations: f64,
    pub operations_per_s: f64,
    pub bytes_per_s: f64,
    /// The median latency of the direction with more operations, in ns.
    pub p50_ns: f64,
    pub p99_ns: f64,
}

impl FioFigures {
    fn read(document: &Value) -> Result<FioFigures> {
        let job = document.pointer("/jobs/0").context("no job in fio's JSON")?;
        if job.get("error").and_then(Value::as_i64) != Some(0) {
            bail!("fio: error {}", job["error"]);
        }
        let number = |pointer: String| job.pointer(&pointer).and_then(Value::as_f64).unwrap_or(0.0);
        let both = |key: &str| number(format!("/read/{key}")) + number(format!("/write/{key}"));
        let main = if number("/read/total_ios".to_owned()) >= number("/write/total_ios".to_owned()) {
            "read"
        } else {
            "write"
        };
        Ok(FioFigures {
            operations: both("total_ios"),
            operations_per_s: both("iops"),
            bytes_per_s: both("bw_bytes"),
            p50_ns: number(format!("/{main}/clat_ns/percentile/50.000000")),
            p99_ns: number(format!("/{main}/clat_ns/percentile/99.000000")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_are_added_and_the_latency_is_of_the_busier_one() {
        let direction = |ios: u64, p50: u64| {
            serde_json::json!({"total_ios": ios, "iops": ios as f64 / 2.0, "bw_bytes": ios * 4096,
                "clat_ns": {"percentile": {"50.000000": p50, "99.000000": 2 * p50}}})
        };
        let document =
            serde_json::json!({"jobs": [{"error": 0, "read": direction(30, 100), "write": direction(10, 7)}]});
        let figures = FioFigures::read(&document).expect("a whole document");
        assert_eq!((figures.operations, figures.operations_per_s, figures.bytes_per_s), (40.0, 20.0, 40.0 * 4096.0));
        assert_eq!((figures.p50_ns, figures.p99_ns), (100.0, 200.0));
    }
}
