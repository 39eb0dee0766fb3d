//! The description of a new queue at the start of a recording.

use hoistway_core::{
    BlockLayer, Capacity, ClockConfig, ElevatorStorage, Kind, NoSink, OrderedMode, Owned, QueueConfig, RequestQueue,
    Storage,
};

use super::call::Call;
use super::error::RecordError;
use super::record::Record;

/// The queue of a replay.
pub(super) type Queue = RequestQueue<Owned<NoSink>>;

/// The largest numbers of requests and contexts, and of groups, that the module creates.
const TABLE_MAX: u32 = 65_536;
const GROUPS_MAX: u32 = 4096;
const HW_QUEUES_MAX: u32 = 4096;
/// The bit of an elevator number that adds the reservation layer.
const RESERVING: u32 = 1 << 16;
const LAYERS: [BlockLayer; 6] = [
    BlockLayer::V2_6_18,
    BlockLayer::V2_6_24,
    BlockLayer::V2_6_29,
    BlockLayer::V3_4,
    BlockLayer::V4_19,
    BlockLayer::V6_1,
];

/// The description of a queue, as far as its records have been read.
#[derive(Debug)]
pub(super) struct Start {
    queue: Record,
    config: Option<Record>,
    kind: Option<Kind>,
    module: String,
    tunables: Vec<(String, i64)>,
}

impl Start {
    /// Begins with the first record of a description.
    pub fn new(queue: Record) -> Start {
        Start { queue, config: None, kind: None, module: String::new(), tunables: Vec::new() }
    }

    /// Adds a record. Returns true if the description is complete.
    pub fn add(&mut self, record: &Record) -> Result<bool, RecordError> {
        let call = record.call;
        match call {
            Call::Config if self.config.is_none() => self.config = Some(*record),
            Call::Name if self.config.is_some() && self.kind.is_none() => {
                let name = record.text(0..2);
                self.kind = Some(Kind::from_name(&name).ok_or(RecordError::Elevator { name })?);
                self.module = record.text(2..4);
            }
            Call::Tunable if self.kind.is_some() => self.tunables.push((record.text(0..4), record.token as i64)),
            _ => {
                let right = "the description of a queue has its configuration, its names and its tunables";
                return Err(RecordError::Place { call, right });
            }
        }
        Ok(self.is_complete())
    }

    fn is_complete(&self) -> bool {
        self.kind.is_some() && self.tunables.len() as u64 >= u64::from(self.queue.n[0])
    }

    /// The elevator.
    pub fn elevator(&self) -> Option<&'static str> {
        self.kind.map(|kind| kind.info().name)
    }

    /// The version of the module.
    pub fn module(&self) -> &str {
        &self.module
    }

    /// The handle of the root group.
    pub fn root(&self) -> u64 {
        self.queue.a[3]
    }

    /// Creates the queue. The description must be complete.
    pub fn create(&self) -> Result<Queue, RecordError> {
        let place = RecordError::Place { call: Call::Queue, right: "its description is not complete" };
        let (Some(config), Some(kind)) = (&self.config, self.kind) else { return Err(place) };
        let capacity = self.capacity()?;
        let elevator = self.queue.halves()[5];
        let storage = if elevator & RESERVING != 0 || kind.info().reservations {
            ElevatorStorage::owned_reserving(kind, capacity)
        } else {
            ElevatorStorage::owned(kind, capacity)
        };
        let config = configuration(config)?;
        let mut queue = RequestQueue::new(config, Storage::owned(capacity), storage, NoSink, self.queue.time_ns);
        for (name, value) in &self.tunables {
            // A default may be finer than the unit in which it is read.
            if queue.tunables().any(|(tunable, default)| tunable.name == name && default == *value) {
                continue;
            }
            queue.set_tunable(name, *value).map_err(|_| RecordError::Tunable {
                elevator: kind.info().name,
                tunable: name.clone(),
                value: *value,
            })?;
        }
        Ok(queue)
    }

    fn capacity(&self) -> Result<Capacity, RecordError> {
        let [requests, contexts, merged_bios, _events, groups, _elevator] = self.queue.halves();
        within("the capacity for requests", requests, 1, TABLE_MAX)?;
        within("the capacity for contexts", contexts, 1, TABLE_MAX)?;
        within("the capacity for merged bios", merged_bios, 0, TABLE_MAX)?;
        within("the capacity for groups", groups, 0, GROUPS_MAX)?;
        Ok(Capacity { requests, contexts, merged_bios, groups })
    }
}

fn configuration(record: &Record) -> Result<QueueConfig, RecordError> {
    let [layer, hz, nr_requests, max_sectors, ..] = record.halves();
    within("the block layer", layer, 0, LAYERS.len() as u32 - 1)?;
    within("HZ", hz, 1, 1000)?;
    within("max_sectors", max_sectors, 1, u32::MAX)?;
    within("hw_queues", record.n[0], 1, HW_QUEUES_MAX)?;
    if nr_requests > 0 {
        within("nr_requests", nr_requests, 4, u32::MAX)?;
    }
    let bytes = record.a[3].to_le_bytes();
    for (what, byte) in ["plugging", "merging", "refusal_ends_merging"].into_iter().zip(bytes) {
        within(what, u32::from(byte), 0, 1)?;
    }
    for (what, byte) in ["ordered_flush", "ordered_fua", "rotational"].into_iter().zip(bytes.into_iter().skip(4)) {
        within(what, u32::from(byte), 0, 1)?;
    }
    within("ordered", u32::from(bytes[3]), 0, 2)?;
    let [plugging, merging, refusal_ends_merging, _, flush, fua, rotational, _] = bytes.map(|byte| byte != 0);
    Ok(QueueConfig {
        layer: LAYERS[layer as usize],
        clock: ClockConfig { hz, uptime_ns: record.a[2] },
        plugging,
        merging,
        nr_requests: (nr_requests > 0).then_some(nr_requests),
        max_sectors,
        refusal_ends_merging,
        ordered: match bytes[3] {
            1 => OrderedMode::Drain { flush, fua },
            2 => OrderedMode::Tag { flush, fua },
            _ => OrderedMode::None,
        },
        hw_queues: record.n[0] as u16,
        rotational,
    })
}

fn within(what: &'static str, value: u32, min: u32, max: u32) -> Result<(), RecordError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(RecordError::Start { what, value: u64::from(value), right: format!("{min} to {max}") })
}
