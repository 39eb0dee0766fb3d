//! A running server process.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Folder, PATIENCE, Ran, run};

/// A server with its own folder. It is killed on drop.
pub struct Server {
    pub folder: Folder,
    child: Child,
    /// URIs of the lines `ready:` that were received.
    uris: RefCell<Vec<String>>,
    out: mpsc::Receiver<String>,
    log: Log,
}

impl Server {
    /// Starts a server with a Unix socket in its folder and these further arguments, in which
    /// `FOLDER` stands for the folder.
    #[track_caller]
    pub fn start(args: &[&str]) -> Server {
        Server::start_in(Folder::new(), args)
    }

    /// Starts a server in an existing folder.
    #[track_caller]
    pub fn start_in(folder: Folder, args: &[&str]) -> Server {
        Server::start_program(Path::new(env!("CARGO_BIN_EXE_hoistway")), folder, args)
    }

    /// Starts the server of another program in an existing folder.
    #[track_caller]
    pub fn start_program(program: &Path, folder: Folder, args: &[&str]) -> Server {
        let mut server = Server::launch(program, folder, args);
        if !server.is_ready() {
            server.fail(&format!("it is not ready with {args:?}"));
        }
        server
    }

    /// Starts a server in an existing folder, and once more after each start that fails.
    #[track_caller]
    pub fn start_repeatedly(folder: Folder, args: &[&str]) -> Server {
        let end = Instant::now() + PATIENCE;
        let launch = |folder| Server::launch(Path::new(env!("CARGO_BIN_EXE_hoistway")), folder, args);
        let mut server = launch(folder);
        while !server.is_ready() {
            if Instant::now() > end {
                server.fail(&format!("each start with {args:?} fails"));
            }
            let folder = std::mem::replace(&mut server.folder, Folder::new());
            drop(server);
            server = launch(folder);
        }
        server
    }

    fn launch(program: &Path, folder: Folder, args: &[&str]) -> Server {
        let here = folder.path("").display().to_string();
        let args: Vec<String> = args.iter().map(|arg| arg.replace("FOLDER/", &here)).collect();
        let socket = folder.path("s").display().to_string();
        let mut child = Command::new(program)
            .args(["serve", "--socket", &socket])
            .args(&args)
            .env("RUST_LOG", "info,hoistway_server=debug,hoistway_reactor=debug,hoistway_blockdev=debug")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let (sender, out) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line))));
        let log = Log::follow(child.stderr.take().expect("it is piped"));
        Server { folder, child, uris: RefCell::default(), out, log }
    }

    /// Waits for the first line `ready:`. Returns false if the server ends before it, or is late.
    #[track_caller]
    fn is_ready(&self) -> bool {
        let line = self.out.recv_timeout(PATIENCE);
        line.is_ok_and(|line| {
            self.uris.borrow_mut().push(uri(&line));
            true
        })
    }

    /// Ends the server, and panics with its log.
    #[track_caller]
    fn fail(&mut self, what: &str) -> ! {
        let _ = self.child.kill();
        panic!("{what}:\n{}", self.log.whole());
    }

    /// Waits for as many lines `ready:` as are needed, and returns the URI of one, counted from 0.
    #[track_caller]
    pub fn uri(&self, number: usize) -> String {
        let mut uris = self.uris.borrow_mut();
        while uris.len() <= number {
            let Ok(line) = self.out.recv_timeout(PATIENCE) else {
                panic!("there are no more lines `ready:` than those of {uris:?}");
            };
            uris.push(uri(&line));
        }
        uris[number].clone()
    }

    /// Path of the Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path("s")
    }

    /// Sends a signal to the server.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a process has a number");
        kill_process(pid, signal).expect("it is still there");
    }

    /// Sends SIGTERM, checks that no file is left, and returns the exit code and the log.
    #[track_caller]
    pub fn end(self) -> (Option<i32>, String) {
        self.signal(Signal::TERM);
        self.ended()
    }

    /// Waits until the server has ended by itself.
    #[track_caller]
    pub fn ended(mut self) -> (Option<i32>, String) {
        let code = self.wait();
        let log = self.log.whole();
        // Each line that the server printed says ready.
        self.uris.get_mut().extend(self.out.iter().map(|line| uri(&line)));
        assert!(!log.contains("panicked"), "{log}");
        assert!(!self.socket().exists(), "the socket is left behind");
        (code, log)
    }

    #[track_caller]
    fn wait(&mut self) -> Option<i32> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.fail("it does not end");
    }

    /// Peak memory of the server, in bytes.
    pub fn memory_bytes_max(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it is still there");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux reports the peak memory");
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().expect("a number of kB");
        kib * 1024
    }

    /// Waits until the log has a line that contains a text.
    #[track_caller]
    pub fn await_log(&self, expected: &str) {
        self.log.await_line(expected);
    }

    /// Waits until the server listens for requests of metrics, and returns its address.
    #[track_caller]
    pub fn metrics(&self) -> String {
        const BEFORE: &str = "listening metrics=";
        let log = self.log.await_line(BEFORE);
        let address = log.split(BEFORE).nth(1).and_then(|rest| rest.split_whitespace().next());
        address.expect("a line of the log has all its words").to_owned()
    }

    /// Stops all threads of the server until it receives SIGCONT.
    #[track_caller]
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        let end = Instant::now() + PATIENCE;
        while !self.is_stopped() {
            assert!(Instant::now() < end, "it is not stopped");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns true if all threads are stopped. Those of the kernel's io_uring do not count: they
    /// run no code of the server.
    fn is_stopped(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it is still there");
        let states = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("stat")).ok());
        states.filter(|state| !state.contains("(iou-")).all(|state| {
            let after_name = state.rsplit(") ").next();
            after_name.is_some_and(|rest| rest.starts_with('T'))
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The log of a running server, which a thread reads from a pipe.
struct Log {
    lines: Arc<(Mutex<String>, Condvar)>,
    reader: Option<JoinHandle<()>>,
}

impl Log {
    fn follow(stderr: ChildStderr) -> Log {
        let lines: Arc<(Mutex<String>, Condvar)> = Arc::default();
        let shared = lines.clone();
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let (text, grown) = &*shared;
                let mut text = text.lock().expect("no thread panics with the lock");
                text.push_str(&line);
                text.push('\n');
                grown.notify_all();
            }
        });
        Log { lines, reader: Some(reader) }
    }

    #[track_caller]
    fn await_line(&self, expected: &str) -> String {
        let (text, grown) = &*self.lines;
        let text = text.lock().expect("no thread panics with the lock");
        let waited = grown.wait_timeout_while(text, PATIENCE, |text| !text.contains(expected));
        let (text, _) = waited.expect("no thread panics with the lock");
        assert!(text.contains(expected), "`{expected}` is not logged:\n{text}");
        text.clone()
    }

    /// The log of a server that has ended.
    fn whole(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        self.lines.0.lock().expect("no thread panics with the lock").clone()
    }
}

fn uri(line: &str) -> String {
    line.strip_prefix("ready: ").unwrap_or_else(|| panic!("`{line}` is no line that says ready")).to_owned()
}

/// Creates a file whose 4 KiB blocks are filled with their number modulo 251.
pub fn write_pattern(path: &Path, bytes: usize) {
    let data: Vec<u8> = (0..bytes).map(|at| (at / 4096 % 251) as u8).collect();
    std::fs::write(path, data).expect("the folder can be written");
}

/// Runs `hoistway ctl` on the control socket of a server.
pub fn ctl(server: &Server, args: &[&str]) -> Ran {
    // That of the configuration, or the default beside the socket.
    let own = server.folder.path("control").exists();
    let control = server.folder.name(if own { "control" } else { "s-control" });
    run(&["ctl"].iter().chain(args).copied().chain(["--control", control.as_str()]).collect::<Vec<_>>())
}

/// Returns the value of a path of the control tree.
#[track_caller]
pub fn get(server: &Server, path: &str) -> String {
    let ran = ctl(server, &["get", path]);
    assert_eq!(ran.code, Some(0), "{path}: {}", ran.err);
    ran.out.trim_end().to_owned()
}
