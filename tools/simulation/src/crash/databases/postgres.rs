//! PostgreSQL with data checksums, run as a user of its own because it refuses root.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hoistway_reactor::simulated::Prng;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::clients::schema;
use super::programs::{command, command_as, output};

/// The programs that are needed.
pub const PROGRAMS: &[&str] =
    &["postgres", "initdb", "psql", "pg_isready", "pg_amcheck", "pg_checksums", "setpriv", "timeout"];
pub const BEGIN: &str = "begin";
/// Writes all tables and removes old parts of the log.
pub const BETWEEN: &str = "checkpoint;";
pub const ACKNOWLEDGE: &str = "\\echo";

/// The longest time until the server has recovered, and until it has ended.
const TIME_MAX: Duration = Duration::from_secs(300);
/// Bytes of a block of a data file.
const BLOCK: u64 = 8192;
/// The unprivileged user and group of machines without a user `postgres`.
const UNPRIVILEGED: (u32, u32) = (65_534, 65_534);

/// Where a server listens and logs.
pub struct Postgres {
    pub socket: PathBuf,
    pub log: PathBuf,
}

/// Returns the user and the group that the server runs as.
fn user() -> (u32, u32) {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let line = users.lines().find_map(|line| line.strip_prefix("postgres:"));
    let mut words = line.unwrap_or_default().split(':').skip(1).map(|word| word.parse().ok());
    match (words.next().flatten(), words.next().flatten()) {
        (Some(user), Some(group)) => (user, group),
        _ => UNPRIVILEGED,
    }
}

impl Postgres {
    /// Creates the directory and the database.
    pub fn create(&self, at: &Path) -> Result<(), String> {
        let (user_id, group_id) = user();
        std::fs::create_dir(at).map_err(|error| error.to_string())?;
        std::os::unix::fs::chown(at, Some(user_id), Some(group_id)).map_err(|error| error.to_string())?;
        let mut initdb = command_as("initdb", user());
        initdb.args(["--data-checksums", "--no-sync", "--auth=trust", "--username=postgres", "--wal-segsize=1"]);
        initdb.args(["--locale=C", "--encoding=UTF8", "-D"]).arg(at);
        output(&initdb)?;
        let server = self.start(at, &mut Prng::new(0))?;
        output(self.client().args(["-c", &format!("create extension amcheck;\n{}", schema())]))?;
        server.stop()
    }

    /// Returns a command that reads statements and ends at the first error.
    pub fn client(&self) -> Command {
        let mut client = command("psql");
        client.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", "postgres", "-h"]);
        client.arg(&self.socket);
        client
    }

    /// Starts the server and waits until it has recovered. The way in which it syncs its log is
    /// random.
    pub fn start(&self, at: &Path, prng: &mut Prng) -> Result<Server, String> {
        let log = File::create(&self.log).map_err(|error| error.to_string())?;
        let sync_method = prng.pick(&["fdatasync", "fsync", "open_datasync"]);
        let settings = [
            "listen_addresses=".to_owned(),
            format!("unix_socket_directories={}", self.socket.display()),
            format!("wal_sync_method={sync_method}"),
            // Without a standby, open_datasync writes the log with O_DIRECT.
            "wal_level=minimal".to_owned(),
            "max_wal_senders=0".to_owned(),
            // Small, so that pages and parts of the log are written and removed during a round.
            "shared_buffers=1MB".to_owned(),
            "max_wal_size=2MB".to_owned(),
            "min_wal_size=2MB".to_owned(),
            "bgwriter_delay=10ms".to_owned(),
            "autovacuum_naptime=1s".to_owned(),
        ];
        let mut server = command_as("postgres", user());
        server.arg("-D").arg(at).args(settings.iter().flat_map(|setting| ["-c", setting]));
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = server.spawn().map_err(|error| format!("postgres: {error}"))?;
        let mut server = Server { child, log: self.log.clone() };
        let began = Instant::now();
        loop {
            if server.child.try_wait().map_err(|error| error.to_string())?.is_some() {
                return Err(format!("the server does not start: {}", server.log()));
            }
            let mut is_ready = command("pg_isready");
            is_ready.args(["-q", "-U", "postgres", "-d", "postgres", "-h"]).arg(&self.socket);
            if is_ready.status().is_ok_and(|status| status.success()) {
                return Ok(server);
            }
            if began.elapsed() > TIME_MAX {
                return Err(format!("the server is not ready after {} s: {}", TIME_MAX.as_secs(), server.log()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs the checks of the database, those of checksums after it has been stopped.
    pub fn check(&self, at: &Path, server: Server) -> Result<(), String> {
        let mut amcheck = command("pg_amcheck");
        amcheck.args(["--heapallindexed", "-U", "postgres", "-d", "postgres", "-h"]).arg(&self.socket);
        output(&amcheck)?;
        server.stop()?;
        drop_partial_blocks(&at.join("base"))?;
        output(command_as("pg_checksums", user()).args(["--check", "-D"]).arg(at)).map(drop)
    }
}

/// Cuts the data files after their last complete block. A power failure may keep a part of an
/// extension that no record of the log refers to. The server counts complete blocks only;
/// `pg_checksums` refuses the rest.
fn drop_partial_blocks(base: &Path) -> Result<(), String> {
    let list = |directory: &Path| -> Result<Vec<PathBuf>, String> {
        let entries = std::fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        entries.map(|entry| Ok(entry.map_err(|error| error.to_string())?.path())).collect()
    };
    for database in list(base)? {
        for path in list(&database)? {
            let file = File::options().read(true).write(true).open(&path);
            let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
            let size = file.metadata().map_err(|error| error.to_string())?.len();
            let is_data = path.file_name().is_some_and(|name| name.as_encoded_bytes()[0].is_ascii_digit());
            if is_data && size % BLOCK != 0 {
                file.set_len(size / BLOCK * BLOCK).map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
    }
    Ok(())
}

/// A running server. Dropping it kills it.
pub struct Server {
    child: Child,
    log: PathBuf,
}

impl Server {
    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// Stops the server cleanly.
    fn stop(mut self) -> Result<(), String> {
        let pid = self.pid().ok_or("a server without a number")?;
        kill_process(pid, Signal::INT).map_err(|error| format!("cannot stop the server: {error}"))?;
        let began = Instant::now();
        loop {
            match self.child.try_wait().map_err(|error| error.to_string())? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("the server ended with {status}: {}", self.log())),
                None if began.elapsed() > TIME_MAX => {
                    return Err(format!("the server does not end within {} s: {}", TIME_MAX.as_secs(), self.log()));
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Kills all processes of the server.
    pub fn kill(mut self) {
        self.kill_all();
    }

    fn kill_all(&mut self) {
        let Some(pid) = self.pid().filter(|_| matches!(self.child.try_wait(), Ok(None))) else { return };
        // A stopped server starts no more processes.
        let _ = kill_process(pid, Signal::STOP);
        let children = children(pid);
        let _ = self.child.kill();
        let _ = self.child.wait();
        for child in &children {
            let _ = kill_process(*child, Signal::KILL);
        }
        let began = Instant::now();
        while children.iter().any(|child| is_alive(*child)) && began.elapsed() < TIME_MAX {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill_all();
    }
}

/// Lists the children of a process.
fn children(pid: Pid) -> Vec<Pid> {
    let pid = pid.as_raw_nonzero();
    let listed = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|child| Pid::from_raw(child.parse().ok()?)).collect()
}

/// Returns true unless the process has ended; its new parent may not have waited for it yet.
fn is_alive(pid: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    let is_zombie = status.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'));
    test_kill_process(pid).is_ok() && !is_zombie
}
