//! What scheduling costs an operation of a mount when nobody else waits, in ns: `cargo run --release -p hoistway-mount --example gate_cost -- [ELEVATOR]...`.
//!
//! One thread enters the gate and leaves it again, with nothing in between: who asks is looked up, its I/O priority is asked of the system, the place is found in
//! the extents of a file, and the request goes through limits, queue, elevator and accounts.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::Arc;

use hoistway_core::Kind;
use hoistway_mount::scheduled::Scheduled;
use hoistway_mount::{Ask, Asker, Backing, Entered, Gate, Operation};
use hoistway_serve::config::mount::{MountConfig, MountTerms};
use rustix::time::{ClockId, clock_gettime};

const OPERATIONS: u64 = 200_000;
const FILE_BYTES: u64 = 64 << 20;
const RUNS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let asked: Vec<Kind> = std::env::args().skip(1).filter_map(|name| Kind::from_name(&name)).collect();
    let folder = std::env::temp_dir().join(format!("hoistway-gate-cost-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    println!("{:<14} {:>10} {:>10} {:>10}   ns an operation", "elevator", "read", "fsync", "lookup");
    for &kind in if asked.is_empty() { Kind::ALL } else { &asked } {
        let costs = [Operation::Read, Operation::Sync, Operation::Look].map(|operation| cost(kind, operation, &folder));
        let [read, sync, look] = costs.map(|cost| cost.map_or("failed".to_owned(), |ns| format!("{ns:.0}")));
        println!("{:<14} {read:>10} {sync:>10} {look:>10}", kind.info().name);
    }
    Ok(std::fs::remove_dir_all(&folder)?)
}

fn cost(kind: Kind, operation: Operation, folder: &std::path::Path) -> Result<f64, Box<dyn std::error::Error>> {
    let path = folder.join("file");
    let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
    if file.metadata()?.len() == 0 {
        for at in (0..FILE_BYTES).step_by(1 << 20) {
            file.write_all_at(&vec![7; 1 << 20], at)?;
        }
        file.sync_all()?;
    }
    let mount = MountTerms { elevator: Some(kind), ..MountTerms::default() };
    let root = backing(File::open(folder)?)?;
    let gate = Scheduled::new(folder.to_owned(), &root, &MountConfig { mount, ..MountConfig::default() })?;
    let backing = backing(file)?;
    let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let asker = Asker { tid, uid: 0, gid: 0 };
    let mut place = 1u64;
    let mut best = f64::MAX;
    for _ in 0..RUNS {
        let start = spent_ns();
        for _ in 0..OPERATIONS {
            place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let ask = Ask { asker, operation, backing: &backing, offset: place % FILE_BYTES & !4095, length: 4096 };
            match gate.enter(&ask) {
                Entered::Now(pass) => drop(pass),
                Entered::Later(_) => return Err("it is alone and had to wait".into()),
            }
        }
        best = best.min((spent_ns() - start) as f64 / OPERATIONS as f64);
    }
    Ok(best)
}

/// The processor's time that this thread has had: whoever else uses the machine does not count.
fn spent_ns() -> i64 {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    spent.tv_sec * 1_000_000_000 + spent.tv_nsec
}

fn backing(file: File) -> std::io::Result<Arc<Backing>> {
    let told = file.metadata()?;
    Ok(Arc::new(Backing::new(file.into(), told.dev(), told.ino())))
}
