//! The real run: a server with the emulated drive, and fio as its clients.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hoistway_control::client::ControlClient;
use serde_json::Value;

use super::rewrite::{Process, Rewritten};
use super::{ElevatorSetup, EmulationCheck};
use crate::BenchError;

/// Timeout of the start of the server.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Measured throughput of one process.
#[derive(Debug)]
pub struct MeasuredProcess {
    /// Name of the process.
    pub name: String,
    /// Bytes read and written a second.
    pub bytes_per_s: f64,
}

/// Serves the drive under an elevator with its tunables, runs fio on it, and returns the throughput
/// of each process in order.
pub fn measure(
    rewritten: &Rewritten,
    check: &EmulationCheck,
    setup: &ElevatorSetup,
) -> Result<Vec<MeasuredProcess>, BenchError> {
    let runs = run(rewritten, check, setup, Process::section)?;
    rewritten
        .processes
        .iter()
        .zip(runs)
        .map(|(process, ProcessRun { fio, .. })| match both(&fio, "bw_bytes") {
            bytes_per_s if bytes_per_s > 0.0 => Ok(MeasuredProcess { name: process.name.clone(), bytes_per_s }),
            _ => Err(incomplete(format!("fio did nothing for {}", process.name))),
        })
        .collect()
}

/// Measures the turnarounds of clients in a separate run under this elevator: the mean time of each
/// process from a reply to the next request, in ns. fio and the server measure the same requests,
/// because none is omitted at the beginning.
pub fn turnarounds_ns(
    rewritten: &Rewritten,
    check: &EmulationCheck,
    setup: &ElevatorSetup,
) -> Result<Vec<f64>, BenchError> {
    let runs = run(rewritten, check, setup, Process::section_without_ramp)?;
    rewritten.processes.iter().zip(&runs).map(|(process, run)| turnaround_ns(process, run)).collect()
}

/// Results of fio and of the server for a process.
struct ProcessRun {
    fio: Value,
    server: Value,
}

fn run(
    rewritten: &Rewritten,
    check: &EmulationCheck,
    setup: &ElevatorSetup,
    section: fn(&Process, &str) -> String,
) -> Result<Vec<ProcessRun>, BenchError> {
    let folder = tempfile::tempdir().map_err(BenchError::io("cannot make a temporary folder"))?;
    let socket = folder.path().join("nbd.sock");
    let control = folder.path().join("control.sock");
    let configuration = folder.path().join("check.toml");
    write(&configuration, &configuration_text(rewritten, &check.drive, setup)?)?;
    let server = Server::start(&check.program, &configuration, &socket, &control)?;
    let job = folder.path().join("check.fio");
    let mut text = String::new();
    for process in &rewritten.processes {
        text += &section(process, &format!("nbd+unix:///{}?socket={}", process.id, socket.display()));
    }
    write(&job, &text)?;
    let document = run_fio(&job)?;
    let mut runs = Vec::new();
    for (index, process) in rewritten.processes.iter().enumerate() {
        let fio = document.pointer(&format!("/jobs/{index}"));
        let fio = fio.ok_or_else(|| incomplete("fio's JSON has too few jobs"))?.clone();
        runs.push(ProcessRun { fio, server: tenant_stat(&control, &process.id)? });
    }
    server.stop();
    Ok(runs)
}

fn turnaround_ns(process: &Process, run: &ProcessRun) -> Result<f64, BenchError> {
    let fio = &run.fio;
    // The server's mean is over flushes, too.
    let operations = both(fio, "total_ios") + number(fio, "/sync/total_ios");
    if operations <= 0.0 {
        return Err(incomplete(format!("fio did nothing for {}", process.name)));
    }
    let mean = run.server.pointer("/latency_ns/mean").and_then(Value::as_f64);
    let in_server_ns = mean.ok_or_else(|| incomplete("the server reports no mean latency"))?;
    // With one request at a time, all time outside the server is the client's. With several, only
    // the time of the way there and back is known.
    let whole_ns = if process.depth == 1 {
        number(fio, "/read/runtime").max(number(fio, "/write/runtime")) * 1e6 / operations
    } else {
        let weighted = |direction: &str| {
            number(fio, &format!("/{direction}/clat_ns/mean")) * number(fio, &format!("/{direction}/total_ios"))
        };
        let syncs_ns = number(fio, "/sync/lat_ns/mean") * number(fio, "/sync/total_ios");
        (weighted("read") + weighted("write") + syncs_ns) / operations
    };
    Ok((whole_ns - in_server_ns).max(0.0))
}

fn number(document: &Value, pointer: &str) -> f64 {
    document.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0)
}

/// Sum of a figure over reads and writes.
fn both(fio: &Value, key: &str) -> f64 {
    number(fio, &format!("/read/{key}")) + number(fio, &format!("/write/{key}"))
}

fn configuration_text(rewritten: &Rewritten, drive: &str, setup: &ElevatorSetup) -> Result<String, BenchError> {
    // The path of a profile is relative to the working directory of this command.
    let drive = if Path::new(drive).is_file() {
        let path = fs::canonicalize(drive).map_err(BenchError::io(drive))?.into_os_string().into_string();
        path.map_err(|path| incomplete(format!("{}: the path of a profile must be UTF-8", path.display())))?
    } else {
        drive.to_owned()
    };
    let end_bytes =
        rewritten.processes.iter().map(|process| process.offset_bytes + process.size_bytes).max().unwrap_or(0);
    let tunables: Vec<String> = setup.settings.iter().map(|set| format!("{} = {}", set.tunable, set.value)).collect();
    let mut text = format!(
        "[[device]]\nname = \"disk\"\nbackend = \"null:{end_bytes}\"\ndrive = {}\nelevator = \"{}\"\ntunables = {{ {} }}\n",
        toml::Value::String(drive),
        setup.elevator.info().name,
        tunables.join(", ")
    );
    for process in &rewritten.processes {
        let id = &process.id;
        let _ = write!(
            text,
            "\n[[export]]\nname = \"{id}\"\ndevice = \"disk\"\noffset = \"{}\"\nsize = \"{}\"\n\n[[tenant]]\nname = \"{id}\"\nexport = \"{id}\"\n",
            process.offset_bytes, process.size_bytes
        );
        if let Some((class, level)) = process.priority {
            let class = match class {
                1 => "realtime",
                3 => "idle",
                _ => "best-effort",
            };
            let _ = writeln!(text, "class = \"{class}\"\nlevel = {level}");
        }
    }
    Ok(text)
}

fn run_fio(job: &Path) -> Result<Value, BenchError> {
    let mut command = Command::new("fio");
    command.args(["--thread", "--output-format=json"]).arg(job).stdin(Stdio::null());
    let missing = "cannot start fio: --check needs it (Debian's package fio, with its nbd engine)";
    let output = command.output().map_err(BenchError::io(missing))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(incomplete(format!("fio: {}: {}", output.status, error.trim())));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let json = text.find('{').and_then(|start| text.get(start..)).ok_or_else(|| incomplete("fio printed no JSON"))?;
    serde_json::from_str(json).map_err(|error| incomplete(format!("the JSON of fio is malformed: {error}")))
}

fn incomplete(text: impl Into<String>) -> BenchError {
    BenchError::Incomplete(text.into())
}

fn write(path: &Path, text: &str) -> Result<(), BenchError> {
    fs::write(path, text).map_err(BenchError::io(path.display().to_string()))
}

/// Reads the statistics of a tenant from the control socket.
fn tenant_stat(control: &Path, tenant: &str) -> Result<Value, BenchError> {
    let path = format!("tenants/{tenant}/stat.json");
    let reply = ControlClient::connect(control)?.request(&format!("get {path}"))?;
    let json = serde_json::from_str(&reply.lines.join("\n"));
    json.map_err(|error| incomplete(format!("{path}: the server's JSON is malformed: {error}")))
}

/// The server process, killed when it is dropped.
struct Server {
    child: Child,
    log: PathBuf,
}

impl Server {
    fn start(program: &Path, configuration: &Path, socket: &Path, control: &Path) -> Result<Server, BenchError> {
        let log = configuration.with_extension("log");
        let failed = "cannot start the server";
        let file = fs::File::create(&log).map_err(BenchError::io(failed))?;
        let mut command = Command::new(program);
        command
            .args(["serve", "--config"])
            .arg(configuration)
            .arg("--socket")
            .arg(socket)
            .arg("--control")
            .arg(control);
        let output = file.try_clone().map_err(BenchError::io(failed))?;
        command.stdin(Stdio::null()).stdout(output).stderr(file);
        let mut server = Server { child: command.spawn().map_err(BenchError::io(failed))?, log };
        let started = Instant::now();
        while !socket.exists() {
            let has_ended = server.child.try_wait().map_err(BenchError::io(failed))?.is_some();
            if has_ended || started.elapsed() > START_TIMEOUT {
                let log = fs::read_to_string(&server.log).unwrap_or_default();
                return Err(incomplete(format!("the server did not start: {}", log.trim())));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(server)
    }

    fn stop(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use hoistway_core::Kind;
    use hoistway_sim::Setting;

    use super::*;

    #[test]
    fn the_configuration_has_quoted_paths_and_tunables() {
        let folder = tempfile::tempdir().expect("a folder");
        let drive = folder.path().join("Größe \"1\".toml").display().to_string();
        fs::write(&drive, "").expect("the file can be written");
        let setting = Setting::parse("bfq.slice_idle=3").expect("a setting");
        let setup = ElevatorSetup { elevator: Kind::Bfq, settings: vec![setting] };
        let rewritten = Rewritten { simulated: String::new(), processes: Vec::new() };
        let text = configuration_text(&rewritten, &drive, &setup).expect("a configuration");
        let read: toml::Table = text.parse().unwrap_or_else(|error| panic!("{error}: {text}"));
        let device = &read["device"][0];
        let canonical = fs::canonicalize(&drive).expect("a path").display().to_string();
        assert_eq!(device["drive"].as_str(), Some(canonical.as_str()));
        assert_eq!(device["tunables"]["slice_idle"].as_integer(), Some(3));
    }
}
