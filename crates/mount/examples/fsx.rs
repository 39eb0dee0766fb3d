//! Random file operations through a mount, compared with a model. Requires root.
//!
//! `cargo run --release --example fsx -- --minutes 10 [--seed N] [--in DIRECTORY]`
//!
//! Mounts a new directory in `/var/tmp` (or DIRECTORY) four times: write-back by the mount and by
//! the kernel, with and without queued operations. Two files are changed through each mount. The
//! seed of each file is printed first; the same seed repeats a run.

#[path = "../tests/it/support/mod.rs"]
mod support;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use hoistway_mount::WriteBack;

use self::support::fsx::{Exercise, new_seed};
use self::support::{MountProcess, MountVariant};

fn main() -> ExitCode {
    if support::serve() {
        return ExitCode::SUCCESS;
    }
    let (mut minutes, mut seed, mut within) = (1.0, None, PathBuf::from("/var/tmp"));
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_default();
        let understood = match word.as_str() {
            "--minutes" => value.parse().map(|value: f64| minutes = value).is_ok() && minutes > 0.0 && minutes < 1e6,
            "--seed" => value.parse().map(|value: u64| seed = Some(value)).is_ok(),
            "--in" => {
                within = value.clone().into();
                within.is_dir()
            }
            _ => false,
        };
        if !understood {
            eprintln!("fsx: `{word} {value}`: there are --minutes NUMBER, --seed NUMBER and --in DIRECTORY");
            return ExitCode::from(2);
        }
    }
    let time = Duration::from_secs_f64(minutes * 60.0);
    let place = tempfile::Builder::new().prefix("fsx-").tempdir_in(&within).expect("a new directory");
    let variants = [
        ("ours", MountVariant::open(WriteBack::Ours)),
        ("kernel", MountVariant::open(WriteBack::Kernel)),
        ("ours-waiting", MountVariant::waiting(WriteBack::Ours)),
        ("kernel-waiting", MountVariant::waiting(WriteBack::Kernel)),
    ];
    let running: Vec<_> =
        variants.iter().map(|(name, variant)| begin(place.path().join(name), *variant, seed, time)).collect();
    let mut clean = true;
    for (mounted, threads) in running {
        for thread in threads {
            clean &= thread.join().unwrap_or(false);
        }
        drop(mounted);
    }
    if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

type Running = (MountProcess, Vec<std::thread::JoinHandle<bool>>);

fn begin(source: PathBuf, variant: MountVariant, seed: Option<u64>, time: Duration) -> Running {
    std::fs::create_dir(&source).expect("a new directory");
    let mounted = MountProcess::new(&source, variant);
    let name = source.file_name().expect("a name").to_string_lossy().into_owned();
    let threads = (0..2).map(|number| {
        let seed = seed.unwrap_or_else(new_seed).wrapping_add(number);
        let (inside, name) = (mounted.path().join(format!("file-{number}")), name.clone());
        println!("{name} {number}: seed {seed}");
        let below = source.join(format!("file-{number}"));
        std::thread::spawn(move || {
            let mut exercise = Exercise::new(&inside, seed);
            let done = exercise.run(time);
            let synced = std::fs::File::open(&inside).and_then(|file| file.sync_all());
            let same = synced.and_then(|()| std::fs::read(below)).is_ok_and(|found| found == exercise.model());
            let done = done.and_then(|count| if same { Ok(count) } else { Err("the file below is another".into()) });
            report(done, &name, number, seed)
        })
    });
    let threads = threads.collect();
    (mounted, threads)
}

fn report(done: Result<u64, String>, name: &str, number: u64, seed: u64) -> bool {
    match &done {
        Ok(count) => println!("{name} {number}: {count} operations, nothing wrong"),
        Err(wrong) => println!("{name} {number}: seed {seed}: {wrong}"),
    }
    done.is_ok()
}
