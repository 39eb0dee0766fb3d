//! The real run: a server with the emulated drive, and fio as its clients.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use super::Under;
use super::rewrite::{Process, Rewritten};

/// How long the server may take to open its socket.
const START_MAX: Duration = Duration::from_secs(20);

/// What came out for one process.
#[derive(Debug)]
pub struct Measured {
    pub name: String,
    pub bytes_per_s: f64,
}

/// Serves the drive under an elevator with its tunables, runs fio on it, and tells what each
/// process got, in the order of the processes.
pub fn measure(rewritten: &Rewritten, drive: &str, under: &Under) -> Result<Vec<Measured>> {
    let runs = run(rewritten, drive, under, Process::section)?;
    rewritten
        .processes
        .iter()
        .zip(runs)
        .map(|(process, Ran { fio, .. })| match both(&fio, "bw_bytes") {
            bytes_per_s if bytes_per_s > 0.0 => Ok(Measured { name: process.name.clone(), bytes_per_s }),
            _ => bail!("fio did nothing for {}", process.name),
        })
        .collect()
}

/// How long a client takes from a reply until the next request that it lets it make, in ns: the
/// mean over the processes, in a run of its own under this elevator. fio and the server measure the
/// same requests in it: none is left out at the beginning.
pub fn turnaround_ns(rewritten: &Rewritten, drive: &str, under: &Under) -> Result<f64> {
    let runs = run(rewritten, drive, under, Process::section_without_ramp)?;
    let mut sum_ns = 0.0;
    for (process, ran) in rewritten.processes.iter().zip(&runs) {
        sum_ns += one_turnaround_ns(process, ran)?;
    }
    Ok(sum_ns / rewritten.processes.len().max(1) as f64)
}

/// What fio and the server tell of a process.
struct Ran {
    fio: Value,
    server: Value,
}

fn run(rewritten: &Rewritten, drive: &str, under: &Under, section: fn(&Process, &str) -> String) -> Result<Vec<Ran>> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let socket = folder.path().join("nbd.sock");
    let control = folder.path().join("control.sock");
    let configuration = folder.path().join("check.toml");
    fs::write(&configuration, configuration_text(rewritten, drive, under)?)?;
    let program = std::env::current_exe().context("cannot tell where this program is")?;
    let mut server = Server::start(&program, &configuration, &socket, &control)?;
    let job = folder.path().join("check.fio");
    let mut text = String::new();
    for process in &rewritten.processes {
        text += &section(process, &format!("nbd+unix:///{}?socket={}", process.id, socket.display()));
    }
    fs::write(&job, text)?;
    let document = run_fio(&job)?;
    let mut runs = Vec::new();
    for (index, process) in rewritten.processes.iter().enumerate() {
        let fio = document.pointer(&format!("/jobs/{index}")).context("fio's JSON has too few jobs")?.clone();
        runs.push(Ran { fio, server: server.stat(&program, &control, &process.id)? });
    }
    server.stop();
    Ok(runs)
}

fn one_turnaround_ns(process: &Process, ran: &Ran) -> Result<f64> {
    let fio = &ran.fio;
    let operations = both(fio, "total_ios");
    if operations <= 0.0 {
        bail!("fio did nothing for {}", process.name);
    }
    let mean = ran.server.pointer("/latency_ns/mean").and_then(Value::as_f64);
    let in_server_ns = mean.context("the server tells no mean latency")?;
    // With one request at a time all that is not the server's is the client's; with several, only
    // the way there and back can be told.
    let whole_ns = if process.depth == 1 {
        number(fio, "/read/runtime").max(number(fio, "/write/runtime")) * 1e6 / operations
    } else {
        let weighted = |direction: &str| {
            number(fio, &format!("/{direction}/clat_ns/mean")) * number(fio, &format!("/{direction}/total_ios"))
        };
        (weighted("read") + weighted("write")) / operations
    };
    Ok((whole_ns - in_server_ns).max(0.0))
}

fn number(document: &Value, pointer: &str) -> f64 {
    document.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0)
}

/// Of reads and writes together.
fn both(fio: &Value, key: &str) -> f64 {
    number(fio, &format!("/read/{key}")) + number(fio, &format!("/write/{key}"))
}

fn configuration_text(rewritten: &Rewritten, drive: &str, under: &Under) -> Result<String> {
    // A profile of one's own is named from where the command was given.
    let drive = if Path::new(drive).is_file() {
        let path = fs::canonicalize(drive)?.into_os_string().into_string();
        path.map_err(|path| anyhow!("{}: the path of a profile has to be UTF-8", path.display()))?
    } else {
        drive.to_owned()
    };
    let end_bytes =
        rewritten.processes.iter().map(|process| process.offset_bytes + process.size_bytes).max().unwrap_or(0);
    let tunables: Vec<String> = under.settings.iter().map(|set| format!("{} = {}", set.tunable, set.value)).collect();
    let mut text = format!(
        "[[device]]\nname = \"disk\"\nbackend = \"null:{end_bytes}\"\ndrive = {}\nelevator = \"{}\"\ntunables = {{ {} }}\n",
        toml::Value::String(drive),
        under.elevator.info().name,
        tunables.join(", ")
    );
    for process in &rewritten.processes {
        let id = &process.id;
        write!(
            text,
            "\n[[export]]\nname = \"{id}\"\ndevice = \"disk\"\noffset = \"{}\"\nsize = \"{}\"\n\n[[tenant]]\nname = \"{id}\"\nexport = \"{id}\"\n",
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

#[cfg(test)]
mod tests {
    use hoistway_core::Kind;

    use super::*;

    #[test]
    fn a_profile_whose_path_needs_quoting_and_tunables_stand_in_the_configuration() {
        let folder = tempfile::tempdir().expect("a folder");
        let drive = folder.path().join("Größe \"1\".toml").display().to_string();
        fs::write(&drive, "").expect("it can be written");
        let setting = crate::setting::parse("bfq.slice_idle=3").expect("a setting");
        let under = Under { elevator: Kind::Bfq, settings: vec![setting] };
        let rewritten = Rewritten { simulated: String::new(), processes: Vec::new() };
        let text = configuration_text(&rewritten, &drive, &under).expect("a configuration");
        let read: toml::Table = text.parse().unwrap_or_else(|error| panic!("{error}: {text}"));
        let device = &read["device"][0];
        let told = fs::canonicalize(&drive).expect("a path").display().to_string();
        assert_eq!(device["drive"].as_str(), Some(told.as_str()));
        assert_eq!(device["tunables"]["slice_idle"].as_integer(), Some(3));
    }
}
