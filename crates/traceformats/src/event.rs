//! Events of a block trace: action, operation flags and device numbers.

use std::fmt;

/// One event of a block trace, independent of the format that it was read from.
/// A variable-length payload is stored in the batch that holds the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time in ns of the recorder's clock, or since the start of the trace if the format has no
    /// clock.
    pub time_ns: u64,
    /// First sector, in units of 512 bytes.
    pub sector: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// Process id as recorded; 0 if the format does not record one.
    pub pid: u32,
    /// Sequence number of the event on its CPU; 0 if the recorder does not count events.
    pub sequence: u32,
    /// CPU on which the event was recorded.
    pub cpu: u32,
    /// Device on which the event happened.
    pub device: DeviceId,
    /// Error number (errno) of a completion; 0 for success.
    pub error: u16,
    /// Kind of the event.
    pub action: Action,
    /// Operation and flags of the request.
    pub op: Rwbs,
    /// Control group id (the inode number in cgroup v2); 0 if unknown.
    pub cgroup: u64,
    /// Position of the payload in the batch that holds the event.
    pub payload: Span,
}

/// A byte range of a batch's payload buffer; the default is an empty range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

/// Kind of an event. The letters are those of blkparse and btt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Action {
    /// Q: a bio was submitted.
    Queue,
    /// M: a bio was merged to the end of a request.
    BackMerge,
    /// F: a bio was merged to the front of a request.
    FrontMerge,
    /// G: a request was allocated.
    Get,
    /// S: the submitting process sleeps until a request is free.
    Sleep,
    /// R: the driver returned the request to the queue.
    Requeue,
    /// D: the driver took the request.
    Issue,
    /// C: the request completed.
    Complete,
    /// P: the queue was plugged.
    Plug,
    /// U: the queue was unplugged; the payload is the number of plugged requests.
    Unplug,
    /// UT: the queue was unplugged by a timer (since 3.x: by schedule()); the payload is the number
    /// of plugged requests.
    UnplugTimer,
    /// I: the request was inserted into the elevator.
    Insert,
    /// X: the bio was split; the payload is the first sector of the second part.
    Split,
    /// B: the data was copied to a bounce buffer because the device cannot reach the original
    /// memory.
    Bounce,
    /// A: the bio was mapped to another device; the payload is the original device and sector.
    Remap,
    /// Data specific to a driver.
    DriverData,
    /// A zone operation (reset, open, append...), in version 8 of the format only. The payload is
    /// the number of the action.
    Zone,
    /// The payload is the name of a process.
    Process,
    /// The payload is the wall-clock time.
    Timestamp,
    /// m: the payload is a text, usually from the elevator.
    Message,
}

/// Operation and flags of a request, as a bit set.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rwbs(pub u16);

/// A block device number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(
    /// `major << 20 | minor`.
    pub u32,
);

impl Action {
    /// All actions, in order of declaration.
    pub const ALL: [Action; 20] = [
        Action::Queue,
        Action::BackMerge,
        Action::FrontMerge,
        Action::Get,
        Action::Sleep,
        Action::Requeue,
        Action::Issue,
        Action::Complete,
        Action::Plug,
        Action::Unplug,
        Action::UnplugTimer,
        Action::Insert,
        Action::Split,
        Action::Bounce,
        Action::Remap,
        Action::DriverData,
        Action::Zone,
        Action::Process,
        Action::Timestamp,
        Action::Message,
    ];

    /// Returns the letters of the action in blkparse's text, without padding.
    pub const fn letters(self) -> &'static str {
        match self {
            Action::Queue => "Q",
            Action::BackMerge => "M",
            Action::FrontMerge => "F",
            Action::Get => "G",
            Action::Sleep => "S",
            Action::Requeue => "R",
            Action::Issue => "D",
            Action::Complete => "C",
            Action::Plug => "P",
            Action::Unplug => "U",
            Action::UnplugTimer => "UT",
            Action::Insert => "I",
            Action::Split => "X",
            Action::Bounce => "B",
            Action::Remap => "A",
            Action::DriverData => "d",
            Action::Zone => "Z",
            Action::Process => "N",
            Action::Timestamp => "T",
            Action::Message => "m",
        }
    }

    /// Returns true if the event describes a process, the clock or a text instead of a request.
    #[inline]
    pub const fn is_note(self) -> bool {
        matches!(self, Action::Process | Action::Timestamp | Action::Message)
    }
}

impl Rwbs {
    /// Read (R).
    pub const READ: Rwbs = Rwbs(1 << 0);
    /// Write (W).
    pub const WRITE: Rwbs = Rwbs(1 << 1);
    /// Discard (D).
    pub const DISCARD: Rwbs = Rwbs(1 << 2);
    /// Preflush (F, before the letter of the operation): earlier writes become durable first.
    pub const FLUSH: Rwbs = Rwbs(1 << 3);
    /// Force unit access (F, after the operation): the write is durable when it completes.
    pub const FUA: Rwbs = Rwbs(1 << 4);
    /// Read-ahead (A).
    pub const AHEAD: Rwbs = Rwbs(1 << 5);
    /// Synchronous (S): a process waits for the completion.
    pub const SYNC: Rwbs = Rwbs(1 << 6);
    /// File-system metadata (M).
    pub const META: Rwbs = Rwbs(1 << 7);
    /// No data direction (N): plugs and passed-through commands.
    pub const NONE: Rwbs = Rwbs(1 << 8);
    /// A command passed through to the device: blktrace's `pc` category.
    pub const PASS_THROUGH: Rwbs = Rwbs(1 << 9);

    /// Returns true if all of `bits` are set.
    #[inline]
    pub const fn has(self, bits: Rwbs) -> bool {
        self.0 & bits.0 == bits.0
    }

    /// Returns the union of both sets.
    #[must_use]
    #[inline]
    pub const fn with(self, bits: Rwbs) -> Rwbs {
        Rwbs(self.0 | bits.0)
    }
}

impl DeviceId {
    /// Combines a major number (12 bits) and a minor number (20 bits); higher bits are cut off.
    #[inline]
    pub const fn new(major: u32, minor: u32) -> DeviceId {
        DeviceId(major << 20 | minor & 0xF_FFFF)
    }

    /// Returns the major number, which identifies the driver.
    #[inline]
    pub const fn major(self) -> u32 {
        self.0 >> 20
    }

    /// Returns the minor number, which identifies the device of the driver.
    #[inline]
    pub const fn minor(self) -> u32 {
        self.0 & 0xF_FFFF
    }
}

impl fmt::Debug for Rwbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = [
            (Rwbs::FLUSH, "F"),
            (Rwbs::READ, "R"),
            (Rwbs::WRITE, "W"),
            (Rwbs::DISCARD, "D"),
            (Rwbs::NONE, "N"),
            (Rwbs::FUA, "F"),
            (Rwbs::AHEAD, "A"),
            (Rwbs::SYNC, "S"),
            (Rwbs::META, "M"),
        ];
        letters.iter().filter(|(bit, _)| self.has(*bit)).try_for_each(|(_, letter)| f.write_str(letter))
    }
}

impl serde::Serialize for DeviceId {
    /// Serialises the device as a text such as `254,0`.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for DeviceId {
    /// Writes major and minor number separated by a comma, as in `254,0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.major(), self.minor())
    }
}
