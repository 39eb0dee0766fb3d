//! The storage of a device: memory, none, a file, a block device, or an export of another server.
//!
//! Memory and null backends complete an I/O within the call ([`Begin::Done`]). Files use the
//! engine ([`Begin::Pending`]); the host passes each [`Event::Done`](hoistway_reactor::Event::Done)
//! to [`Backend::finish`]. Remote exports use connections of the engine: see
//! [`Backend::remote_mut`].

use std::path::Path;

use hoistway_config::BackendConfig;
use hoistway_nbd::Abilities;
use hoistway_qos::{Begin, IoError, MediumRequest, RequestOp};
use hoistway_reactor::{Allocation, Buffer, Engine, FileId, IoDone};

use crate::depth;
use crate::error::BackendError;
use crate::file;
use crate::ids::{DeviceId, IoTag};
use crate::memory;
use crate::output::{IoOutput, Started};
use crate::remote::Remote;

/// The storage of a device.
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
    Remote(Box<Remote>),
}

impl Backend {
    /// Opens the backend of a configuration.
    ///
    /// # Errors
    /// The file is missing, is neither a regular file nor a block device, is locked by another
    /// process, is empty, does not support the required direct I/O, or is to be written and is in
    /// use. A remote export cannot be reached or used.
    ///
    /// The tags of a remote's attempts to connect contain `device`.
    pub fn open<E: Engine>(device: DeviceId, config: &BackendConfig, engine: &mut E) -> Result<Backend, BackendError> {
        match config {
            BackendConfig::Remote(config) => {
                let failed = |cause| BackendError::Remote { uri: config.uri.to_string(), cause };
                let remote = Remote::open(device, config, engine).map_err(failed)?;
                Ok(Backend { size: remote.size(), kind: Kind::Remote(Box::new(remote)) })
            }
            BackendConfig::Memory { bytes } => Backend::memory(*bytes),
            BackendConfig::Null { bytes } => Ok(Backend::null(*bytes)),
            BackendConfig::File { path, direct, read_only, force_in_use } => {
                let file = file::File::open(path, *direct, *read_only, *force_in_use, engine)?;
                Ok(Backend { size: file.size(), kind: Kind::File(Box::new(file)) })
            }
        }
    }

    /// Creates a memory backend, all zeroes; the system allocates its pages on the first write.
    ///
    /// # Errors
    /// The address space has no room for the mapping.
    pub fn memory(bytes: u64) -> Result<Backend, BackendError> {
        let memory = memory::Memory::new(bytes).map_err(|cause| BackendError::Memory { bytes, cause })?;
        Ok(Backend { kind: Kind::Memory(memory), size: bytes })
    }

    /// Creates a null backend: reads return zeroes, writes are discarded.
    pub fn null(bytes: u64) -> Backend {
        Backend { kind: Kind::Null, size: bytes }
    }

    /// Creates a backend over a file that is already open in an engine. It accepts every offset and
    /// length and supports every operation: for engines with simulated files.
    pub fn on_file(file: FileId, size: u64) -> Backend {
        Backend { kind: Kind::File(Box::new(file::File::simulated(file, size))), size }
    }

    /// Returns true if the backend is a file or a block device.
    pub fn is_file(&self) -> bool {
        matches!(self.kind, Kind::File(_))
    }

    /// Returns true if the backend is the file or block device that the path names now, whatever
    /// its path was at the opening.
    pub fn is_at(&self, path: &Path) -> bool {
        matches!(&self.kind, Kind::File(file) if file.is_at(path))
    }

    /// Returns the export of another server, if the backend is one.
    pub fn remote(&self) -> Option<&Remote> {
        match &self.kind {
            Kind::Remote(remote) => Some(remote),
            Kind::Memory(_) | Kind::Null | Kind::File(_) => None,
        }
    }

    /// Returns the export of another server for its connections' events.
    pub fn remote_mut(&mut self) -> Option<&mut Remote> {
        match &mut self.kind {
            Kind::Remote(remote) => Some(remote),
            Kind::Memory(_) | Kind::Null | Kind::File(_) => None,
        }
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the name of the storage for messages: the path of a file, a URI, `memory` or `null`.
    pub fn name(&self) -> std::path::Display<'_> {
        let path = match &self.kind {
            Kind::File(file) => file.path(),
            Kind::Remote(remote) => Path::new(remote.name()),
            Kind::Memory(_) => Path::new("memory"),
            Kind::Null => Path::new("null"),
        };
        path.display()
    }

    /// Returns the supported operations and guarantees.
    pub fn abilities(&self) -> Abilities {
        match &self.kind {
            Kind::File(file) => file.abilities(),
            Kind::Remote(remote) => remote.abilities(),
            Kind::Memory(_) | Kind::Null => Abilities {
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

    /// Returns the preferred alignment of offsets and lengths in bytes; unaligned writes may need a
    /// read.
    pub fn block_preferred(&self) -> u32 {
        match &self.kind {
            Kind::File(file) => file.block_preferred(),
            Kind::Remote(remote) => remote.block_preferred(),
            Kind::Memory(_) | Kind::Null => 4096,
        }
    }

    /// Returns true if the medium rotates.
    pub fn rotational(&self) -> bool {
        match &self.kind {
            Kind::File(file) => file.rotational(),
            Kind::Remote(remote) => remote.rotational(),
            Kind::Memory(_) | Kind::Null => false,
        }
    }

    /// Returns the default queue depth.
    pub fn default_depth(&self) -> u32 {
        match &self.kind {
            Kind::File(file) => file.default_depth(),
            Kind::Remote(_) => depth::REMOTE,
            Kind::Memory(_) | Kind::Null => depth::MEMORY,
        }
    }

    /// Describes the backend for a log line: `/dev/sda (block device, 4000 GB, direct,
    /// rotational)`.
    pub fn describe(&self) -> String {
        match &self.kind {
            Kind::File(file) => file.describe(),
            Kind::Remote(remote) => remote.describe(),
            Kind::Memory(_) => format!("memory ({} bytes)", self.size),
            Kind::Null => format!("null ({} bytes)", self.size),
        }
    }

    /// Begins an I/O of a device. A range beyond the end is an error, as in
    /// [`RequestOp::check_range`]. A durable write or a flush completes when the data are on the
    /// medium.
    pub fn begin<E: Engine>(&mut self, engine: &mut E, device: DeviceId, request: MediumRequest<Buffer>) -> Started {
        if let Err(error) = self.check(&request) {
            return Begin::Done(Err(error));
        }
        let MediumRequest { io, op, offset, length, .. } = request;
        match &mut self.kind {
            Kind::Memory(memory) => Begin::Done(memory.perform(op, offset, length, request.data)),
            Kind::Null => Begin::Done(Ok(null_answer(op, length))),
            Kind::File(file) => file.begin(engine, IoTag { device, io }, request),
            Kind::Remote(remote) => remote.begin(request, engine.now_ns()),
        }
    }

    /// Continues an I/O of [`Backend::begin`] after the end of an operation of the engine. The
    /// result may be pending again: then another `Event::Done` with the same tag follows.
    pub fn finish<E: Engine>(&mut self, engine: &mut E, tag: IoTag, op: RequestOp, done: IoDone) -> Started {
        match &mut self.kind {
            Kind::File(file) => file.finish(engine, tag, op, done),
            Kind::Memory(_) | Kind::Null | Kind::Remote(_) => Begin::Done(Err(IoError::Io)),
        }
    }

    fn check(&self, request: &MediumRequest<Buffer>) -> Result<(), IoError> {
        let MediumRequest { op, offset, length, ref data, .. } = *request;
        if op == RequestOp::Flush {
            return Ok(());
        }
        if op.writes() && self.abilities().read_only {
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

fn null_answer(op: RequestOp, length: u64) -> IoOutput {
    match op {
        RequestOp::Read => IoOutput::Zeroes,
        RequestOp::Status => IoOutput::Extents(vec![Allocation { length, hole: true }]),
        RequestOp::Cache | RequestOp::Write | RequestOp::Zero { .. } | RequestOp::Trim | RequestOp::Flush => {
            IoOutput::Nothing
        }
    }
}
