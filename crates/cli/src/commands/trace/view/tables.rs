//! The page's tables from the overview's.

use hoistway_report::{MergedRow, RequestRow, SpanRow, TraceCounts, TraceLane, TracePage, TraceQueue};
use hoistway_trace::DeviceId;
use hoistway_trace::overview::{Counts, NoteSpan, ProcessTable, Queue, QueueTable, Tables};
use hoistway_trace::request::{Merged, RequestRecord};

/// The devices, in the order in which they came.
#[derive(Debug, Default)]
pub struct Devices(Vec<DeviceId>);

impl Devices {
    /// The number of a device.
    pub fn place(&mut self, device: DeviceId) -> u32 {
        let at = self.known(device).unwrap_or_else(|| {
            self.0.push(device);
            self.0.len() - 1
        });
        at as u32
    }

    fn known(&self, device: DeviceId) -> Option<usize> {
        self.0.iter().position(|known| *known == device)
    }
}

/// The tables of a page without a title.
pub fn page(tables: &Tables, devices: &Devices) -> TracePage {
    TracePage {
        end_ns: tables.end_ns,
        bucket_ns: tables.bucket_ns,
        devices: devices.0.iter().map(DeviceId::to_string).collect(),
        lanes: tables.processes.iter().map(|of| lane(of, devices)).collect(),
        queues: tables.queues.iter().map(|of| queue(of, devices)).collect(),
        sectors: tables.sectors,
        first_sector: tables.first_sector,
        row_sectors: tables.row_sectors,
        sector_rows: tables.sector_rows,
        latency_rows: tables.latency_rows,
        place_column_ns: tables.sector_column_ns,
        latency_column_ns: tables.latency_column_ns,
        ..TracePage::default()
    }
}

fn lane(lane: &ProcessTable, devices: &Devices) -> TraceLane {
    let counts = |counts: &Counts| TraceCounts {
        reads: counts.reads,
        writes: counts.writes,
        others: counts.others,
        read_bytes: counts.read_bytes,
        write_bytes: counts.write_bytes,
        latency_ns: counts.latency_ns,
        latency_ns_max: counts.latency_ns_max,
        drive_ns: counts.drive_ns,
    };
    TraceLane {
        device: devices.known(lane.device).unwrap_or(0) as u32,
        pid: lane.pid,
        name: if lane.pid.is_none() { "others".to_owned() } else { lane.name.clone() },
        requests: lane.requests,
        counts: lane.counts.iter().map(counts).collect(),
        layers_ns: lane.layers_ns.clone(),
        reads: lane.reads.clone(),
        writes: lane.writes.clone(),
        latencies: lane.latencies.clone(),
    }
}

fn queue(table: &QueueTable, devices: &Devices) -> TraceQueue {
    let name = &table.name;
    let (pid, name) = match table.queue {
        Some(Queue::Of(pid)) if name.is_empty() => (Some(pid), format!("pid {pid}")),
        Some(Queue::Of(pid)) => (Some(pid), format!("{name} {pid}")),
        Some(Queue::AsyncOf(0)) => (None, "async".to_owned()),
        Some(Queue::AsyncOf(pid)) => (Some(pid), format!("{name} {pid} async").trim_start().to_owned()),
        Some(Queue::Shared) => (None, "shared by several".to_owned()),
        None => (None, "others".to_owned()),
    };
    TraceQueue {
        device: devices.known(table.device).unwrap_or(0) as u32,
        pid,
        name,
        slices: table.slices.clone(),
        preemptions: table.preemptions.clone(),
        times_ns: table.times_ns.clone(),
    }
}

/// One request, its times counted from the trace's beginning.
pub fn request(life: &RequestRecord, start_ns: u64, device: u32) -> RequestRow {
    let since = |time_ns: Option<u64>| time_ns.map(|time_ns| time_ns.saturating_sub(start_ns));
    let merged = |bio: &Merged| MergedRow {
        pid: bio.pid,
        queued_ns: bio.queued_ns.saturating_sub(start_ns),
        merged_ns: bio.merged_ns.saturating_sub(start_ns),
        sector: bio.sector,
        bytes: bio.bytes,
        front: bio.front,
    };
    RequestRow {
        device,
        pid: life.pid,
        // The bits are the same: the page's are documented with its table, and a test holds both together.
        op: life.op.0,
        sector: life.sector,
        bytes: life.bytes,
        steps_ns: [life.queued_ns, life.got_ns, life.inserted_ns, life.issued_ns, life.completed_ns].map(since),
        requeues: life.requeues,
        error: life.error,
        merged: life.merged.iter().map(merged).collect(),
    }
}

/// One slice, idling or moment of a queue, by its place among the queues.
pub fn span(span: &NoteSpan, start_ns: u64, queue: usize) -> SpanRow {
    SpanRow {
        queue: queue as u32,
        kind: span.kind as u8,
        start_ns: span.start_ns.saturating_sub(start_ns),
        end_ns: span.end_ns.saturating_sub(start_ns),
        why: span.reason as u8,
        served: span.served,
        budget: span.budget,
    }
}

#[cfg(test)]
mod tests {
    use hoistway_trace::Rwbs;

    #[test]
    fn the_pages_bits_of_an_operation_are_those_of_an_event() {
        let bits =
            [Rwbs::READ, Rwbs::WRITE, Rwbs::DISCARD, Rwbs::FLUSH, Rwbs::FUA, Rwbs::AHEAD, Rwbs::SYNC, Rwbs::META];
        assert_eq!(bits.map(|bit| bit.0), [1, 2, 4, 8, 16, 32, 64, 128]);
        assert_eq!([Rwbs::NONE.0, Rwbs::PASS_THROUGH.0], [256, 512]);
    }
}
