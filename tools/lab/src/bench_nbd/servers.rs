//! The servers that are compared: how each is started over a Unix socket, and what CPU time it has
//! used.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hoistway_workspace::{programs, server};

use crate::processor::{self, Cpu};

/// Bytes of every export that is compared: 1 GiB.
pub const EXPORT_BYTES: u64 = 1 << 30;
/// The file to which nbd-server, which runs in the background, writes its process id.
const PID_FILE: &str = "nbd-server.pid";
/// The longest time until a server opens its socket.
const START_MAX: Duration = Duration::from_secs(10);
/// The longest time from SIGTERM to the exit of a server before it is killed.
const STOP_MAX: Duration = Duration::from_secs(5);

/// A server with its backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Server {
    /// hoistway from memory, under this elevator or its default one.
    HoistwayMemory(Option<&'static str>),
    /// hoistway from a file.
    HoistwayFile,
    /// hoistway without storage.
    HoistwayNull,
    /// hoistway over an nbdkit that runs already.
    HoistwayRemote {
        /// The maximum number of connections to nbdkit.
        connections: u32,
    },
    NbdkitNull,
    NbdkitMemory,
    NbdkitFile,
    NbdServerFile,
    QemuNbdThreads,
    QemuNbdUring,
    /// qemu-storage-daemon over a file.
    QsdFile,
    /// qemu-storage-daemon over its null driver: no storage at all.
    QsdNull,
}

impl Server {
    /// The name of the server in tables.
    pub fn name(self) -> String {
        match self {
            Server::HoistwayMemory(None) => "hoistway memory".to_owned(),
            Server::HoistwayMemory(Some(elevator)) => format!("hoistway memory, {elevator}"),
            Server::HoistwayFile => "hoistway file".to_owned(),
            Server::HoistwayNull => "hoistway null".to_owned(),
            Server::HoistwayRemote { connections: 1 } => "hoistway over nbdkit, 1 connection".to_owned(),
            Server::HoistwayRemote { connections } => format!("hoistway over nbdkit, {connections} connections"),
            Server::NbdkitNull => "nbdkit null".to_owned(),
            Server::NbdkitMemory => "nbdkit memory".to_owned(),
            Server::NbdkitFile => "nbdkit file".to_owned(),
            Server::NbdServerFile => "nbd-server file".to_owned(),
            Server::QemuNbdThreads => "qemu-nbd threads".to_owned(),
            Server::QemuNbdUring => "qemu-nbd io_uring".to_owned(),
            Server::QsdFile => "qemu-storage-daemon file".to_owned(),
            Server::QsdNull => "qemu-storage-daemon null-co".to_owned(),
        }
    }

    /// Returns true for hoistway's server.
    pub fn is_ours(self) -> bool {
        self.program() == "hoistway"
    }

    /// The program of the server.
    fn program(self) -> &'static str {
        match self {
            Server::HoistwayMemory(_) | Server::HoistwayFile | Server::HoistwayNull | Server::HoistwayRemote { .. } => {
                "hoistway"
            }
            Server::NbdkitNull | Server::NbdkitMemory | Server::NbdkitFile => "nbdkit",
            Server::NbdServerFile => "nbd-server",
            Server::QemuNbdThreads | Server::QemuNbdUring => "qemu-nbd",
            Server::QsdFile | Server::QsdNull => "qemu-storage-daemon",
        }
    }

    /// Returns true if the program of the server is installed.
    pub fn is_installed(self) -> bool {
        self.is_ours() || programs::find(self.program()).is_some()
    }

    fn command(self, bench: &Bench) -> Result<Command> {
        let socket = bench.socket.display();
        let image = bench.image.display();
        let mut command = if self.is_ours() { Command::new(&bench.hoistway) } else { Command::new(self.program()) };
        match self {
            Server::HoistwayMemory(elevator) => {
                command.args(["serve", "--export", &format!("=mem:{EXPORT_BYTES}")]);
                if let Some(elevator) = elevator {
                    // Without busy polling, which would use the CPU time that an elevator saves.
                    command.args(["--elevator", elevator, "--watch", "0"]);
                }
            }
            Server::HoistwayNull => {
                command.args(["serve", "--export", &format!("=null:{EXPORT_BYTES}")]);
            }
            Server::HoistwayRemote { connections } => {
                let remote = bench.remote_socket();
                let export = format!("=nbd+unix:///?socket={},connections={connections}", remote.display());
                command.args(["serve", "--export", &export]);
            }
            Server::HoistwayFile => {
                command.args(["serve", "--export", &format!("={image}")]);
            }
            Server::NbdkitNull => {
                command.args(["-f", "-U", &socket.to_string(), "null", "size=1G"]);
            }
            Server::NbdkitMemory => {
                command.args(["-f", "-U", &socket.to_string(), "memory", "size=1G"]);
            }
            Server::NbdkitFile => {
                command.args(["-f", "-U", &socket.to_string(), "file", &image.to_string()]);
            }
            Server::NbdServerFile => {
                let configuration = bench.directory.join("nbd-server.conf");
                let text = format!(
                    "[generic]\nunixsock = {socket}\nlistenaddr = 127.0.0.1\n[default]\nexportname = {image}\nfilesize = {EXPORT_BYTES}\n"
                );
                fs::write(&configuration, text)?;
                command.arg("-C").arg(configuration).arg("-p").arg(bench.directory.join(PID_FILE));
            }
            Server::QemuNbdThreads | Server::QemuNbdUring => {
                let aio = if self == Server::QemuNbdThreads { "threads" } else { "io_uring" };
                command.args(["-t", "-e", "8", "-f", "raw", "--cache=writeback", &format!("--aio={aio}")]);
                command.args(["-k", &socket.to_string(), &image.to_string()]);
            }
            Server::QsdFile | Server::QsdNull => {
                let block = if self == Server::QsdNull {
                    format!("driver=null-co,node-name=disk,size={EXPORT_BYTES}")
                } else {
                    format!("driver=file,node-name=disk,aio=io_uring,filename={image}")
                };
                command.args(["--blockdev", &block]);
                command.args(["--nbd-server", &format!("addr.type=unix,addr.path={socket},max-connections=64")]);
                command.args(["--export", "type=nbd,id=e,node-name=disk,name=,writable=on"]);
            }
        }
        if self.is_ours() {
            command.args(["--socket", &socket.to_string()]);
        }
        Ok(command)
    }

    /// The name of the export, for its URI.
    pub fn export(self) -> &'static str {
        if self == Server::NbdServerFile { "default" } else { "" }
    }
}

/// The files of a run.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The directory of the run.
    pub directory: PathBuf,
    /// The socket.
    pub socket: PathBuf,
    /// The image for servers with files, on tmpfs.
    pub image: PathBuf,
    /// The program under test.
    pub hoistway: PathBuf,
}

impl Bench {
    /// The socket of the nbdkit behind [`Server::HoistwayRemote`].
    pub fn remote_socket(&self) -> PathBuf {
        self.directory.join("remote.sock")
    }

    /// The URI of an export.
    pub fn uri(&self, export: &str) -> String {
        format!("nbd+unix:///{export}?socket={}", self.socket.display())
    }
}

/// A running server.
#[derive(Debug)]
pub struct Running {
    process: Process,
    /// The process id of the server. It differs from the child's if the server runs in the
    /// background.
    pid: u32,
}

#[derive(Debug)]
enum Process {
    Ours(server::Server),
    Peer(Peer),
}

/// A server of another project. Dropping it kills the server, also one in the background.
#[derive(Debug)]
struct Peer {
    child: Child,
    pid: u32,
}

impl Drop for Peer {
    fn drop(&mut self) {
        if self.pid != self.child.id() {
            terminate(self.pid);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Starts a server and waits until it accepts connections.
    pub fn start(server: Server, bench: &Bench) -> Result<Running> {
        let mut command = server.command(bench)?;
        let started = if server.is_ours() {
            Running::start_ours(&mut command, &bench.directory)
        } else {
            Running::start_peer(&mut command, &bench.socket, &bench.directory)
        };
        started.with_context(|| server.name())
    }

    /// Starts hoistway's server by this command.
    pub fn start_ours(command: &mut Command, directory: &Path) -> Result<Running> {
        let server = server::Server::start(command, &directory.join("server.log"))?;
        Ok(Running { pid: server.pid(), process: Process::Ours(server) })
    }

    /// Starts a server of another project and waits for its socket.
    fn start_peer(command: &mut Command, socket: &Path, directory: &Path) -> Result<Running> {
        // An old socket would be mistaken for the new one.
        let _ = fs::remove_file(socket);
        let _ = fs::remove_file(directory.join(PID_FILE));
        let log = fs::File::create(directory.join("server.log"))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let mut child = command.spawn().with_context(|| format!("cannot start {:?}", command.get_program()))?;
        let began = Instant::now();
        let pid_file = directory.join(PID_FILE);
        let mut pid = Some(child.id());
        while !socket.exists() || pid.is_none() {
            if let Some(status) = child.try_wait()? {
                pid = fs::read_to_string(&pid_file).ok().and_then(|text| text.trim().parse().ok());
                if !status.success() {
                    bail!(
                        "the server exited at once ({status}): {}",
                        fs::read_to_string(directory.join("server.log"))?
                    );
                }
            }
            if began.elapsed() > START_MAX {
                let _ = child.kill();
                bail!("no socket after {} s", START_MAX.as_secs());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(50));
        if child.try_wait()?.is_some() {
            let text = fs::read_to_string(&pid_file).with_context(|| format!("cannot read {}", pid_file.display()))?;
            pid = text.trim().parse().ok();
        }
        let pid = pid.context("the server has written no process id")?;
        Ok(Running { process: Process::Peer(Peer { child, pid }), pid })
    }

    /// Binds all current and future threads of the server to one CPU.
    pub fn pin(&self, cpu: u32) -> Result<()> {
        for pid in processor::children(self.pid).into_iter().chain([self.pid]) {
            programs::run(
                Command::new("taskset")
                    .args(["-a", "-p", "-c", &cpu.to_string(), &pid.to_string()])
                    .stdout(Stdio::null()),
            )?;
        }
        Ok(())
    }

    /// The CPU time that the server has used, all threads and children included.
    pub fn cpu(&self) -> Result<Cpu> {
        Cpu::of(self.pid)
    }

    /// The resident memory of the server, in bytes.
    pub fn resident_bytes(&self) -> Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kib * 1024)
    }

    /// Stops the server.
    pub fn stop(self) {
        let mut peer = match self.process {
            // The exit status is not part of the measurement.
            Process::Ours(server) => return drop(server.stop()),
            Process::Peer(peer) => peer,
        };
        terminate(self.pid);
        let began = Instant::now();
        while began.elapsed() < STOP_MAX {
            let _ = peer.child.try_wait();
            if !Path::new(&format!("/proc/{}", self.pid)).exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn terminate(pid: u32) {
    // The process may have exited already.
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}
