//! A server that is running.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Folder, hoistway};

/// Long enough for a loaded machine; whoever waits so long has hung.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server in a folder of its own. It is killed when it is dropped.
pub struct Server {
    pub folder: Folder,
    child: Child,
    /// What it says is ready, one URI a line.
    pub uris: Vec<String>,
    out: mpsc::Receiver<String>,
    log: Option<JoinHandle<String>>,
}

impl Server {
    /// Starts one that listens to a Unix socket in its folder, with these arguments besides;
    /// `FOLDER` in them is the folder.
    #[track_caller]
    pub fn start(args: &[&str]) -> Server {
        Server::start_in(Folder::new(), args)
    }

    /// The same in a folder in which there is something already.
    #[track_caller]
    pub fn start_in(folder: Folder, args: &[&str]) -> Server {
        let here = folder.path("").display().to_string();
        let args: Vec<String> = args.iter().map(|arg| arg.replace("FOLDER/", &here)).collect();
        let socket = folder.path("s").display().to_string();
        let mut command = hoistway(&["serve", "--socket", &socket]);
        let mut child = command
            .args(&args)
            .env("RUST_LOG", "info,hoistway_server=debug,hoistway_reactor=debug,hoistway_blockdev=debug")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let (tell, out) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).for_each(|line| drop(tell.send(line))));
        let mut stderr = child.stderr.take().expect("it is piped");
        let log = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        let mut server = Server { folder, child, uris: Vec::new(), out, log: Some(log) };
        server.await_ready(&args);
        server
    }

    #[track_caller]
    fn await_ready(&mut self, args: &[String]) {
        match self.out.recv_timeout(PATIENCE) {
            Ok(line) => self.uris.push(uri(&line)),
            Err(_) => {
                let _ = self.child.kill();
                let log = self.log();
                panic!("it is not ready with {args:?}:\n{log}");
            }
        }
        while let Ok(line) = self.out.recv_timeout(Duration::from_millis(100)) {
            self.uris.push(uri(&line));
        }
    }

    /// The path of its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path("s")
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a process has a number");
        kill_process(pid, signal).expect("it is still there");
    }

    /// Ends it as an administrator does; answers its exit code and what it told. It leaves no file
    /// behind.
    #[track_caller]
    pub fn end(self) -> (Option<i32>, String) {
        self.signal(Signal::TERM);
        self.ended()
    }

    /// Waits until it has ended by itself.
    #[track_caller]
    pub fn ended(mut self) -> (Option<i32>, String) {
        let code = self.wait();
        let log = self.log();
        assert!(!log.contains("panicked"), "{log}");
        assert!(!self.socket().exists(), "the socket is left behind");
        (code, log)
    }

    #[track_caller]
    fn wait(&mut self) -> Option<i32> {
        let end = std::time::Instant::now() + PATIENCE;
        while std::time::Instant::now() < end {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let log = self.log();
        panic!("it does not end:\n{log}");
    }

    /// The most memory that it ever had, in bytes.
    pub fn memory_bytes_max(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it is still there");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells it");
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().expect("a number of kB");
        kib * 1024
    }

    fn log(&mut self) -> String {
        self.log.take().map(|log| log.join().unwrap_or_default()).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn uri(line: &str) -> String {
    line.strip_prefix("ready: ").unwrap_or_else(|| panic!("`{line}` is no line that says ready")).to_owned()
}

/// A file of so many bytes, with each 4 KiB block full of its number modulo 251.
pub fn write_pattern(path: &Path, bytes: usize) {
    let data: Vec<u8> = (0..bytes).map(|at| (at / 4096 % 251) as u8).collect();
    std::fs::write(path, data).expect("the folder can be written");
}
