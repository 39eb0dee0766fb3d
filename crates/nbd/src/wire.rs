//! Numbers of the protocol.

/// An error as the protocol numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Errno {
    /// Operation not permitted: a write to a read-only export.
    Perm = 1,
    /// Input/output error.
    Io = 5,
    /// Out of memory.
    NoMem = 12,
    /// Invalid argument.
    Inval = 22,
    /// No space left.
    NoSpc = 28,
    /// Value too large.
    Overflow = 75,
    /// Operation not supported.
    NotSup = 95,
    /// The server is going away.
    Shutdown = 108,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Data, please.
    Read,
    /// Data to be kept.
    Write,
    /// The client is leaving.
    Disconnect,
    /// All that was written and answered is to be durable.
    Flush,
    /// A range is not needed any more.
    Trim,
    /// A range will be read soon.
    Cache,
    /// A range is to read as zeroes.
    WriteZeroes,
    /// What is known of a range.
    BlockStatus,
}

/// Marks of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandFlags {
    /// Durable before it is answered.
    pub fua: bool,
    /// Zeroes are to be allocated, not punched.
    pub no_hole: bool,
    /// The reply in one chunk.
    pub dont_fragment: bool,
    /// One extent.
    pub one_extent: bool,
    /// Zeroes only if that is faster than writing them.
    pub fast_zero: bool,
}
