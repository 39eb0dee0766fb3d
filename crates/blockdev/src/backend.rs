//! Where the bytes of a device lie: memory, nothing, a file or a block device.
//!
//! Memory and nothing answer at once ([`Begin::Done`]); files go through the engine
//! ([`Begin::Pending`]) and answer when it has said [`Event::Done`](crate::engine::Event::Done) and
//! [`Backend::finish`] was told of it.

use std::path::Path;

use hoistway_config::BackendConfig;
use hoistway_qos::{Begin, IoError, RequestOp};
use hoistway_reactor::{Allocation, Engine, FileId, IoDone};

use crate::answer::Answer;
use crate::capabilities::Capabilities;
use crate::depth;
use crate::error::BackendError;
use crate::file;
use crate::memory;
use crate::operation::{Operation, Started};

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
}

impl Backend {
    /// Opens what a configuration names.
    ///
    /// # Errors
    /// When it is not there, is no file or block device, is in use for writing (or, if it is to be
    /// written, for reading), is empty, or cannot do the direct I/O that was demanded.
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

    /// A file that an engine has already, of any offset and length, which can do everything: for
    /// engines whose files are simulated.
    pub fn on_file(file: FileId, size: u64) -> Backend {
        Backend { kind: Kind::File(Box::new(file::File::simulated(file, size))), size }
    }

    /// Whether its bytes lie in a file or on a block device.
    pub fn is_file(&self) -> bool {
        matches!(self.kind, Kind::File(_))
    }

    /// Whether its bytes lie in the file or on the block device that is at this path now, by
    /// whatever name it was opened.
    pub fn lies_at(&self, path: &Path) -> bool {
        matches!(&self.kind, Kind::File(file) if file.is_at(path))
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// What it can do.
    pub fn capabilities(&self) -> Capabilities {
        match &self.kind {
            Kind::File(file) => file.capabilities(),
            Kind::Memory(_) | Kind::Null => Capabilities {
                flush: true,
                fua: true,
                trim: true,
                write_zeroes: true,
                fast_zero: true,
                multi_conn: true,
                cache: true,
                block_status: true,
                ..Capabilities::default()
            },
        }
    }

    /// The unit of offsets and lengths, in bytes, from which on nothing has to be read before it
    /// can be written.
    pub fn block_preferred(&self) -> u32 {
        match &self.kind {
            Kind::File(file) => file.block_preferred(),
            Kind::Memory(_) | Kind::Null => 4096,
        }
    }

    /// Whether the medium rotates.
    pub fn rotational(&self) -> bool {
        match &self.kind {
            Kind::File(file) => file.rotational(),
            Kind::Memory(_) | Kind::Null => false,
        }
    }

    /// How many requests it should be given at once, unless the configuration says otherwise.
    pub fn default_depth(&self) -> u32 {
        match &self.kind {
            Kind::File(file) => file.default_depth(),
            Kind::Memory(_) | Kind::Null => depth::MEMORY,
        }
    }

    /// What it is, for a line of the log: `/dev/sda (block device, 4000 GB, direct, rotational)`.
    pub fn describe(&self) -> String {
        match &self.kind {
            Kind::File(file) => file.describe(),
            Kind::Memory(_) => format!("memory ({} bytes)", self.size),
            Kind::Null => format!("null ({} bytes)", self.size),
        }
    }

    /// Begins an operation. A range beyond the end is an error, as [`RequestOp::check_range`] has
    /// it. A write that is durable, and a flush, is done once the medium has it.
    pub fn begin<E: Engine>(&mut self, engine: &mut E, operation: Operation) -> Started {
        if let Err(errno) = self.check(&operation) {
            return Begin::Done(Err(errno));
        }
        let Operation { op, offset, length, .. } = operation;
        match &mut self.kind {
            Kind::Memory(memory) => Begin::Done(memory.perform(op, offset, length, operation.data)),
            Kind::Null => Begin::Done(Ok(null_answer(op, length))),
            Kind::File(file) => file.begin(engine, operation),
        }
    }

    /// Takes up an operation of [`Backend::begin`] whose I/O has ended. It can be pending again:
    /// then another `Event::Done` of its tag comes.
    pub fn finish<E: Engine>(&mut self, engine: &mut E, tag: u64, op: RequestOp, done: IoDone) -> Started {
        match &mut self.kind {
            Kind::File(file) => file.finish(engine, tag, op, done),
            Kind::Memory(_) | Kind::Null => Begin::Done(Err(IoError::Io)),
        }
    }

    fn check(&self, operation: &Operation) -> Result<(), IoError> {
        let Operation { op, offset, length, ref data, .. } = *operation;
        if op == RequestOp::Flush {
            return Ok(());
        }
        if op.writes() && self.capabilities().read_only {
            return Err(IoError::NotPermitted);
        }
        op.check_range(offset, length, self.size)?;
        let lacks_data = || data.as_ref().is_none_or(|data| (data.len() as u64) < length);
        if op == RequestOp::Write && lacks_data() {
            return Err(IoError::InvalidArgument);
        }
        Ok(())
    }
}

fn null_answer(op: RequestOp, length: u64) -> Answer {
    match op {
        RequestOp::Read => Answer::Zeroes,
        RequestOp::Status => Answer::Extents(vec![Allocation { length, hole: true }]),
        RequestOp::Cache | RequestOp::Write | RequestOp::Zero { .. } | RequestOp::Trim | RequestOp::Flush => {
            Answer::Nothing
        }
    }
}
