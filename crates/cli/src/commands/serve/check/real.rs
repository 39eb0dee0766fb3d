//! The real run: a server with the emulated drive, and fio as its clients.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hoistway_core::Kind;
use serde_json::Value;

use super::rewrite::Rewritten;

/// How long the server may take to open its socket.
const START_MAX: Duration = Duration::from_secs(20);

/// What came out for one process.
#[derive(Debug)]
pub struct Measured {
    pub name: String,
    pub bytes_per_s: f64,
    /// From a reply until the next request that it lets the client make, in ns.
    pub turnaround_ns: f64,
}

/// Serves the drive under an elevator, runs fio on it, and tells what each process got, in the order of the processes.
pub fn measure(rewritten: &Rewritten, drive: &str, elevator: Kind) -> Result<Vec<Measured>> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let socket = folder.path().join("nbd.sock");
    let control = folder.path().join("control.sock");
    let configuration = folder.path().join("check.toml");
    fs::write(&configuration, configuration_text(rewritten, drive, elevator)?)?;
    let program = std::env::current_exe().context("cannot tell where this program is")?;
    let mut server = Server::start(&program, &configuration, &socket, &control)?;
    let job = folder.path().join("check.fio");
    let mut text = String::new();
    for process in &rewritten.processes {
        text += &process.section(&format!("nbd+unix:///{}?socket={}", process.name, socket.display()));
    }
    fs::write(&job, text)?;
    let document = run_fio(&job)?;
    let mut measured = Vec::new();
    for (index, process) in rewritten.processes.iter().enumerate() {
        let stat = server.stat(&program, &control, &process.name)?;
        let fio = document.pointer(&format!("/jobs/{index}")).context("fio's JSON has too few jobs")?;
        measured.push(one(&process.name, process.depth, fio, &stat)?);
    }
    server.stop();
    Ok(measured)
}

/// fio's figures and the server's.
fn one(name: &str, depth: u32, fio: &Value, stat: &Value) -> Result<Measured> {
    let number = |document: &Value, pointer: &str| document.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0);
    let both = |key: &str| number(fio, &format!("/read/{key}")) + number(fio, &format!("/write/{key}"));
    let operations = both("total_ios");
    if operations <= 0.0 {
        bail!("fio did nothing for {name}");
    }
    let in_server_ns =
        stat.pointer("/latency_ns/mean").and_then(Value::as_f64).context("the server tells no mean latency")?;
    let runtime_ns = number(fio, "/read/runtime").max(number(fio, "/write/runtime")) * 1e6;
    // With one request at a time all that is not the server's is the client's; with several, only the way there and back can be told.
    let whole_ns = if depth == 1 {
        runtime_ns / operations
    } else {
        let weighted = |direction: &str| {
            number(fio, &format!("/{direction}/clat_ns/mean")) * number(fio, &format!("/{direction}/total_ios"))
        };
        (weighted("read") + weighted("write")) / operations
    };
    Ok(Measured {
        name: name.to_owned(),
        bytes_per_s: both("bw_bytes"),
        turnaround_ns: (whole_ns - in_server_ns).max(0.0),
    })
}

fn configuration_text(rewritten: &Rewritten, drive: &str, elevator: Kind) -> Result<String> {
    // A profile of one's own is named from where the command was given.
    let drive =
        if Path::new(drive).is_file() { fs::canonicalize(drive)?.display().to_string() } else { drive.to_owned() };
    let end_bytes =
        rewritten.processes.iter().map(|process| process.offset_bytes + process.size_bytes).max().unwrap_or(0);
    let mut text = format!(
        "[[device]]\nname = \"disk\"\nbackend = \"null:{end_bytes}\"\ndrive = {drive:?}\nelevator = \"{}\"\n",
        elevator.info().name
    );
    for process in &rewritten.processes {
        let name = &process.name;
        write!(
            text,
            "\n[[export]]\nname = {name:?}\ndevice = \"disk\"\noffset = \"{}\"\nsize = \"{}\"\n\n[[tenant]]\nname = {name:?}\nexport = {name:?}\n",
            process.offset_bytes, process.size_bytes
        )?;
        if let Some((class, level)) = process.priority {
            let class = match class {
                1 => "realtime",
                3 => "idle",
                _ => "best-effort",
            };
            writeln!(text, "class = \"{class}\"\nlevel = {level}")?;
        }
    }
    Ok(text)
}

fn run_fio(job: &Path) -> Result<Value> {
    let mut command = Command::new("fio");
    command.args(["--thread", "--output-format=json"]).arg(job).stdin(Stdio::null());
    let output =
        command.output().context("cannot start fio: --check needs it (Debian's package fio, with its nbd engine)")?;
    if !output.status.success() {
        bail!("fio: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let json = text.find('{').and_then(|start| text.get(start..)).context("fio printed no JSON")?;
    serde_json::from_str(json).context("what fio printed")
}

/// The server, killed when it is dropped.
struct Server {
    child: Child,
    log: PathBuf,
}

impl Server {
    fn start(program: &Path, configuration: &Path, socket: &Path, control: &Path) -> Result<Server> {
        let log = configuration.with_extension("log");
        let file = fs::File::create(&log)?;
        let mut command = Command::new(program);
        command
            .args(["serve", "--config"])
            .arg(configuration)
            .arg("--socket")
            .arg(socket)
            .arg("--control")
            .arg(control);
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let mut server = Server { child: command.spawn().context("cannot start the server")?, log };
        let began = Instant::now();
        while !socket.exists() {
            if server.child.try_wait()?.is_some() || began.elapsed() > START_MAX {
                bail!("the server did not start: {}", fs::read_to_string(&server.log)?.trim());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(server)
    }

    fn stat(&mut self, program: &Path, control: &Path, tenant: &str) -> Result<Value> {
        let path = format!("tenants/{tenant}/stat.json");
        let output = Command::new(program).args(["ctl", "get", &path, "--control"]).arg(control).output()?;
        if !output.status.success() {
            bail!("hoistway ctl get {path}: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        serde_json::from_slice(&output.stdout).with_context(|| format!("what hoistway ctl get {path} prints"))
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
