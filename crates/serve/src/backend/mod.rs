//! Where the bytes of a device lie: memory, nothing, a file or a block device.
//!
//! Memory and nothing answer at once ([`Started::Done`]); files go through the engine ([`Started::Pending`]) and answer when it has
//! said [`Event::Done`](crate::engine::Event::Done) and [`Backend::finish`] was told of it.

mod file;
mod memory;
mod place;
mod shared;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use hoistway_nbd::Abilities;
use hoistway_nbd::wire::Errno;

use crate::buffer::Buffer;
use crate::config::BackendConfig;
use crate::device::{Answer, WorkOp};
use crate::engine::{Allocation, Engine, FileId, IoDone};

pub use shared::{Region, Shared};

/// Requests that memory and nothing are given at once. They answer in the call, so it is how many one tenant is served in a row while others wait.
pub const DEPTH_MEMORY: u32 = 8;
/// Requests that a medium which rotates is given at once: one is served while the next is on its way. More would be reordered by the
/// drive (worth some 30 % of its throughput at 32), out of the elevator's sight.
pub const DEPTH_ROTATIONAL: u32 = 2;
/// Requests that flash is given at once: enough to keep its channels busy; whoever comes waits for at most 31 others.
pub const DEPTH_FLASH: u32 = 32;
/// Requests that a file in memory (tmpfs) is given at once: they are copies, done one after the other; several share a turn of the engine.
pub const DEPTH_TMPFS: u32 = 16;

/// Where the bytes of a device lie.
#[derive(Debug)]
pub struct Backend {
    kind: Kind,
    size: u64,
}

#[derive(Debug)]
enum Kind {
    Memory(memory::Memory),
    Null,
    File(Box<file::File>),
    /// Whoever hosts the device does the work.
    Hosted {
        rotates: bool,
        /// Tags of what was begun and not taken up yet, oldest first.
        begun: Vec<u64>,
    },
}

/// Something to be done.
#[derive(Debug)]
pub struct Operation {
    /// Its name towards the engine; nothing else under way has it.
    pub tag: u64,
    /// What.
    pub op: WorkOp,
    /// The first byte.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
    /// Durable before it is done.
    pub durable: bool,
    /// Of writes: the data, in the first `length` bytes.
    pub data: Option<Buffer>,
}

impl Operation {
    /// One without data that need not be durable.
    pub fn plain(tag: u64, op: WorkOp, offset: u64, length: u64) -> Operation {
        Operation { tag, op, offset, length, durable: false, data: None }
    }
}

/// How something was begun.
#[derive(Debug)]
pub enum Started {
    /// It is done, or failed.
    Done(Result<Answer, Errno>),
    /// The engine is at it: [`Event::Done`](crate::engine::Event::Done) with its tag will come.
    Pending,
}

/// Why a backend cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// It cannot be opened.
    #[error("{path}: {cause}", path = .path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// It is no file and no block device.
    #[error("{path}: this is {what}; a file or a block device is needed", path = .path.display())]
    Kind {
        /// Which.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// Somebody else writes to it, or reads what would be written.
    #[error("{path}: in use by another server or program (its lock, see flock(2), is held){holder}", path = .path.display())]
    Locked {
        /// Which.
        path: PathBuf,
        /// Who, if that is known: empty, or `: process 12 (name)`.
        holder: String,
    },
    /// It cannot be read and written past the page cache.
    #[error("{path}: direct I/O is not possible: {cause}", path = .path.display())]
    Direct {
        /// Which.
        path: PathBuf,
        /// Why.
        cause: String,
    },
    /// There is nothing in it.
    #[error("{path}: its size is 0; make it as long as the device is to be (truncate -s 10G)", path = .path.display())]
    Empty {
        /// Which.
        path: PathBuf,
    },
    /// So much memory is not to be had.
    #[error("{bytes} bytes of memory for a device: {cause}")]
    Memory {
        /// How much.
        bytes: u64,
        /// Why.
        cause: io::Error,
    },
}

impl Backend {
    /// Opens what a configuration names.
    ///
    /// # Errors
    /// When it is not there, is no file or block device, is in use for writing (or, if it is to be written, for reading), is empty, or cannot do
    /// the direct I/O that was demanded.
    pub fn open<E: Engine>(config: &BackendConfig, engine: &mut E) -> Result<Backend, BackendError> {
        match config {
            BackendConfig::Memory { bytes } => Backend::memory(*bytes),
            BackendConfig::Null { bytes } => Ok(Backend::null(*bytes)),
            BackendConfig::File { path, direct, read_only } => {
                let file = file::File::open(path, *direct, *read_only, engine)?;
                Ok(Backend { size: file.size(), kind: Kind::File(Box::new(file)) })
            }
        }
    }

    /// Memory, all zeroes, which is taken from the system as it is written to.
    ///
    /// # Errors
    /// When the address space has no room for it.
    pub fn memory(bytes: u64) -> Result<Backend, BackendError> {
        let memory = memory::Memory::new(bytes).map_err(|cause| BackendError::Memory { bytes, cause })?;
        Ok(Backend { kind: Kind::Memory(memory), size: bytes })
    }

    /// Nothing: reads are zeroes, writes are lost.
    pub fn null(bytes: u64) -> Backend {
        Backend { kind: Kind::Null, size: bytes }
    }

    /// A file that an engine has already, of any offset and length, which can do everything: for engines whose files are simulated.
    pub fn on_file(file: FileId, size: u64) -> Backend {
        Backend { kind: Kind::File(Box::new(file::File::simulated(file, size))), size }
    }

    /// None of its own: whoever hosts the device does what it begins, is told of it by [`Device::take_begun`](crate::device::Device::take_begun), and says when it
    /// is over. Writes bring no data, and nothing is split.
    pub fn hosted(bytes: u64, rotates: bool) -> Backend {
        Backend { kind: Kind::Hosted { rotates, begun: Vec::new() }, size: bytes }
    }

    /// Whether whoever hosts the device does the work.
    pub fn is_hosted(&self) -> bool {
        matches!(self.kind, Kind::Hosted { .. })
    }

    /// Hands out the tags of what was begun since the last time; of what the host does alone.
    pub(crate) fn begun(&mut self) -> impl Iterator<Item = u64> + '_ {
        let begun = match &mut self.kind {
            Kind::Hosted { begun, .. } => Some(begun),
            _ => None,
        };
        begun.into_iter().flat_map(|begun| begun.drain(..))
    }

    /// Whether its bytes lie in a file or on a block device.
    pub fn is_file(&self) -> bool {
        matches!(self.kind, Kind::File(_))
    }

    /// Whether its bytes lie in the file or on the block device that is at this path now, by whatever name it was opened.
    pub fn lies_at(&self, path: &Path) -> bool {
        matches!(&self.kind, Kind::File(file) if file.is_at(path))
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// What it can do.
    pub fn abilities(&self) -> Abilities {
        match &self.kind {
            Kind::File(file) => file.abilities(),
            Kind::Memory(_) | Kind::Null | Kind::Hosted { .. } => Abilities {
                flush: true,
                fua: true,
                trim: true,
                write_zeroes: true,
                fast_zero: true,
                multi_conn: true,
                cache: true,
                block_status: true,
                ..Abilities::default()
            },
        }
    }

    /// The smallest unit of offsets and lengths, in bytes: 1, for whatever the medium cannot do byte by byte is read, changed and written here.
    pub fn block_min(&self) -> u32 {
        1
    }

    /// The unit of offsets and lengths, in bytes, from which on nothing has to be read before it can be written.
    pub fn block_preferred(&self) -> u32 {
        match &self.kind {
            Kind::File(file) => file.block_preferred(),
            Kind::Memory(_) | Kind::Null | Kind::Hosted { .. } => 4096,
        }
    }

    /// Whether the medium rotates.
    pub fn rotational(&self) -> bool {
        match &self.kind {
            Kind::File(file) => file.rotational(),
            Kind::Hosted { rotates, .. } => *rotates,
            Kind::Memory(_) | Kind::Null => false,
        }
    }

    /// How many requests it should be given at once, unless the configuration says otherwise.
    pub fn default_depth(&self) -> u32 {
        match &self.kind {
            Kind::File(file) => file.default_depth(),
            Kind::Hosted { rotates: true, .. } => DEPTH_ROTATIONAL,
            Kind::Hosted { rotates: false, .. } => DEPTH_FLASH,
            Kind::Memory(_) | Kind::Null => DEPTH_MEMORY,
        }
    }

    /// What it is, for a line of the log: `/dev/sda (block device, 4000 GB, direct, rotational)`.
    pub fn describe(&self) -> String {
        match &self.kind {
            Kind::File(file) => file.describe(),
            Kind::Memory(_) => format!("memory ({} bytes)", self.size),
            Kind::Null => format!("null ({} bytes)", self.size),
            Kind::Hosted { rotates, .. } => {
                format!("{} bytes{}", self.size, if *rotates { ", rotational" } else { "" })
            }
        }
    }

    /// Begins an operation. A range beyond the end is an error, as [`WorkOp::check_range`] has it. A write that is durable, and a flush, is done
    /// once the medium has it.
    pub fn begin<E: Engine>(&mut self, engine: &mut E, operation: Operation) -> Started {
        if let Err(errno) = self.check(&operation) {
            return Started::Done(Err(errno));
        }
        let Operation { op, offset, length, .. } = operation;
        match &mut self.kind {
            Kind::Memory(memory) => Started::Done(memory.perform(op, offset, length, operation.data)),
            Kind::Null => Started::Done(Ok(null_answer(op, length))),
            Kind::File(file) => file.begin(engine, operation),
            Kind::Hosted { begun, .. } => {
                begun.push(operation.tag);
                Started::Pending
            }
        }
    }

    /// Takes up an operation of [`Backend::begin`] whose I/O has ended. It can be pending again: then another `Event::Done` of its tag comes.
    pub fn finish<E: Engine>(&mut self, engine: &mut E, tag: u64, op: WorkOp, done: IoDone) -> Started {
        match &mut self.kind {
            Kind::File(file) => file.finish(engine, tag, op, done),
            Kind::Hosted { .. } => Started::Done(done.result.map(|()| Answer::Nothing).map_err(errno)),
            Kind::Memory(_) | Kind::Null => Started::Done(Err(Errno::Io)),
        }
    }

    fn check(&self, operation: &Operation) -> Result<(), Errno> {
        let Operation { op, offset, length, ref data, .. } = *operation;
        if op == WorkOp::Flush {
            return Ok(());
        }
        if op.writes() && self.abilities().read_only {
            return Err(Errno::Perm);
        }
        op.check_range(offset, length, self.size)?;
        let lacks_data = || data.as_ref().is_none_or(|data| (data.len() as u64) < length);
        if op == WorkOp::Write && !self.is_hosted() && lacks_data() {
            return Err(Errno::Inval);
        }
        Ok(())
    }
}

fn null_answer(op: WorkOp, length: u64) -> Answer {
    match op {
        WorkOp::Read => Answer::Zeroes,
        WorkOp::Status => Answer::Extents(vec![Allocation { length, hole: true }]),
        WorkOp::Cache | WorkOp::Write | WorkOp::Zero { .. } | WorkOp::Trim | WorkOp::Flush => Answer::Nothing,
    }
}

/// The protocol's number for an error of the system.
pub fn errno(code: i32) -> Errno {
    match code {
        libc::EPERM | libc::EACCES | libc::EROFS => Errno::Perm,
        libc::ENOMEM => Errno::NoMem,
        libc::EINVAL => Errno::Inval,
        libc::ENOSPC | libc::EDQUOT | libc::EFBIG => Errno::NoSpc,
        libc::EOVERFLOW => Errno::Overflow,
        libc::EOPNOTSUPP | libc::ENOSYS => Errno::NotSup,
        _ => Errno::Io,
    }
}
