//! Random file operations through mounts, compared with a model: `cargo xtask fsx [--minutes N]
//! [--seed N] [--in DIRECTORY]`. Requires root.
//!
//! Four set-ups run at the same time, each in a new directory in `/var/tmp` (or DIRECTORY):
//! write-back by the mount, write-back by the kernel, a mount on a mount, and a mount of depth 1
//! whose elevator is switched each second while requests wait. Threads change one file each. The
//! seed of each file is printed first; the same seed repeats its operations.

#[path = "../tests/it/support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use self::support::fsx::{Exercise, new_seed};
use self::support::scheduled::{self, Control, Scheduling};

/// The time between two switches of the elevator.
const SWITCH_INTERVAL: Duration = Duration::from_secs(1);
/// The longest time until a query of the control tree is answered.
const QUERY_MAX: Duration = Duration::from_secs(60);

/// A way to mount the directory.
struct SetUp {
    name: &'static str,
    /// The configurations of the mounts, from the lowest up.
    mounts: &'static [&'static str],
    switches: bool,
    files: u64,
}

const OURS: &str = "[mount]\nwrite_back = \"ours\"\ndirty_limit = \"2M\"\n";
const KERNEL: &str = "[mount]\nwrite_back = \"kernel\"\ndirty_limit = \"2M\"\n";
/// Every request but one waits in the queue.
const NARROW: &str = "[mount]\nwrite_back = \"ours\"\ndirty_limit = \"2M\"\ndirty_age = \"50ms\"\ndepth = 1\n";

const SET_UPS: [SetUp; 4] = [
    SetUp { name: "plain", mounts: &[OURS], switches: false, files: 2 },
    SetUp { name: "kernel", mounts: &[KERNEL], switches: false, files: 2 },
    SetUp { name: "stacked", mounts: &[OURS, OURS], switches: false, files: 2 },
    SetUp { name: "switching", mounts: &[NARROW], switches: true, files: 6 },
];

type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    if scheduled::serve() {
        return ExitCode::SUCCESS;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    time: Duration,
    seed: Option<u64>,
    directory: PathBuf,
}

fn options() -> Result<Options> {
    let mut options = Options { time: Duration::from_secs(1800), seed: None, directory: PathBuf::from("/var/tmp") };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or(format!("{word} needs a value"))?;
        match word.as_str() {
            "--minutes" => {
                let minutes = value.parse().ok().filter(|minutes| (0.01..=100_000.0).contains(minutes));
                let minutes: f64 = minutes.ok_or(format!("--minutes {value:?}: needs a number from 0.01 to 100000"))?;
                options.time = Duration::from_secs_f64(minutes * 60.0);
            }
            "--seed" => options.seed = Some(value.parse().map_err(|_| format!("--seed {value:?}: needs a number"))?),
            "--in" => options.directory = value.into(),
            _ => return Err(format!("{word:?} is no option: there are --minutes, --seed and --in")),
        }
    }
    Ok(options)
}

fn run() -> Result<()> {
    let options = options()?;
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        return Err("needs root and /dev/fuse".into());
    }
    let place = tempfile::Builder::new().prefix("fsx-").tempdir_in(&options.directory);
    let place =
        place.map_err(|error| format!("cannot create a directory in {}: {error}", options.directory.display()))?;
    let seed = options.seed.unwrap_or_else(new_seed);
    let results: Vec<_> = thread::scope(|scope| {
        let spawn = |(number, set_up): (u64, &'static SetUp)| {
            let source = place.path().join(set_up.name);
            // The seeds of two set-ups differ.
            let seed = seed.wrapping_add(number * 100);
            scope.spawn(move || set_up.run(&source, seed, options.time))
        };
        let running: Vec<_> = (0..).zip(&SET_UPS).map(spawn).collect();
        running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into()))).collect()
    });
    let mut failed = Vec::new();
    for (set_up, result) in SET_UPS.iter().zip(results) {
        match result {
            Ok(summary) => println!("{}: {summary}, no difference", set_up.name),
            Err(error) => {
                println!("{}: {error}", set_up.name);
                failed.push(set_up.name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("differences in: {}", failed.join(", "))) }
}

impl SetUp {
    /// Runs all files of the set-up. Returns a summary, or the first differences of the files.
    fn run(&self, source: &Path, seed: u64, time: Duration) -> Result<String> {
        std::fs::create_dir(source).map_err(|error| error.to_string())?;
        let mut mounts: Vec<Scheduling> = Vec::new();
        for config in self.mounts {
            let below = mounts.last().map_or(source.to_owned(), Scheduling::path);
            mounts.push(Scheduling::new(&below, config));
        }
        let top = mounts.last().ok_or("no mount")?;
        let over = AtomicBool::new(false);
        let outcome = thread::scope(|scope| {
            let running: Vec<_> = (0..self.files)
                .map(|number| {
                    let seed = seed.wrapping_add(number);
                    println!("{} {number}: seed {seed}", self.name);
                    let name = format!("file-{number}");
                    let (inside, below) = (top.path().join(&name), source.join(&name));
                    scope.spawn(move || {
                        let done = exercise(&inside, &below, seed, time);
                        done.map_err(|error| format!("file {number}, seed {seed}: {error}"))
                    })
                })
                .collect();
            let switching = self.switches.then(|| scope.spawn(|| switch(top, &over)));
            let done: Vec<_> = running.into_iter().map(|thread| thread.join()).collect();
            over.store(true, Ordering::Relaxed);
            (done, switching.map(|thread| thread.join()))
        });
        while mounts.pop().is_some() {}
        let (mut operations, mut errors) = (0, Vec::new());
        for done in outcome.0 {
            match done.unwrap_or_else(|_| Err("a thread panicked".into())) {
                Ok(count) => operations += count,
                Err(error) => errors.push(error),
            }
        }
        let mut summary = format!("{operations} operations on {} files", self.files);
        match outcome.1.map(|joined| joined.unwrap_or_else(|_| Err("the switching thread panicked".into()))) {
            Some(Ok(switches)) => summary += &format!(", {switches}"),
            Some(Err(error)) => errors.push(error),
            None => {}
        }
        if errors.is_empty() { Ok(summary) } else { Err(errors.join("\n")) }
    }
}

/// Changes a file for some time. Returns the number of operations.
fn exercise(inside: &Path, below: &Path, seed: u64, time: Duration) -> Result<u64> {
    let mut exercise = Exercise::new(inside, seed);
    let count = exercise.run(time)?;
    std::fs::File::open(inside).and_then(|file| file.sync_all()).map_err(|error| format!("the last sync: {error}"))?;
    let found = std::fs::read(below).map_err(|error| format!("the file below: {error}"))?;
    if found == exercise.model() { Ok(count) } else { Err("the file below differs from the model".into()) }
}

/// Switches among all elevators each second. Returns a summary.
fn switch(mounted: &Scheduling, over: &AtomicBool) -> Result<String> {
    let mut control = mounted.control(QUERY_MAX);
    let device = loop {
        // The device appears with the first request.
        if let Some(device) = query(&mut control, "ls devices")?.first() {
            break device.trim_end_matches('/').to_owned();
        }
        thread::sleep(Duration::from_millis(10));
    };
    let scheduler = format!("devices/{device}/queue/scheduler");
    let listed = query(&mut control, &format!("get {scheduler}"))?.join(" ");
    let elevators: Vec<_> = listed.split_whitespace().map(|name| name.trim_matches(['[', ']'])).collect();
    let (mut switches, mut with_waiting) = (0, 0);
    let mut next = Instant::now() + SWITCH_INTERVAL;
    while !over.load(Ordering::Relaxed) {
        if Instant::now() < next {
            thread::sleep(Duration::from_millis(10));
            continue;
        }
        let number = |lines: Vec<String>| lines.first().and_then(|line| line.parse::<u64>().ok());
        let leaf = |name: &str| format!("get devices/{device}/{name}");
        // Another switch is refused until the former one is complete.
        if number(query(&mut control, &leaf("switching"))?) != Some(0) {
            thread::sleep(Duration::from_millis(1));
            continue;
        }
        let waiting = number(query(&mut control, &leaf("waiting"))?).ok_or("`waiting` is no number")?;
        with_waiting += u64::from(waiting > 0);
        let elevator = elevators.get(switches % elevators.len().max(1)).ok_or("no elevators are listed")?;
        query(&mut control, &format!("set {scheduler} {elevator}"))?;
        switches += 1;
        next += SWITCH_INTERVAL;
    }
    Ok(format!("{switches} switches among {} elevators, {with_waiting} of them while requests waited", elevators.len()))
}

fn query(control: &mut Control, command: &str) -> Result<Vec<String>> {
    control.query(command).map_err(|error| format!("{command}: {error}"))
}
