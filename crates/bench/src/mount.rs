//! The cost of scheduling an operation of a mount without contention: one thread enters the gate
//! and leaves it, with no I/O in between. An operation includes the lookup of the issuer, the query
//! of its I/O priority, the lookup of the extent in the file, and the way through limits, queue,
//! elevator and accounts.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::Arc;

use hoistway_config::mount::{MountConfig, MountTerms};
use hoistway_core::Kind;
use hoistway_mount::scheduled::Scheduled;
use hoistway_mount::{Admission, Backing, Caller, Gate, GateRequest, Operation};
use serde::Serialize;

use crate::BenchError;
use crate::clock::thread_cpu_ns;

/// Size of the file that the operations refer to.
const FILE_BYTES: u64 = 64 << 20;
/// Runs per figure.
const RUNS: usize = 5;

/// Costs of scheduling an operation; the document of `hoistway bench mount --json`.
#[derive(Clone, Debug, Serialize)]
pub struct MountCosts {
    /// Version of the document's form: 1.
    pub schema: u32,
    /// Operations per run.
    pub operations: u64,
    /// One entry per elevator.
    pub elevators: Vec<MountCost>,
}

/// CPU time per operation under one elevator: the least of a few runs, because other load of the
/// machine can only add time.
#[derive(Clone, Debug, Serialize)]
pub struct MountCost {
    /// Name of the elevator.
    pub name: &'static str,
    /// A read of 4 KiB from the disk, in ns.
    pub read_ns: f64,
    /// An fsync of a file, in ns.
    pub sync_ns: f64,
    /// A lookup of a name on the disk, in ns.
    #[serde(rename = "look_ns")]
    pub lookup_ns: f64,
}

/// Measures `operations` operations of each sort under each elevator, on a file in a temporary
/// folder; `progress` receives the number of finished elevators.
///
/// # Errors
/// [`BenchError::Io`] for the file, [`BenchError::Waited`] if an operation was not admitted at
/// once.
pub fn measure(kinds: &[Kind], operations: u64, progress: &dyn Fn(usize)) -> Result<MountCosts, BenchError> {
    let folder = tempfile::tempdir().map_err(BenchError::io("a temporary folder"))?;
    let mut elevators = Vec::new();
    for kind in kinds {
        let cost = |operation| cost(*kind, operation, operations, folder.path());
        elevators.push(MountCost {
            name: kind.info().name,
            read_ns: cost(Operation::Read)?,
            sync_ns: cost(Operation::Sync)?,
            lookup_ns: cost(Operation::MetadataRead)?,
        });
        progress(elevators.len());
    }
    Ok(MountCosts { schema: 1, operations, elevators })
}

/// CPU time per operation, in ns.
fn cost(kind: Kind, operation: Operation, operations: u64, folder: &Path) -> Result<f64, BenchError> {
    let (gate, backing) = gate(kind, folder)?;
    let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let caller = Caller { tid, uid: 0, gid: 0 };
    let mut random = 1u64;
    let mut least = f64::MAX;
    for _ in 0..RUNS {
        let start_ns = thread_cpu_ns();
        for _ in 0..operations {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let offset = (random % FILE_BYTES) & !4095;
            let request = GateRequest { caller, operation, backing: &backing, offset, length: 4096 };
            match gate.admit(&request) {
                Admission::Now(slot) => drop(slot),
                Admission::Later(_) => return Err(BenchError::Waited),
            }
        }
        least = least.min((thread_cpu_ns() - start_ns) as f64 / operations as f64);
    }
    Ok(least)
}

/// Creates the scheduler of a mount of `folder`, and a file in it.
fn gate(kind: Kind, folder: &Path) -> Result<(Scheduled, Arc<Backing>), BenchError> {
    let files = || Ok((backing(File::open(folder)?)?, backing(file_in(folder)?)?));
    let (root, file) = files().map_err(BenchError::io(folder.display().to_string()))?;
    let mount = MountTerms { elevator: Some(kind), ..MountTerms::default() };
    let gate = Scheduled::new(folder.to_owned(), &root, &MountConfig { mount, ..MountConfig::default() })?;
    Ok((gate, file))
}

/// Creates the file of [`FILE_BYTES`] bytes, or opens it.
fn file_in(folder: &Path) -> io::Result<File> {
    let path = folder.join("file");
    let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
    if file.metadata()?.len() == 0 {
        for at in (0..FILE_BYTES).step_by(1 << 20) {
            file.write_all_at(&vec![7; 1 << 20], at)?;
        }
        file.sync_all()?;
    }
    Ok(file)
}

fn backing(file: File) -> io::Result<Arc<Backing>> {
    let metadata = file.metadata()?;
    Ok(Arc::new(Backing::new(file.into(), metadata.dev(), metadata.ino())))
}
