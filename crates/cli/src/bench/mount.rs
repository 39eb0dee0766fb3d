//! The cost of scheduling an operation of a mount without contention: one thread enters the gate
//! and leaves it, with no I/O in between. An operation includes the lookup of the issuer, the query
//! of its I/O priority, the lookup of the extent in the file, and the way through limits, queue,
//! elevator and accounts.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use hoistway_config::mount::{MountConfig, MountTerms};
use hoistway_core::Kind;
use hoistway_mount::scheduled::Scheduled;
use hoistway_mount::{Admission, Backing, Caller, Gate, GateRequest, Operation};
use rustix::time::{ClockId, clock_gettime};

const FILE_BYTES: u64 = 64 << 20;
const RUNS: usize = 5;

/// CPU time in ns per operation: the least of a few runs, because other load of the machine can
/// only add time.
pub fn cost(kind: Kind, operation: Operation, operations: u64, folder: &Path) -> Result<f64> {
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
    let caller = Caller { tid, uid: 0, gid: 0 };
    let mut place = 1u64;
    let mut best = f64::MAX;
    for _ in 0..RUNS {
        let start = spent_ns();
        for _ in 0..operations {
            place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let ask = GateRequest {
                caller,
                operation,
                backing: &backing,
                offset: (place % FILE_BYTES) & !4095,
                length: 4096,
            };
            match gate.admit(&ask) {
                Admission::Now(pass) => drop(pass),
                Admission::Later(_) => bail!("the only thread had to wait"),
            }
        }
        best = best.min((spent_ns() - start) as f64 / operations as f64);
    }
    Ok(best)
}

/// CPU time of this thread, in ns; other load of the machine does not count.
fn spent_ns() -> i64 {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    spent.tv_sec * 1_000_000_000 + spent.tv_nsec
}

fn backing(file: File) -> std::io::Result<Arc<Backing>> {
    let metadata = file.metadata()?;
    Ok(Arc::new(Backing::new(file.into(), metadata.dev(), metadata.ino())))
}
