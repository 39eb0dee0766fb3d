//! Converts the tables of an overview to those of a page.

use hoistway_overview::{Counts, NoteSpan, ProcessTable, Queue, QueueTable, TraceOverview};
use hoistway_report::{MergedRow, RequestRow, SpanRow, TraceCounts, TraceLane, TracePage, TraceQueue};
use hoistway_trace::DeviceId;
use hoistway_trace::request::{Merged, RequestRecord};

/// Converts the tables of a page; title, facts and notes are missing.
pub fn page(overview: &TraceOverview) -> TracePage {
    let tables = &overview.tables;
    TracePage {
        end_ns: tables.end_ns,
        bucket_ns: tables.bucket_ns,
        devices: overview.devices.iter().map(DeviceId::to_string).collect(),
        lanes: tables.processes.iter().map(|of| lane(of, overview)).collect(),
        queues: tables.queues.iter().map(|of| queue(of, overview)).collect(),
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

fn lane(table: &ProcessTable, overview: &TraceOverview) -> TraceLane {
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
        device: overview.device_index(table.device),
        pid: table.pid,
        name: if table.pid.is_none() { "others".to_owned() } else { table.name.clone() },
        requests: table.requests,
        counts: table.counts.iter().map(counts).collect(),
        layers_ns: table.layers_ns.clone(),
        reads: table.reads.clone(),
        writes: table.writes.clone(),
        latencies: table.latencies.clone(),
    }
}

fn queue(table: &QueueTable, overview: &TraceOverview) -> TraceQueue {
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
        device: overview.device_index(table.device),
        pid,
        name,
        slices: table.slices.clone(),
        preemptions: table.preemptions.clone(),
        times_ns: table.times_ns.clone(),
    }
}

/// Converts a request; times count from the start of the trace.
pub fn request(record: &RequestRecord, start_ns: u64, device: u32) -> RequestRow {
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
        pid: record.pid,
        // The bits are identical: those of the page are documented with its table, and a test
        // compares them.
        op: record.op.0,
        sector: record.sector,
        bytes: record.bytes,
        steps_ns: [record.queued_ns, record.got_ns, record.inserted_ns, record.issued_ns, record.completed_ns]
            .map(since),
        requeues: record.requeues,
        error: record.error,
        merged: record.merged.iter().map(merged).collect(),
    }
}

/// Converts a span of the queue with an index.
pub fn span(span: &NoteSpan, start_ns: u64, queue: u32) -> SpanRow {
    SpanRow {
        queue,
        kind: span.kind as u8,
        start_ns: span.start_ns.saturating_sub(start_ns),
        end_ns: span.end_ns.saturating_sub(start_ns),
        why: span.reason as u8,
        served: span.served,
        budget: span.budget,
    }
}
