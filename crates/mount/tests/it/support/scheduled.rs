//! A scheduled mount served by another process, which can be killed if it hangs.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use hoistway_config::mount::WriteBackChoice;
use hoistway_config::{Draft, HostEnvironment};
use hoistway_control::LogControl;
use hoistway_mount::scheduled::Scheduled;
use hoistway_mount::{Backing, MountOptions, Options, Session, Users, WriteBack};
use tempfile::TempDir;

const SERVE: &str = "HOISTWAY_SCHEDULED_MOUNT_FOR_A_TEST";

/// The mount.
pub struct Scheduling {
    child: Child,
    /// Keeps the output pipe open, since the process would fail without it.
    _output: BufReader<ChildStdout>,
    place: TempDir,
    metrics: u16,
}

impl Scheduling {
    /// Mounts `source` with a configuration.
    pub fn new(source: &Path, config: &str) -> Scheduling {
        let place = tempfile::Builder::new().prefix("hoistway-mount-").tempdir().expect("a directory");
        std::fs::create_dir(place.path().join("at")).expect("a directory");
        std::fs::write(place.path().join("config"), config).expect("it is ours");
        let mut child = Command::new(std::env::current_exe().expect("a program"))
            .args(["--exact", "mounts_for_another_process", "--ignored", "--nocapture"])
            .env(SERVE, format!("{}|{}", source.display(), place.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it begins");
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut lines = output.by_ref().lines().map_while(Result::ok);
        let metadata = lines.find_map(|line| Some(line.split_once("mounted ")?.1.parse()));
        let metrics = metadata.expect("the other process has mounted").expect("a port");
        Scheduling { child, _output: output, place, metrics }
    }

    /// Returns the mount point.
    pub fn path(&self) -> PathBuf {
        self.place.path().join("at")
    }

    /// Returns the process ID.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Connects to the control socket with a timeout.
    pub fn control(&self, within: Duration) -> Control {
        let stream = UnixStream::connect(self.place.path().join("control")).expect("it listens");
        stream.set_read_timeout(Some(within)).expect("it can");
        Control { to: stream.try_clone().expect("a descriptor"), from: BufReader::new(stream) }
    }

    /// Connects to the metrics and sends a part of a request.
    pub fn begin_scrape(&self) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.metrics))?;
        stream.write_all(b"GET /met")?;
        Ok(stream)
    }

    /// Fetches the metrics as a scraper does.
    pub fn metrics(&self, within: Duration) -> io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.metrics))?;
        stream.set_read_timeout(Some(within))?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Kills the process, which releases all waiting clients.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Scheduling {
    fn drop(&mut self) {
        // The process ends when its input is closed. If it does not, it is killed, so that the test
        // can end.
        drop(self.child.stdin.take());
        for _ in 0..1000 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.kill();
        let _ = Command::new("umount").arg("-l").arg(self.path()).stderr(Stdio::null()).status();
    }
}

/// A connection to a control socket.
pub struct Control {
    to: UnixStream,
    from: BufReader<UnixStream>,
}

impl Control {
    /// Returns the answer to a command, one string per line.
    pub fn query(&mut self, what: &str) -> io::Result<Vec<String>> {
        writeln!(self.to, "{what}")?;
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.from.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match line.trim_end().strip_prefix("= ") {
                Some(answer) => lines.push(answer.to_owned()),
                None if line == "ok\n" || line.starts_with("ok: ") => return Ok(lines),
                None => return Err(io::Error::other(line)),
            }
        }
    }
}

/// Serves a mount if this process was started for that, until its input ends. Returns true if it
/// did.
pub fn serve() -> bool {
    let Ok(what) = std::env::var(SERVE) else { return false };
    let (source, place) = what.split_once('|').expect("two words");
    let (source, place) = (Path::new(source), Path::new(place));
    let text = std::fs::read_to_string(place.join("config")).expect("it is there");
    let config = Draft::mount_from_toml(&text, "config").check_mount(&HostEnvironment).expect("it can be used").config;
    let root = std::fs::File::open(source).expect("it is there");
    let metadata = root.metadata().expect("it is open");
    let root = Arc::new(Backing::new(root.into(), metadata.dev(), metadata.ino()));
    let gate = Arc::new(Scheduled::new(source.to_owned(), &root, &config).expect("a gate"));
    let usual = MountOptions::default();
    let threads = config.mount.threads.map_or(usual.threads, |threads| threads as usize);
    let mount_options = MountOptions { users: Users::All, threads, ..usual };
    let write_back = match config.mount.write_back {
        WriteBackChoice::Ours => WriteBack::Ours,
        WriteBackChoice::Kernel => WriteBack::Kernel,
    };
    let options = Options { write_back, ..Options::default() };
    let session = Session::mount(source, &place.join("at"), gate.clone(), options, &mount_options).expect("it mounts");
    let endpoints = gate.start_endpoints(Box::new(Quiet)).expect("a thread");
    let control = UnixListener::bind(place.join("control")).expect("a socket");
    endpoints.control(OwnedFd::from(control)).expect("a thread");
    let metrics = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    println!("mounted {}", metrics.local_addr().expect("it is bound").port());
    endpoints.metrics(OwnedFd::from(metrics)).expect("a thread");
    let _ = io::stdin().read_to_end(&mut Vec::new());
    let _ = session.unmount(Duration::from_secs(2));
    gate.close();
    true
}

/// A log filter that does nothing.
struct Quiet;

impl LogControl for Quiet {
    fn filter(&self) -> String {
        "off".to_owned()
    }

    fn set(&mut self, _: &str) -> Result<(), String> {
        Ok(())
    }
}
