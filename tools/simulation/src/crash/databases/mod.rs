//! Databases that commit through a mount, and what must be left of them after a crash.
//!
//! Client processes insert rows and print each commit that the database acknowledged. At a random
//! moment the database is killed, or the mount together with it, or the power of the disk fails,
//! also directly after an acknowledgement. Then the database recovers from what is left. Every
//! commit that was acknowledged before a power failure must be there, as a whole, and the
//! database's own checks must be clean.
//!
//! Where to change what:
//! - the order of a round: `mod.rs`
//! - the transactions of the clients, and the comparison of the rows: `clients.rs`
//! - starting, stopping and checking a database: `postgres.rs`, `sqlite.rs`

mod clients;
mod postgres;
mod programs;
mod sqlite;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use hoistway_reactor::simulated::Prng;

use self::clients::Clients;
use self::postgres::{Postgres, Server};
use self::sqlite::{Journal, Sqlite};
use super::forgetting::{Cache, Disk, Fault};
use super::mounted::{MountSetUp, MountedProgram};

/// The longest time until the first commit of a round is acknowledged.
const FIRST_ACKNOWLEDGEMENT_MAX: Duration = Duration::from_secs(60);

/// A database, and the way in which it writes its journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseKind {
    /// PostgreSQL with data checksums.
    Postgres,
    /// SQLite with a write-ahead log, synced at each commit.
    SqliteWal,
    /// SQLite with a rollback journal that each commit removes; the directory is synced after that.
    SqliteDelete,
}

impl DatabaseKind {
    /// Returns a program that the database needs and that is not installed.
    pub fn missing_program(self) -> Option<&'static str> {
        let needed = match self {
            DatabaseKind::Postgres => postgres::PROGRAMS,
            DatabaseKind::SqliteWal | DatabaseKind::SqliteDelete => sqlite::PROGRAMS,
        };
        needed.iter().copied().find(|program| programs::find(program).is_none())
    }
}

/// The failure of a round.
#[derive(Debug)]
pub enum RoundError {
    /// The crash has destroyed something that was acknowledged.
    Loss(String),
    /// Something else failed, so the round proves nothing.
    Other(String),
}

impl From<String> for RoundError {
    fn from(text: String) -> RoundError {
        RoundError::Other(text)
    }
}

/// The event that ends a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The database is killed.
    Database,
    /// The mount and the database are killed.
    Mount,
    /// The power of the disk fails, and the mount and the database are killed.
    Power,
}

/// The choices of a round.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// The configuration of the mount.
    pub mount: MountSetUp,
    /// The page cache below the mount.
    pub cache: Cache,
    /// The end.
    pub crash: Crash,
}

impl Round {
    /// Returns the choices of a numbered round.
    pub fn new(number: u64, prng: &mut Prng) -> Round {
        let mount = MountSetUp::of_round(number, prng);
        let cache = if prng.permille(500) { Cache::Bypassed } else { Cache::WriteBack };
        Round { mount, cache, crash: prng.pick(&[Crash::Database, Crash::Mount, Crash::Power, Crash::Power]) }
    }
}

/// Sums over all rounds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Commits that a database acknowledged.
    pub acknowledged: u64,
    /// Rounds in which the power failed.
    pub power_failures: u64,
    /// Rounds in which the mount was killed and the power stayed on.
    pub mount_kills: u64,
}

/// The processes of a database.
enum Running {
    Postgres(Server),
    /// The clients themselves are the database.
    InClients,
}

/// A database on a disk that forgets what was not synced, below a mount.
pub struct TestBed {
    hoistway: PathBuf,
    place: tempfile::TempDir,
    disk: Disk,
    kind: DatabaseKind,
    counts: Counts,
}

impl TestBed {
    /// Creates the database. `hoistway` is the program that mounts.
    ///
    /// # Errors
    ///
    /// The disk cannot be mounted, or the database cannot be created.
    pub fn new(hoistway: &Path, kind: DatabaseKind, seed: u64) -> Result<TestBed, String> {
        let place = tempfile::tempdir().map_err(|error| error.to_string())?;
        // The database runs as another user.
        let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        open(place.path(), 0o755).map_err(|error| error.to_string())?;
        for name in ["below", "mounted", "socket"] {
            fs::create_dir(place.path().join(name)).map_err(|error| error.to_string())?;
        }
        open(&place.path().join("socket"), 0o777).map_err(|error| error.to_string())?;
        let disk = Disk::new(Fault::None, seed);
        let bed = TestBed { hoistway: hoistway.to_owned(), place, disk, kind, counts: Counts::default() };
        let session = bed.disk.mount(&bed.directory("below"), Cache::WriteBack)?;
        bed.create(&bed.directory("below").join("database"))?;
        drop(session);
        bed.disk.sync_all();
        Ok(bed)
    }

    /// Makes the disk faulty from now on.
    pub fn plant(&self, fault: Fault) {
        self.disk.set_fault(fault);
    }

    /// Returns the sums over all rounds so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn directory(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn sqlite(&self) -> Sqlite {
        let journal = if self.kind == DatabaseKind::SqliteWal { Journal::Wal } else { Journal::Delete };
        Sqlite { journal }
    }

    fn postgres(&self) -> Postgres {
        Postgres { socket: self.directory("socket"), log: self.directory("postgres.log") }
    }

    fn create(&self, at: &Path) -> Result<(), String> {
        match self.kind {
            DatabaseKind::Postgres => self.postgres().create(at),
            DatabaseKind::SqliteWal | DatabaseKind::SqliteDelete => self.sqlite().create(at),
        }
    }

    /// Mounts, lets clients commit, crashes, recovers and checks.
    ///
    /// # Errors
    ///
    /// A commit is missing or incomplete, the database is damaged, or the round did not get so far.
    pub fn play(&mut self, round: Round, prng: &mut Prng) -> Result<(), RoundError> {
        self.disk.power_on();
        self.disk.sync_all();
        let mut session = self.disk.mount(&self.directory("below"), round.cache)?;
        let mut mount = MountedProgram::start(&self.hoistway, &round.mount, self.place.path())?;
        let at = self.directory("mounted").join("database");
        let running = self.start(&at, prng)?;
        self.clear(&at)?;
        let clients = self.run_clients(&at, round.crash, prng, &mut mount)?;
        match round.crash {
            Crash::Database => running.kill(),
            Crash::Mount => {
                mount.kill();
                running.kill();
                self.counts.mount_kills += 1;
            }
            Crash::Power => {
                // Without effect if it has failed after an acknowledgement.
                self.disk.fail_power(prng);
                mount.kill();
                running.kill();
                self.counts.power_failures += 1;
            }
        }
        let expected = clients.end();
        self.counts.acknowledged += expected.acknowledged();
        if round.crash != Crash::Database {
            drop(mount);
            if round.crash == Crash::Power {
                // The page cache below goes with the power.
                drop(session);
                self.disk.power_on();
                session = self.disk.mount(&self.directory("below"), round.cache)?;
            }
            mount = MountedProgram::start(&self.hoistway, &round.mount, self.place.path())?;
        }
        let checked = self.recover(&at, prng, &expected).map_err(RoundError::Loss);
        drop(mount);
        drop(session);
        checked
    }

    fn start(&self, at: &Path, prng: &mut Prng) -> Result<Running, String> {
        match self.kind {
            DatabaseKind::Postgres => Ok(Running::Postgres(self.postgres().start(at, prng)?)),
            DatabaseKind::SqliteWal | DatabaseKind::SqliteDelete => Ok(Running::InClients),
        }
    }

    /// Runs statements and returns the rows of their results, columns separated by `|`.
    fn query(&self, at: &Path, statements: &str) -> Result<String, String> {
        match self.kind {
            DatabaseKind::Postgres => programs::output(self.postgres().client().args(["-c", statements])),
            DatabaseKind::SqliteWal | DatabaseKind::SqliteDelete => {
                programs::output(self.sqlite().client(at).arg(statements))
            }
        }
    }

    /// Removes the rows of the former round.
    fn clear(&self, at: &Path) -> Result<(), String> {
        self.query(at, "delete from entries; update counters set n = 0;").map(drop)
    }

    /// Lets clients commit until the moment of the crash.
    fn run_clients(
        &self,
        at: &Path,
        crash: Crash,
        prng: &mut Prng,
        mount: &mut MountedProgram,
    ) -> Result<Clients, String> {
        let (begin, between, acknowledge) = match self.kind {
            DatabaseKind::Postgres => (postgres::BEGIN, postgres::BETWEEN, postgres::ACKNOWLEDGE),
            DatabaseKind::SqliteWal | DatabaseKind::SqliteDelete => (sqlite::BEGIN, "", sqlite::ACKNOWLEDGE),
        };
        let script = clients::Script { begin, between, acknowledge };
        let client = || match self.kind {
            DatabaseKind::Postgres => self.postgres().client(),
            DatabaseKind::SqliteWal | DatabaseKind::SqliteDelete => self.sqlite().client(at),
        };
        // The power fails in the thread that reads the acknowledgement, before anything follows it.
        let cuts_after = (crash == Crash::Power && prng.permille(500)).then(|| prng.between(1, 150));
        let cut = cuts_after.map(|count| {
            let (disk, mut prng) = (self.disk.clone(), prng.split());
            clients::Cut::new(count, move || disk.fail_power(&mut prng))
        });
        let (mut clients, signs) = Clients::start(client, script, &self.disk, cut, prng, self.place.path())?;
        if let Err(error) = signs.has_acknowledged.recv_timeout(FIRST_ACKNOWLEDGEMENT_MAX) {
            let problem = clients.ended_early().unwrap_or_else(|| mount.log());
            return Err(format!("no commit was acknowledged: {error}: {problem}"));
        }
        let wait = Duration::from_millis(prng.between(100, 1500));
        let early = match signs.has_cut.recv_timeout(wait) {
            Ok(()) => None,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => clients.ended_early(),
        };
        if let Some(problem) = early.filter(|_| self.disk.is_on()) {
            return Err(format!("a client ended before the crash: {problem}"));
        }
        if !mount.is_alive() {
            return Err(format!("the mount ended before it was killed: {}", mount.log()));
        }
        Ok(clients)
    }

    /// Starts the database again, compares its rows, and runs its own checks.
    fn recover(&self, at: &Path, prng: &mut Prng, expected: &clients::Expected) -> Result<(), String> {
        let running = self.start(at, prng).map_err(|error| format!("recovery: {error}"))?;
        let counters = self.query(at, "select client, n from counters order by client;")?;
        let rows = self.query(at, "select client, n, payload from entries order by client, n;")?;
        expected.compare(&counters, &rows)?;
        match running {
            Running::Postgres(server) => self.postgres().check(at, server),
            Running::InClients => self.sqlite().check(at),
        }
    }
}

impl Running {
    fn kill(self) {
        match self {
            Running::Postgres(server) => server.kill(),
            Running::InClients => {}
        }
    }
}
