//! The structures and codes that cross the boundary. They have the layout of their namesakes in `hoistway.h`.

use hoistway_core::{BlockLayer, Capacity, ClockConfig, Kind, OrderedMode, QueueConfig, Reservation};

/// What a function answers: 0 or more is success, less is one of these errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// Done; where a function answers a kick, there is nothing to do. `next` has written a request.
    Ok = 0,
    /// Done, and the host has to run the queue: call `next` until its device is full or nothing comes.
    Run = 1,
    /// `next` has nothing now, but requests are queued.
    Wait = 2,
    /// `next` has nothing, and nothing is queued.
    Empty = 3,
    /// A pointer is null or badly aligned, a number is out of its range, or a flag is unknown.
    Invalid = -1,
    /// The block of memory is smaller than `hoistway_queue_size` says, or an array is too short. Nothing was done.
    TooSmall = -2,
    /// The table of requests, of contexts or of groups is full.
    Full = -3,
    /// The context, group or request is not, or no longer, one of this queue's.
    Stale = -4,
    /// The bio has no sectors, or ends beyond sector 2^64.
    BadExtent = -5,
    /// The bio is a barrier and the queue's device cannot order; or nothing can be reserved.
    NotSupported = -6,
    /// There is no elevator, or the elevator has no tunable, of this name or index.
    Unknown = -7,
    /// The tunable's value, or a group's weight, is out of its range.
    OutOfRange = -8,
    /// A switch is under way: wait until it is over. Or the group has child groups, contexts or requests, or is the root.
    Busy = -9,
    /// The process sleeps for a request and submits another bio, or was not woken and resubmits.
    NotAwake = -10,
    /// The device cannot keep one more promise of this size.
    NoCapacity = -11,
}

/// How much a queue holds at once.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CCapacity {
    /// Requests: queued, dispatched and in the device; 1 to 2^24.
    pub requests: u32,
    /// Contexts: 1 to 2^24.
    pub contexts: u32,
    /// Bios merged into requests, beyond the one that each was made for: 0 to 2^24.
    pub merged_bios: u32,
    /// Trace events kept until they are read: 0 to 2^24. The oldest is dropped when there is no room.
    pub events: u32,
    /// Groups, the root included: 0 (the root alone) to 2^24.
    pub groups: u32,
}

/// The most that an entry of [`CCapacity`] may be.
pub const CAPACITY_MAX: u32 = 1 << 24;

impl CCapacity {
    /// The capacity of the core's tables, if it is in range.
    pub(crate) fn checked(self) -> Option<Capacity> {
        let CCapacity { requests, contexts, merged_bios, events, groups } = self;
        let fits = [requests, contexts, merged_bios, events, groups].iter().all(|&n| n <= CAPACITY_MAX);
        (fits && requests > 0 && contexts > 0).then_some(Capacity { requests, contexts, merged_bios, groups })
    }
}

/// How a queue behaves, beside its elevator.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CConfig {
    /// The kernel whose block layer it follows: 0 for 2.6.18, 1 for 2.6.24, 2 for 2.6.29, 3 for 3.4, 4 for 4.19, 5 for 6.1.
    pub layer: u32,
    /// Ticks a second, 1 to 1000.
    pub hz: u32,
    /// How long the machine had been up at the host's time 0, in ns.
    pub uptime_ns: u64,
    /// The pool of requests a direction, 4 or more; 0 for as many as there is room for.
    pub nr_requests: u32,
    /// The largest request that merging makes, in sectors of 512 bytes; 1 or more.
    pub max_sectors: u32,
    /// 1 to hold requests back for a moment, so that bios can be merged; else 0.
    pub plugging: u8,
    /// 1 to merge bios; else 0.
    pub merging: u8,
    /// 1 if a request that a bio was refused for size takes no more; else 0.
    pub refusal_ends_merging: u8,
    /// How the device orders: 0 not at all, 1 by draining, 2 by ordered tags.
    pub ordered: u8,
    /// 1 if the device has a write cache, to be flushed around a barrier; else 0.
    pub ordered_flush: u8,
    /// 1 if it can write a single request through its cache; else 0.
    pub ordered_fua: u8,
    /// The hardware queues of the device: 1 to 4096.
    pub hw_queues: u16,
    /// 1 if the device has an arm that moves; else 0.
    pub rotational: u8,
}

/// The most hardware queues.
const HW_QUEUES_MAX: u16 = 4096;

impl CConfig {
    /// The core's own defaults.
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

/// A bio as C submits it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CBio {
    /// The submitter's own name for it.
    pub token: u64,
    /// The context that asks.
    pub context: u64,
    /// The first sector, in units of 512 bytes.
    pub sector: u64,
    /// The length in sectors of 512 bytes.
    pub sectors: u32,
    /// 0 reads, 1 writes, 3 discards.
    pub op: u16,
    /// Marks: see `HOISTWAY_SYNC` and the others.
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

/// What became of a bio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CSubmitted {
    /// The request that it is part of now; 0 if its process sleeps.
    pub request: u64,
    /// 0: it became a request; 1: it was merged into one; 2: its process sleeps.
    pub what: u32,
    /// Zero.
    pub reserved: u32,
}

/// A request for the driver.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CRequest {
    /// Its handle.
    pub id: u64,
    /// The token of the bio that it was made for.
    pub token: u64,
    /// The first sector, in units of 512 bytes.
    pub sector: u64,
    /// When it was made, in ns.
    pub submitted_ns: u64,
    /// The length in sectors of 512 bytes.
    pub sectors: u32,
    /// The process that it was made for.
    pub pid: u32,
    /// 0 reads, 1 writes, 2 flushes the device's cache, 3 discards.
    pub op: u16,
    /// The marks of the bio that it was made for.
    pub flags: u16,
    /// How many tokens its completion can write at the most.
    pub bios_max: u32,
}

/// A piece of deferred work.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CWork {
    /// 0: run the queue; 1: the process of `context` may go on.
    pub what: u32,
    /// Zero.
    pub reserved: u32,
    /// Who is woken.
    pub context: u64,
}

/// A tunable and its value.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CTunable {
    /// The kernel's name: `name_len` bytes of UTF-8 that live for ever, without a zero at the end.
    pub name: *const u8,
    /// The length of the name in bytes.
    pub name_len: usize,
    /// The value, in the kernel's unit.
    pub value: i64,
    /// The value it starts with.
    pub default_value: i64,
    /// The least value it takes.
    pub min: i64,
    /// The greatest value it takes.
    pub max: i64,
}

/// In the number of an elevator that a queue is made with or switched to: with the layer of reserved bandwidth over it.
pub const RESERVING: u32 = 1 << 16;

/// Which elevator a queue is made with or switched to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub kind: Kind,
    /// Whether processes and groups can reserve bandwidth.
    pub reserving: bool,
}

impl Choice {
    /// The elevator of this number.
    pub fn read(number: u32) -> Result<Choice, Status> {
        let kind = Kind::ALL.get((number & !RESERVING) as usize).copied().ok_or(Status::Unknown)?;
        Ok(Choice { kind, reserving: number & RESERVING != 0 || kind.info().reservations })
    }
}
