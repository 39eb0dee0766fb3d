//! Kills `hoistway mount` under load repeatedly: `cargo xtask crash-test --of mount [--rounds N]
//! [--seed N]`. Requires root.
//!
//! The mount stands above a file system (FUSE) in this process that keeps every change in memory
//! until a sync makes it durable. Client processes change files through the mount and print what
//! they do. At a random moment the mount is killed, or the power fails, also directly after an
//! acknowledgement: then everything that was not made durable is dropped, but for random sectors
//! and names. Everything that a client synced must be there, and nothing older. If only the mount
//! was killed and it writes back itself, every acknowledged write must be there.
//!
//! In turn the mount or the kernel writes back, the queue is absent, scheduled or throttled, the
//! page cache below is used or bypassed, and in every fifth round writes and syncs below fail with
//! EIO: then a sync must report the error, or the data are durable.
//!
//! Before the rounds proper the same is done over disks with planted faults until a loss is found:
//! a test that cannot fail proves nothing.

mod mount_clients;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use hoistway_reactor::simulated::Prng;
use hoistway_simulation::crash::forgetting::{Cache, Disk, Fault};
use hoistway_simulation::crash::mounted::{MountSetUp, MountedProgram};
use hoistway_simulation::crash::{CrashOptions, exit_code};

use self::mount_clients::model::{Model, Promise, Record, Step};
use self::mount_clients::{FILE_BYTES, appended, in_place, replaced};

const CLIENTS: u64 = 4;
/// The maximum number of crashes until a fault must be detected.
const FAULT_ROUNDS_MAX: u64 = 100;
/// The text by which a loss is recognised in an error.
const LOST: &str = "after the crash";

type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, directory, number, seed] = &arguments[..]
        && word == "--client"
    {
        mount_clients::run(Path::new(directory), number.parse().unwrap_or(0), seed.parse().unwrap_or(0));
        return ExitCode::SUCCESS;
    }
    exit_code(run(arguments))
}

/// The configuration of a round.
#[derive(Clone, Copy, Debug)]
struct Round {
    mount: MountSetUp,
    cache: Cache,
    power_fails: bool,
    errors: bool,
}

impl Round {
    fn new(number: u64, prng: &mut Prng) -> Round {
        let mount = MountSetUp::of_round(number, prng);
        let errors = number % 5 == 4;
        Round {
            mount,
            cache: if (number / 6).is_multiple_of(2) { Cache::Bypassed } else { Cache::WriteBack },
            power_fails: errors || prng.permille(600),
            errors,
        }
    }

    /// The promise that the mount gives in this round.
    fn promise(&self) -> Promise {
        if self.power_fails || self.mount.kernel_writes { Promise::Synced } else { Promise::Acknowledged }
    }
}

#[derive(Default)]
struct Counts {
    changes: u64,
    syncs: u64,
    errors: u64,
    power_failures: u64,
}

fn run(arguments: Vec<String>) -> Result<()> {
    let options = CrashOptions::parse(arguments, &[], |_, _| Ok(false))?;
    let began = Instant::now();
    // A disk that ignores only O_DSYNC loses nothing here: the kernel follows each such write
    // through the mount by a sync.
    for fault in [Fault::Fsync, Fault::DirectorySync, Fault::DroppedWrites] {
        for kernel_writes in [false, true] {
            detect_fault(fault, kernel_writes, &options)?;
        }
    }
    let mut bed = TestBed::new(&options, Fault::None)?;
    let mut lost = 0;
    for number in 0..options.rounds {
        let mut prng = Prng::new(options.seed.wrapping_mul(1_000_003) ^ number);
        let round = Round::new(number, &mut prng);
        match bed.play(number, round, prng, &options) {
            Ok(()) => {}
            Err(what) if what.contains(LOST) => {
                eprintln!("round {number} ({round:?}): {what}");
                lost += 1;
            }
            Err(what) => return Err(format!("round {number} ({round:?}): {what}")),
        }
    }
    let counts = &bed.counts;
    println!(
        "crash-test of the mount: {} rounds in {:.1} s, {} power failures: {} changes acknowledged, {} syncs, \
         {} errors below, {} reported to clients; {lost} rounds with a loss",
        options.rounds,
        began.elapsed().as_secs_f64(),
        counts.power_failures,
        counts.changes,
        counts.syncs,
        bed.disk.errors(),
        counts.errors,
    );
    if lost > 0 { Err(format!("{lost} of {} rounds lost data", options.rounds)) } else { Ok(()) }
}

/// Crashes over a disk with a fault, until data are lost.
fn detect_fault(fault: Fault, kernel_writes: bool, options: &CrashOptions) -> Result<()> {
    let mut bed = TestBed::new(options, fault)?;
    let mode = if kernel_writes { "write-back by the kernel" } else { "write-back by the mount" };
    for number in 0..FAULT_ROUNDS_MAX {
        let mut prng = Prng::new(options.seed.wrapping_mul(7_000_003) ^ number);
        let round = Round::new(number * 2 + u64::from(kernel_writes), &mut prng);
        let round = Round { power_fails: true, errors: false, cache: Cache::Bypassed, ..round };
        match bed.play(number, round, prng, options) {
            Ok(()) => {}
            Err(what) if what.contains(LOST) => {
                let loss = what.lines().next().unwrap_or_default();
                println!("{mode}: a disk with the fault {fault:?} is detected by crash {}: {loss}", number + 1);
                return Ok(());
            }
            Err(other) => return Err(format!("{fault:?}, {mode}: {other}")),
        }
    }
    Err(format!("{mode}: {FAULT_ROUNDS_MAX} crashes over a disk with the fault {fault:?}, and nothing was missing"))
}

/// The disk and the directories of the two mounts.
struct TestBed {
    place: tempfile::TempDir,
    disk: Disk,
    counts: Counts,
}

impl TestBed {
    fn new(options: &CrashOptions, fault: Fault) -> Result<TestBed> {
        let place = tempfile::tempdir().map_err(|error| error.to_string())?;
        for name in ["below", "mounted"] {
            fs::create_dir(place.path().join(name)).map_err(|error| error.to_string())?;
        }
        let disk = Disk::new(fault, options.seed);
        for client in 0..CLIENTS {
            disk.put(&in_place(client), vec![0; FILE_BYTES]);
            disk.put(&appended(client), Vec::new());
        }
        Ok(TestBed { place, disk, counts: Counts::default() })
    }

    fn below(&self) -> PathBuf {
        self.place.path().join("below")
    }

    fn mounted(&self) -> PathBuf {
        self.place.path().join("mounted")
    }

    /// Mounts, runs clients, kills, and checks what is left.
    fn play(&mut self, number: u64, round: Round, mut prng: Prng, options: &CrashOptions) -> Result<()> {
        self.disk.power_on();
        self.disk.sync_all();
        self.disk.set_errors(if round.errors { 4 } else { 0 });
        for client in 0..CLIENTS {
            // A log that is full begins anew.
            if self.disk.get(&appended(client)).is_none_or(|log| log.len() > FILE_BYTES) {
                self.disk.put(&appended(client), Vec::new());
            }
        }
        let models = (0..CLIENTS).map(|client| self.model(client)).collect();
        let session = self.disk.mount(&self.below(), round.cache)?;
        let mut mount = MountedProgram::start(&options.hoistway, &round.mount, self.place.path())?;
        let outcome = self.run_clients(number, round, &mut prng, &mut mount, models);
        drop(mount);
        let checked = outcome.and_then(|models| self.check(&models, round));
        drop(session);
        self.disk.set_errors(0);
        checked
    }

    fn model(&self, client: u64) -> Model {
        let mut model = Model::default();
        for name in [in_place(client), appended(client)] {
            model.add_file(&name, self.disk.get(&name).unwrap_or_default());
        }
        for name in replaced(client) {
            model.add_name(&name, self.disk.get(&name));
        }
        model
    }

    fn run_clients(
        &mut self,
        number: u64,
        round: Round,
        prng: &mut Prng,
        mount: &mut MountedProgram,
        models: Vec<Model>,
    ) -> Result<Vec<Model>> {
        let stopping = Arc::new(AtomicBool::new(false));
        let (has_cut, cut) = channel();
        let cuts_permille = if round.power_fails && prng.permille(500) { 5 } else { 0 };
        let mut running = Vec::new();
        for (client, model) in models.into_iter().enumerate() {
            let program = std::env::current_exe().map_err(|error| error.to_string())?;
            let mut child = Command::new(program)
                .arg("--client")
                .arg(self.mounted())
                .args([client.to_string(), (prng.any() ^ number).to_string()])
                .stdout(Stdio::piped())
                .stdin(Stdio::null())
                .spawn()
                .map_err(|error| error.to_string())?;
            let output = BufReader::new(child.stdout.take().ok_or("the output is not piped")?);
            let reader = Reader {
                model,
                round,
                disk: self.disk.clone(),
                stopping: stopping.clone(),
                prng: prng.split(),
                cuts_permille,
                has_cut: has_cut.clone(),
            };
            running.push((child, std::thread::spawn(move || reader.run(output.lines()))));
        }
        let _ = cut.recv_timeout(Duration::from_micros(prng.between(30_000, 500_000)));
        let alive = mount.is_alive();
        stopping.store(true, Ordering::SeqCst);
        if round.power_fails {
            self.disk.fail_power(prng);
            self.counts.power_failures += 1;
        }
        mount.kill();
        let mut models = Vec::new();
        let mut problem = (!alive).then(|| format!("the mount ended before it was killed: {}", mount.log()));
        for (mut child, reader) in running {
            let _ = child.wait();
            match reader.join().map_err(|_| "a reader panicked".to_owned())? {
                Ok(model) => models.push(model),
                Err(what) => problem = problem.or(Some(what)),
            }
        }
        problem.map_or(Ok(models), Err)
    }

    fn check(&mut self, models: &[Model], round: Round) -> Result<()> {
        let below = self.below();
        for model in models {
            self.counts.changes += model.changes;
            self.counts.syncs += model.syncs;
            if round.errors {
                self.counts.errors += model.errors;
            }
            // After a power failure only the disk counts; else the page cache below is alive.
            let read = |name: &str| {
                if round.power_fails { self.disk.get(name) } else { fs::read(below.join(name)).ok() }
            };
            let explain =
                |name: &str, at: usize| format!("\n  requests below, the last ones:{}", self.disk.history(name, at));
            model.check(read, explain).map_err(|what| format!("{LOST}: {what}"))?;
        }
        Ok(())
    }
}

/// Reads the records of one client.
struct Reader {
    model: Model,
    round: Round,
    disk: Disk,
    stopping: Arc<AtomicBool>,
    prng: Prng,
    /// The share of acknowledged syncs after which the power fails at once, in permille.
    cuts_permille: u64,
    has_cut: Sender<()>,
}

impl Reader {
    fn run(mut self, lines: impl Iterator<Item = std::io::Result<String>>) -> Result<Model> {
        let mut last = None;
        for line in lines.map_while(std::result::Result::ok) {
            let record = Record::parse(&line).ok_or_else(|| format!("a client printed {line:?}"))?;
            if let Record::End(errno @ 1..) = record
                && !self.round.errors
                && self.disk.is_on()
                && !self.stopping.load(Ordering::SeqCst)
            {
                let error = std::io::Error::from_raw_os_error(errno);
                return Err(format!("{last:?} failed without a reason: {error}"));
            }
            let syncs = record == Record::End(0) && matches!(last, Some(Step::Sync { .. } | Step::SyncNames));
            if let Record::Begin(step) = &record {
                last = Some(step.clone());
            }
            self.model.apply(record, self.round.promise());
            if syncs && self.cuts_permille > 0 && self.prng.permille(self.cuts_permille) {
                self.disk.fail_power(&mut self.prng);
                let _ = self.has_cut.send(());
            }
        }
        Ok(self.model)
    }
}
