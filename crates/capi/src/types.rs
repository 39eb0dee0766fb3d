//! The structures and codes of the interface, with the layouts of `hoistway.h`.

use hoistway_core::{BlockLayer, Capacity, ClockConfig, Kind, OrderedMode, QueueConfig, Reservation};

/// The return value of a function: success from 0 on, errors below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// Success; no action is needed. `next` has written a request.
    Ok = 0,
    /// Success; the host must run the queue: call `next` until the device is full or no request is
    /// returned.
    Run = 1,
    /// `next` has no request now, but requests are queued.
    Wait = 2,
    /// `next` has no request, and none is queued.
    Empty = 3,
    /// `hoistway_prepare_merge`: the caller searches itself.
    Search = 4,
    /// A pointer is null or misaligned, a number is out of its range, or a flag is unknown.
    Invalid = -1,
    /// The block of memory is smaller than `hoistway_queue_size` returns, or an array is too short.
    /// Nothing has changed.
    TooSmall = -2,
    /// The table of requests, of contexts or of groups is full.
    Full = -3,
    /// The context, group or request does not, or no longer, belong to this queue.
    Stale = -4,
    /// The bio has no sectors, or ends beyond sector 2^64.
    BadExtent = -5,
    /// The bio is a barrier and the device cannot order; or reservations are not supported.
    NotSupported = -6,
    /// There is no elevator, or the elevator has no tunable, of this name or index.
    Unknown = -7,
    /// The tunable's value, or a group's weight, is out of its range.
    OutOfRange = -8,
    /// A switch is in progress. Or the group has child groups, contexts or requests, or is the
    /// root.
    Busy = -9,
    /// The process sleeps for a request and submits another bio, or was not woken and resubmits.
    NotAwake = -10,
    /// The device has no capacity for the reservation.
    NoCapacity = -11,
}

/// The maximum number of objects in a queue.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CCapacity {
    /// Requests: queued, dispatched and in the device; 1 to 2^24.
    pub requests: u32,
    /// Contexts: 1 to 2^24.
    pub contexts: u32,
    /// Bios merged into requests, not counting the bio for which each request was made: 0 to 2^24.
    pub merged_bios: u32,
    /// Trace events kept until they are read: 0 to 2^24. Beyond that the oldest are dropped.
    pub events: u32,
    /// Groups including the root: 0 (the root only) to 2^24.
    pub groups: u32,
}

/// The maximum of an entry of [`CCapacity`].
pub const CAPACITY_MAX: u32 = 1 << 24;

impl CCapacity {
    /// The capacity of the core's tables, if it is in range.
    pub(crate) fn checked(self) -> Option<Capacity> {
        let CCapacity { requests, contexts, merged_bios, events, groups } = self;
        let fits = [requests, contexts, merged_bios, events, groups].iter().all(|&n| n <= CAPACITY_MAX);
        (fits && requests > 0 && contexts > 0).then_some(Capacity { requests, contexts, merged_bios, groups })
    }
}

/// The configuration of a queue, apart from its elevator.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CConfig {
    /// The kernel of the block layer: 0 for 2.6.18, 1 for 2.6.24, 2 for 2.6.29, 3 for 3.4, 4 for
    /// 4.19, 5 for 6.1.
    pub layer: u32,
    /// Ticks a second, 1 to 1000.
    pub hz: u32,
    /// The uptime at the host's time 0, in ns.
    pub uptime_ns: u64,
    /// The pool size per direction, 4 or more; 0 for the capacity of the storage.
    pub nr_requests: u32,
    /// The size limit of merged requests, in sectors of 512 bytes; 1 or more.
    pub max_sectors: u32,
    /// 1 to plug the queue, so that bios can be merged; otherwise 0.
    pub plugging: u8,
    /// 1 to merge bios; otherwise 0.
    pub merging: u8,
    /// 1 if a request takes no more bios after one was refused because of its size; otherwise 0.
    pub refusal_ends_merging: u8,
    /// The device's support for barriers: 0 none, 1 draining, 2 ordered tags.
    pub ordered: u8,
    /// 1 if the device has a write cache, to be flushed around a barrier; otherwise 0.
    pub ordered_flush: u8,
    /// 1 if the device supports forced unit access; otherwise 0.
    pub ordered_fua: u8,
    /// The hardware queues of the device: 1 to 4096.
    pub hw_queues: u16,
    /// 1 if the device is rotational; otherwise 0.
    pub rotational: u8,
}

/// The maximum number of hardware queues.
const HW_QUEUES_MAX: u16 = 4096;

impl CConfig {
    /// The core's defaults.
    pub(crate) fn defaults() -> CConfig {
        let config = QueueConfig::default();
        let (ordered, flush, fua) = match config.ordered {
            OrderedMode::None => (0, false, false),
            OrderedMode::Drain { flush, fua } => (1, flush, fua),
            OrderedMode::Tag { flush, fua } => (2, flush, fua),
        };
        CConfig {
            layer: config.layer as u32,
            hz: config.clock.hz,
            uptime_ns: config.clock.uptime_ns,
            nr_requests: config.nr_requests.unwrap_or(0),
            max_sectors: config.max_sectors,
            plugging: u8::from(config.plugging),
            merging: u8::from(config.merging),
            refusal_ends_merging: u8::from(config.refusal_ends_merging),
            ordered,
            ordered_flush: u8::from(flush),
            ordered_fua: u8::from(fua),
            hw_queues: config.hw_queues,
            rotational: u8::from(config.rotational),
        }
    }

    /// The core's configuration, if every field is in range.
    pub(crate) fn checked(&self) -> Option<QueueConfig> {
        if self.hz == 0
            || self.hz > 1000
            || self.max_sectors == 0
            || (1..4).contains(&self.nr_requests)
            || !(1..=HW_QUEUES_MAX).contains(&self.hw_queues)
        {
            return None;
        }
        let (flush, fua) = (switch(self.ordered_flush)?, switch(self.ordered_fua)?);
        Some(QueueConfig {
            layer: layer(self.layer)?,
            clock: ClockConfig { hz: self.hz, uptime_ns: self.uptime_ns },
            plugging: switch(self.plugging)?,
            merging: switch(self.merging)?,
            nr_requests: (self.nr_requests > 0).then_some(self.nr_requests),
            max_sectors: self.max_sectors,
            refusal_ends_merging: switch(self.refusal_ends_merging)?,
            ordered: match self.ordered {
                0 => OrderedMode::None,
                1 => OrderedMode::Drain { flush, fua },
                2 => OrderedMode::Tag { flush, fua },
                _ => return None,
            },
            hw_queues: self.hw_queues,
            rotational: switch(self.rotational)?,
        })
    }
}

fn switch(value: u8) -> Option<bool> {
    match value {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn layer(number: u32) -> Option<BlockLayer> {
    let layers = [
        BlockLayer::V2_6_18,
        BlockLayer::V2_6_24,
        BlockLayer::V2_6_29,
        BlockLayer::V3_4,
        BlockLayer::V4_19,
        BlockLayer::V6_1,
    ];
    layers.get(number as usize).copied()
}

/// A bio as submitted from C.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CBio {
    /// An identifier chosen by the caller.
    pub token: u64,
    /// The context of the submitting process.
    pub context: u64,
    /// The first sector, in units of 512 bytes.
    pub sector: u64,
    /// The length in sectors of 512 bytes.
    pub sectors: u32,
    /// 0 reads, 1 writes, 3 discards.
    pub op: u16,
    /// Flags: see `HOISTWAY_SYNC` and the others.
    pub flags: u16,
}

/// The bandwidth that a process or group reserves.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CReservation {
    /// The rate, in bytes a second: 1 to 10^10.
    pub bytes_per_second: u64,
    /// The depth of its token bucket, in bytes: 1 to 2^50, or 0 for the default.
    pub depth_bytes: u64,
    /// The size of its requests, in bytes: 512 to 2^30, or 0 for 128 KiB.
    pub request_bytes: u64,
}

impl CReservation {
    pub(crate) fn to_core(self) -> Reservation {
        Reservation {
            bytes_per_second: self.bytes_per_second,
            depth_bytes: (self.depth_bytes > 0).then_some(self.depth_bytes),
            request_bytes: if self.request_bytes > 0 { self.request_bytes } else { Reservation::REQUEST_DEFAULT },
        }
    }
}

/// The result of a submission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CSubmitted {
    /// The request that contains the bio; 0 if the process sleeps.
    pub request: u64,
    /// 0: the bio became a request; 1: it was merged into one; 2: its process sleeps.
    pub what: u32,
    /// Always zero.
    pub reserved: u32,
}

/// A queued request that the host may merge with a bio or another request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CNeighbour {
    /// The handle of the request.
    pub request: u64,
    /// The token of the bio for which the request was made.
    pub token: u64,
    /// 0: the bio belongs at the request's end; 1: at its front.
    pub side: u32,
    /// Always zero.
    pub reserved: u32,
}

/// The sectors of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CExtent {
    /// The first sector, in units of 512 bytes.
    pub sector: u64,
    /// The length in sectors of 512 bytes, 1 or more.
    pub sectors: u32,
    /// Always zero.
    pub reserved: u32,
}

/// A request for the driver.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CRequest {
    /// The handle of the request.
    pub id: u64,
    /// The token of the bio for which the request was made.
    pub token: u64,
    /// The first sector, in units of 512 bytes.
    pub sector: u64,
    /// The time at which it was made, in ns.
    pub submitted_ns: u64,
    /// The length in sectors of 512 bytes.
    pub sectors: u32,
    /// The process for which it was made.
    pub pid: u32,
    /// 0 reads, 1 writes, 2 flushes the device's cache, 3 discards.
    pub op: u16,
    /// The flags of the bio for which it was made.
    pub flags: u16,
    /// The maximum number of tokens that its completion writes.
    pub bios_max: u32,
}

/// An item of deferred work.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CWork {
    /// 0: run the queue; 1: the process of `context` was woken.
    pub what: u32,
    /// Always zero.
    pub reserved: u32,
    /// The context of the woken process.
    pub context: u64,
}

/// A tunable and its value.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CTunable {
    /// The kernel's name: `name_len` static bytes of UTF-8, without a terminating zero.
    pub name: *const u8,
    /// The length of the name in bytes.
    pub name_len: usize,
    /// The value, in the kernel's unit.
    pub value: i64,
    /// The default value.
    pub default_value: i64,
    /// The minimum.
    pub min: i64,
    /// The maximum.
    pub max: i64,
}

/// The bit in an elevator index that adds the reservation layer.
pub const RESERVING: u32 = 1 << 16;

/// The bit in an elevator index that creates a queue with room for the tables of this elevator
/// only. It cannot be switched.
pub const FIXED: u32 = 1 << 17;

/// The elevator with which a queue is created or to which it is switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub kind: Kind,
    /// Whether processes and groups can reserve bandwidth.
    pub reserving: bool,
    /// Whether the queue keeps this elevator.
    pub fixed: bool,
}

impl Choice {
    /// Parses an elevator index, possibly with [`RESERVING`] and [`FIXED`].
    pub fn read(number: u32) -> Result<Choice, Status> {
        let index = number & !(RESERVING | FIXED);
        let kind = Kind::ALL.get(index as usize).copied().ok_or(Status::Unknown)?;
        let reserving = number & RESERVING != 0 || kind.info().reservations;
        Ok(Choice { kind, reserving, fixed: number & FIXED != 0 })
    }
}
