//! Requests and completions as the host of a queue sees them.

/// The error of a request.
///
/// The variants are those that storage protocols can express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoError {
    /// The operation is not permitted (EPERM, EACCES, EROFS).
    NotPermitted,
    /// The device failed (EIO, and every error without a variant of its own).
    Io,
    /// Memory ran out (ENOMEM).
    NoMemory,
    /// An argument is invalid, for example a read beyond the end (EINVAL).
    InvalidArgument,
    /// No space is left, for example for a write beyond the end (ENOSPC).
    NoSpace,
    /// A value is too large (EOVERFLOW).
    Overflow,
    /// The operation is not supported (EOPNOTSUPP).
    NotSupported,
    /// The client left before the request began, or the server shuts down (ESHUTDOWN).
    Shutdown,
}

impl std::fmt::Display for IoError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            IoError::NotPermitted => "EPERM",
            IoError::Io => "EIO",
            IoError::NoMemory => "ENOMEM",
            IoError::InvalidArgument => "EINVAL",
            IoError::NoSpace => "ENOSPC",
            IoError::Overflow => "EOVERFLOW",
            IoError::NotSupported => "ENOTSUP",
            IoError::Shutdown => "ESHUTDOWN",
        })
    }
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOp {
    /// Reads a range.
    Read,
    /// Reads a range into caches without returning the data.
    Cache,
    /// Writes a range.
    Write,
    /// Makes a range read as zeroes.
    Zero {
        /// Whether the range may become a hole.
        punch: bool,
    },
    /// Discards a range.
    Trim,
    /// Makes every write durable that completed before.
    Flush,
    /// Returns which parts of a range are allocated.
    Status,
}

impl RequestOp {
    /// Returns true if the operation changes the contents of a range.
    pub fn writes(self) -> bool {
        matches!(self, RequestOp::Write | RequestOp::Zero { .. } | RequestOp::Trim)
    }

    /// Checks that a range of `length` bytes at `offset` is within a device of `size` bytes.
    ///
    /// # Errors
    /// [`IoError::NoSpace`] for a write or a zeroing beyond the end, [`IoError::InvalidArgument`]
    /// for any other operation, as the NBD protocol prescribes.
    pub fn check_range(self, offset: u64, length: u64, size: u64) -> Result<(), IoError> {
        match offset.checked_add(length).is_some_and(|end| end <= size) {
            true => Ok(()),
            false if matches!(self, RequestOp::Write | RequestOp::Zero { .. }) => Err(IoError::NoSpace),
            false => Err(IoError::InvalidArgument),
        }
    }
}

/// Properties of a request that elevators use beside its range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// A write that no process waits for, such as write-back.
    pub is_async: bool,
    /// The request concerns file system metadata.
    pub is_metadata: bool,
}

/// A request that a client submits to a queue.
#[derive(Debug)]
pub struct IoRequest<D> {
    /// The host's identifier of the request, returned in its [`Completion`].
    pub ticket: u64,
    /// The operation.
    pub op: RequestOp,
    /// The first byte of the range on the device.
    pub offset: u64,
    /// The length of the range in bytes.
    pub length: u64,
    /// Whether a write must be durable before it completes.
    pub durable: bool,
    /// The data that the medium needs to begin the I/O: the data of a write, or what the host
    /// attaches to the request. The queue keeps it until dispatch.
    pub data: Option<D>,
    /// Properties for the elevator.
    pub hints: Hints,
}

impl<D> IoRequest<D> {
    /// Creates a request without data, durability and hints.
    pub fn plain(ticket: u64, op: RequestOp, offset: u64, length: u64) -> IoRequest<D> {
        IoRequest { ticket, op, offset, length, durable: false, data: None, hints: Hints::default() }
    }
}

/// The end of a request.
#[derive(Debug)]
pub struct Completion<O> {
    /// The identifier from [`IoRequest::ticket`].
    pub ticket: u64,
    /// The output of the request, or its error.
    pub result: Result<O, IoError>,
}
