//! What a trace consists of.

use std::fmt;

/// One event, whatever format it came from. Text that belongs to it lies in its [`Batch`](crate::Batch).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in ns of the recorder's clock (or since the trace began, where the format knows no more).
    pub time_ns: u64,
    /// The first sector, of 512 bytes.
    pub sector: u64,
    /// The length in bytes.
    pub bytes: u32,
    /// The process, as the recorder saw it; 0 where none is known.
    pub pid: u32,
    /// The recorder's count of events of this CPU; 0 where it does not count.
    pub sequence: u32,
    /// The CPU on which it was recorded.
    pub cpu: u32,
    /// The device.
    pub device: DeviceId,
    /// The number of the system's error (of completions).
    pub error: u16,
    /// What happened.
    pub action: Action,
    /// What the request does, and how.
    pub op: Rwbs,
    /// The control group's number (an inode of cgroup v2); 0 where none is known.
    pub cgroup: u64,
    /// Where its payload lies in its batch: see [`Batch::payload`](crate::Batch::payload).
    pub payload: Span,
}

/// A part of a batch's bytes; by default none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

/// What happened. The letters are those of blkparse and btt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Action {
    /// Q: a bio was submitted.
    Queue,
    /// M: it was merged to the end of a request.
    BackMerge,
    /// F: it was merged to the front of one.
    FrontMerge,
    /// G: a request was allocated.
    Get,
    /// S: its process sleeps until one is free.
    Sleep,
    /// R: the driver gave it back.
    Requeue,
    /// D: the driver took it.
    Issue,
    /// C: it completed.
    Complete,
    /// P: the queue was plugged.
    Plug,
    /// U: it was unplugged; the payload is how many requests waited.
    Unplug,
    /// UT: it was unplugged by its timer (since 3.x: at schedule()); the payload is how many requests waited.
    UnplugTimer,
    /// I: it went to the elevator.
    Insert,
    /// X: it was split; the payload is the sector at which.
    Split,
    /// B: it was copied, as the device cannot reach its memory.
    Bounce,
    /// A: it was mapped to another device; the payload tells from where.
    Remap,
    /// Driver's own data.
    DriverData,
    /// A zone was reset, opened, appended to...: v8 of the format only; the number of the action is the payload.
    Zone,
    /// The name of a process is the payload.
    Process,
    /// The payload is the time of the day.
    Timestamp,
    /// m: the payload is a text, most often of the elevator.
    Message,
}

/// What a request does, and how: bits that may come together.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rwbs(pub u16);

/// A device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(
    /// `major << 20 | minor`.
    pub u32,
);

impl Action {
    /// All, in order.
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

    /// Its letters in blkparse's text, without padding.
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

    /// Whether it tells of a process, the clock or a text, and not of a request.
    pub const fn is_note(self) -> bool {
        matches!(self, Action::Process | Action::Timestamp | Action::Message)
    }
}

impl Rwbs {
    /// Reads (R).
    pub const READ: Rwbs = Rwbs(1 << 0);
    /// Writes (W).
    pub const WRITE: Rwbs = Rwbs(1 << 1);
    /// Gives sectors back (D).
    pub const DISCARD: Rwbs = Rwbs(1 << 2);
    /// Makes what was written before durable first (F, before the letter of the operation).
    pub const FLUSH: Rwbs = Rwbs(1 << 3);
    /// Durable itself before it completes (F, behind it).
    pub const FUA: Rwbs = Rwbs(1 << 4);
    /// Read ahead (A).
    pub const AHEAD: Rwbs = Rwbs(1 << 5);
    /// Somebody waits for it (S).
    pub const SYNC: Rwbs = Rwbs(1 << 6);
    /// A file system's own data (M).
    pub const META: Rwbs = Rwbs(1 << 7);
    /// Neither (N): plugs, commands that are not of the file system.
    pub const NONE: Rwbs = Rwbs(1 << 8);
    /// A command that is passed through to the device: blktrace's `pc` category.
    pub const PASS_THROUGH: Rwbs = Rwbs(1 << 9);

    /// Whether all bits of the other are set.
    pub const fn has(self, bits: Rwbs) -> bool {
        self.0 & bits.0 == bits.0
    }

    /// Both.
    #[must_use]
    pub const fn with(self, bits: Rwbs) -> Rwbs {
        Rwbs(self.0 | bits.0)
    }
}

impl DeviceId {
    /// From its two numbers; those of more than 12 and 20 bits are cut off.
    pub const fn new(major: u32, minor: u32) -> DeviceId {
        DeviceId(major << 20 | minor & 0xF_FFFF)
    }

    /// The driver's number.
    pub const fn major(self) -> u32 {
        self.0 >> 20
    }

    /// The device's number at its driver.
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

impl fmt::Display for DeviceId {
    /// As in `254,0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.major(), self.minor())
    }
}
