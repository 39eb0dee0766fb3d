//! The engines of fio 3.33: which of them a simulation runs, and as what.
//!
//! Names are those of `fio --enghelp` and of the manual's list of engines.

use std::fmt;

use crate::values::{Fault, one_of};

/// The interface through which requests are submitted, as a simulated host supports it. Other
/// engines of fio are mapped to one of these ([`ENGINES`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ioengine {
    /// `sync`: lseek and read or write. Synchronous.
    Sync,
    /// `psync`: pread or pwrite. Synchronous; fio's default.
    Psync,
    /// `vsync`: readv or writev, adjacent requests coalesced into one submission. Synchronous.
    Vsync,
    /// `pvsync`: preadv or pwritev. Synchronous.
    Pvsync,
    /// `pvsync2`: preadv2 or pwritev2. Synchronous.
    Pvsync2,
    /// `mmap`: a mapped file and memcpy. Synchronous.
    Mmap,
    /// `libaio`: Linux asynchronous I/O. Asynchronous with `direct=1`; Linux makes buffered
    /// requests wait.
    Libaio,
    /// `io_uring`. Asynchronous, buffered or direct.
    IoUring,
    /// `posixaio`: aio_read and aio_write, by threads of the C library. Asynchronous.
    PosixAio,
    /// `null`: no request is made at all. Synchronous.
    Null,
}

impl Ioengine {
    /// Returns true if a request returns only after its completion, so that one is in flight at any
    /// `iodepth`.
    pub fn is_synchronous(self) -> bool {
        !matches!(self, Ioengine::Libaio | Ioengine::IoUring | Ioengine::PosixAio)
    }

    /// Returns true if a sync is in flight like a request, as in fio 3.33; with other engines the
    /// process waits for it, and requests may be in flight meanwhile.
    pub fn queues_syncs(self) -> bool {
        matches!(self, Ioengine::IoUring | Ioengine::PosixAio)
    }

    /// The name in fio.
    pub fn name(self) -> &'static str {
        match self {
            Ioengine::Sync => "sync",
            Ioengine::Psync => "psync",
            Ioengine::Vsync => "vsync",
            Ioengine::Pvsync => "pvsync",
            Ioengine::Pvsync2 => "pvsync2",
            Ioengine::Mmap => "mmap",
            Ioengine::Libaio => "libaio",
            Ioengine::IoUring => "io_uring",
            Ioengine::PosixAio => "posixaio",
            Ioengine::Null => "null",
        }
    }

    /// All engines that are simulated under their own name.
    pub const ALL: [Ioengine; 10] = [
        Ioengine::Sync,
        Ioengine::Psync,
        Ioengine::Vsync,
        Ioengine::Pvsync,
        Ioengine::Pvsync2,
        Ioengine::Mmap,
        Ioengine::Libaio,
        Ioengine::IoUring,
        Ioengine::PosixAio,
        Ioengine::Null,
    ];
}

impl fmt::Display for Ioengine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a simulation does with the jobs of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineSupport {
    /// The engine is simulated.
    Simulated(Ioengine),
    /// The engine's requests are simulated as direct requests of another engine; the text says what
    /// differs.
    Direct(Ioengine, &'static str),
    /// The engine's requests are simulated as those of another engine; the text says what differs.
    Like(Ioengine, &'static str),
    /// The engine moves no data between memory and a disk: its jobs are left out.
    NoData(&'static str),
    /// The engine's requests do not reach a scheduler of this machine, for this reason.
    Refused(&'static str),
}

/// An engine of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Engine {
    /// The name in fio.
    pub name: &'static str,
    /// What a simulation does with its jobs.
    pub support: EngineSupport,
}

const fn engine(name: &'static str, support: EngineSupport) -> Engine {
    Engine { name, support }
}

const PASSTHROUGH: &str = "bypasses the scheduler in Linux; simulated as direct requests that the scheduler orders";
const REMOTE_DISK: &str = "talks to a remote disk; simulated as direct requests to the disk itself";
const METADATA: &str = "works on metadata alone";
const NETWORK: &str = "sends data over a network, not to a disk";
const STORE: &str = "talks to an object store, whose disks a simulation cannot know";
const REMOTE_FILES: &str = "talks to a remote file system, whose caches and disks a simulation cannot know";
const MEMORY: &str = "reaches memory or flash without a block layer, so no scheduler sees a request";

/// All engines of fio 3.33.
#[rustfmt::skip]
pub static ENGINES: &[Engine] = &[
    engine("sync", EngineSupport::Simulated(Ioengine::Sync)),
    engine("psync", EngineSupport::Simulated(Ioengine::Psync)),
    engine("vsync", EngineSupport::Simulated(Ioengine::Vsync)),
    engine("pvsync", EngineSupport::Simulated(Ioengine::Pvsync)),
    engine("pvsync2", EngineSupport::Simulated(Ioengine::Pvsync2)),
    engine("mmap", EngineSupport::Simulated(Ioengine::Mmap)),
    engine("libaio", EngineSupport::Simulated(Ioengine::Libaio)),
    engine("io_uring", EngineSupport::Simulated(Ioengine::IoUring)),
    engine("posixaio", EngineSupport::Simulated(Ioengine::PosixAio)),
    engine("null", EngineSupport::Simulated(Ioengine::Null)),
    engine("splice", EngineSupport::Like(Ioengine::Psync, "moves pages through a pipe; simulated as psync")),
    engine("solarisaio", EngineSupport::Like(Ioengine::PosixAio, "is asynchronous I/O of Solaris; simulated as posixaio")),
    engine("windowsaio", EngineSupport::Like(Ioengine::Libaio, "is asynchronous I/O of Windows; simulated as libaio")),
    engine("cpp_null", EngineSupport::Like(Ioengine::Null, "is an example of an external engine; simulated as null")),
    engine("sg", EngineSupport::Direct(Ioengine::Psync, PASSTHROUGH)),
    engine("io_uring_cmd", EngineSupport::Direct(Ioengine::IoUring, PASSTHROUGH)),
    engine("xnvme", EngineSupport::Direct(Ioengine::IoUring, PASSTHROUGH)),
    engine("libzbc", EngineSupport::Direct(Ioengine::Psync, PASSTHROUGH)),
    engine("libcufile", EngineSupport::Direct(Ioengine::Psync, "reads into the memory of a GPU; simulated as direct requests")),
    engine("libblkio", EngineSupport::Direct(Ioengine::IoUring, REMOTE_DISK)),
    engine("nbd", EngineSupport::Direct(Ioengine::IoUring, REMOTE_DISK)),
    engine("libiscsi", EngineSupport::Direct(Ioengine::IoUring, REMOTE_DISK)),
    engine("rbd", EngineSupport::Direct(Ioengine::IoUring, REMOTE_DISK)),
    engine("cpuio", EngineSupport::NoData("burns CPU time alone")),
    engine("exec", EngineSupport::NoData("runs a program, whose requests a simulation cannot know")),
    engine("falloc", EngineSupport::NoData(METADATA)),
    engine("ftruncate", EngineSupport::NoData(METADATA)),
    engine("filecreate", EngineSupport::NoData(METADATA)),
    engine("filestat", EngineSupport::NoData(METADATA)),
    engine("filedelete", EngineSupport::NoData(METADATA)),
    engine("e4defrag", EngineSupport::NoData("has the kernel move the blocks of files")),
    engine("net", EngineSupport::Refused(NETWORK)),
    engine("netsplice", EngineSupport::Refused(NETWORK)),
    engine("rdma", EngineSupport::Refused(NETWORK)),
    engine("librpma_apm_client", EngineSupport::Refused(NETWORK)),
    engine("librpma_apm_server", EngineSupport::Refused(NETWORK)),
    engine("librpma_gpspm_client", EngineSupport::Refused(NETWORK)),
    engine("librpma_gpspm_server", EngineSupport::Refused(NETWORK)),
    engine("rados", EngineSupport::Refused(STORE)),
    engine("http", EngineSupport::Refused(STORE)),
    engine("gfapi", EngineSupport::Refused(REMOTE_FILES)),
    engine("gfapi_async", EngineSupport::Refused(REMOTE_FILES)),
    engine("libhdfs", EngineSupport::Refused(REMOTE_FILES)),
    engine("nfs", EngineSupport::Refused(REMOTE_FILES)),
    engine("dfs", EngineSupport::Refused(REMOTE_FILES)),
    engine("ime_psync", EngineSupport::Refused(REMOTE_FILES)),
    engine("ime_psyncv", EngineSupport::Refused(REMOTE_FILES)),
    engine("ime_aio", EngineSupport::Refused(REMOTE_FILES)),
    engine("mtd", EngineSupport::Refused(MEMORY)),
    engine("dev-dax", EngineSupport::Refused(MEMORY)),
    engine("libpmem", EngineSupport::Refused(MEMORY)),
    engine("pmemblk", EngineSupport::Refused(MEMORY)),
    engine("external", EngineSupport::Refused("is code of its own, whose requests a simulation cannot know")),
    engine("copy_file_range", EngineSupport::Refused("has the kernel copy a file")),
];

/// Finds an engine by the value of `ioengine=`, which may have a path after a colon.
pub(crate) fn find(value: &str) -> Option<&'static Engine> {
    let name = value.split(':').next().unwrap_or(value);
    ENGINES.iter().find(|engine| engine.name == name)
}

/// Parses the name of an engine.
pub(crate) fn parse(value: &str) -> Result<&'static Engine, Fault> {
    let simulated = || {
        let takes = |engine: &&Engine| !matches!(engine.support, EngineSupport::Refused(_) | EngineSupport::NoData(_));
        ENGINES.iter().filter(takes).map(|engine| engine.name).collect::<Vec<_>>()
    };
    match find(value) {
        Some(Engine { name, support: EngineSupport::Refused(why) }) => {
            let help = format!("the engines are {}", simulated().join(", "));
            Err(Fault::with_help(format!("engine `{name}` {why}"), help))
        }
        Some(engine) => Ok(engine),
        None => Err(one_of(value, &simulated())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_is_listed_once_and_simulated_ones_have_their_own_name() {
        let mut names: Vec<&str> = ENGINES.iter().map(|engine| engine.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ENGINES.len());
        for engine in Ioengine::ALL {
            assert_eq!(find(engine.name()).map(|found| found.support), Some(EngineSupport::Simulated(engine)));
        }
    }
}
