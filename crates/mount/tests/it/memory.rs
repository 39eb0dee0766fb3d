//! The memory of a mount at rest.

use std::fs;
use std::path::Path;
use std::time::Duration;

use hoistway_mount::WriteBack;

use crate::support::{MountProcess, MountVariant, Volume, can_mount};

/// Number of files, more than an idle mount keeps.
const FILES: usize = 100_000;
const DIRECTORIES: usize = 100;
/// Maximum number of rounds of load and rest.
const ROUNDS: usize = 5;

/// Returns the resident memory of a process in MiB.
fn resident(process: u32) -> u64 {
    memory_of(process, "VmRSS:")
}

/// Returns a line of the memory of a process in MiB.
fn memory_of(process: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("it has memory");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10
}

/// Returns the number of threads of a process.
fn threads(process: u32) -> usize {
    fs::read_dir(format!("/proc/{process}/task")).expect("the process runs").count()
}

fn create_files(volume: &Path) {
    for directory in 0..DIRECTORIES {
        let directory = volume.join(directory.to_string());
        fs::create_dir(&directory).expect("there is room");
        for file in 0..FILES / DIRECTORIES {
            fs::write(directory.join(file.to_string()), "x").expect("there is room");
        }
    }
}

/// Has eight threads query the attributes of all files, and read one file in ten.
fn walk(mount: &Path) {
    std::thread::scope(|scope| {
        for part in 0..8 {
            scope.spawn(move || {
                for directory in (part..DIRECTORIES).step_by(8) {
                    for (number, file) in fs::read_dir(mount.join(directory.to_string())).expect("there").enumerate() {
                        let path = file.expect("there").path();
                        fs::metadata(&path).expect("there");
                        if number % 10 == 0 {
                            fs::read(&path).expect("there");
                        }
                    }
                }
            });
        }
    });
}

#[test]
fn an_idle_mount_releases_its_memory() {
    if !can_mount("an idle mount") {
        return;
    }
    let volume = Volume::new("tmpfs", 1024);
    create_files(&volume.path());
    // Requests that wait are carried out by other threads, and their data are copied.
    let mounted = MountProcess::new(&volume.path(), MountVariant::scheduled(WriteBack::Ours));
    let process = mounted.process();
    let (memory_before, threads_before) = (resident(process), threads(process));
    let much = vec![7; 64 << 20];
    let mut figures = Vec::new();
    // Under an interrupted load the mount is idle for a while, and the rest of the load may be too
    // short for another release; the next round is long enough again.
    let is_released = (0..ROUNDS).any(|_| {
        // The peak of each round counts.
        fs::write(format!("/proc/{process}/clear_refs"), "5").expect("root may");
        walk(mounted.path());
        fs::write(mounted.path().join("much"), &much).expect("there is room");
        let busy = memory_of(process, "VmHWM:");
        assert!(busy > memory_before + 20, "{memory_before} MiB before, {busy} MiB after the load");
        (0..60).any(|_| {
            std::thread::sleep(Duration::from_millis(500));
            figures.push((resident(process), threads(process)));
            // What remains are the inodes that an idle mount keeps, and buffers of session threads.
            figures.last().is_some_and(|(memory, count)| *memory <= memory_before + 12 && *count <= threads_before + 2)
        })
    });
    let before = (memory_before, threads_before);
    assert!(is_released, "MiB and threads: {before:?} before, {figures:?} after the load");
    // The mount works as before.
    assert!(fs::read(mounted.path().join("much")).expect("it is there") == much);
    assert_eq!(fs::read_dir(mounted.path().join("7")).expect("it is there").count(), FILES / DIRECTORIES);
    assert_eq!(fs::read(mounted.path().join("7/7")).expect("it is there"), b"x");
}
