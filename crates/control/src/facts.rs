//! Views of schedulers and accounts for the control tree and the metrics.

use hdrhistogram::Histogram;
use hoistway_qos::{Account, DiskScheduler, OpAccount};

use crate::target::{AccountView, DeviceFacts, Lateness, OpView, SliceFacts};

/// The facts of a device that its scheduler does not have.
#[derive(Clone, Debug)]
pub struct MediumFacts {
    /// The storage that holds the data: `file:PATH`, `mem:SIZE`, `null:SIZE`.
    pub backend: String,
    /// The name of the emulated drive.
    pub drive: Option<String>,
    /// The preferred unit of offsets and lengths in bytes.
    pub block_bytes: u32,
    /// The lateness of the emulated drive's completions.
    pub lateness: Option<Lateness>,
}

/// Returns the facts of a device.
pub fn device_facts(scheduler: &DiskScheduler, medium: MediumFacts, now_ns: u64) -> DeviceFacts {
    let (queued, held) = scheduler.waiting();
    DeviceFacts {
        bytes: scheduler.size(),
        backend: medium.backend,
        drive: medium.drive,
        elevator: scheduler.elevator(),
        violation: scheduler.violation(),
        switching: scheduler.is_switching(),
        tunables: scheduler.tunables().collect(),
        depth: scheduler.depth(),
        rotational: scheduler.is_rotational(),
        merge: scheduler.merges(),
        request_bytes_max: scheduler.request_bytes_max(),
        block_bytes: medium.block_bytes,
        bandwidth: scheduler.bandwidth(),
        position_ns: scheduler.position_ns(),
        reserved: scheduler.reserved(),
        in_flight: scheduler.in_flight_by_direction(),
        waiting: queued.saturating_add(held),
        busy_ns: scheduler.busy_ns(now_ns),
        merges: scheduler.merged(),
        slice: scheduler.slice(now_ns).map(|slice| SliceFacts {
            holder: slice.tenant.to_owned(),
            age_ns: slice.age_ns,
            left_ns: slice.left_ns,
        }),
        has_slices: scheduler.has_slices(),
        late: scheduler.late_tenants(now_ns).into_iter().map(|(tenant, ns)| (tenant.to_owned(), ns)).collect(),
        lateness: medium.lateness,
    }
}

impl Lateness {
    /// Summarises a histogram of latenesses in ns.
    pub fn of(histogram: &Histogram<u64>) -> Lateness {
        Lateness {
            count: histogram.len(),
            p50_ns: histogram.value_at_percentile(50.0),
            p99_ns: histogram.value_at_percentile(99.0),
            max_ns: histogram.max(),
        }
    }
}

/// Returns true if a tenant has submitted requests to the device.
pub fn is_used(account: &Account) -> bool {
    account.requests() > 0 || account.waiting + account.held + account.in_flight > 0
}

/// Returns the view of an account at a time.
pub fn view_of(account: &Account, now_ns: u64) -> AccountView<'_> {
    AccountView {
        ops: account.ops.each_ref().map(op_view),
        waiting: account.waiting,
        held: account.held,
        in_flight: account.in_flight,
        service_ns: account.service_ns,
        reservation_missed: account.reservation_missed,
        reservation_late_ns: account.reservation_late_ns,
        held_ns: account.held_until(now_ns),
        slices: account.slices,
        slice_ns: account.slice_ns,
    }
}

fn op_view(op: &OpAccount) -> OpView<'_> {
    OpView {
        requests: op.requests,
        bytes: op.bytes,
        errors: op.errors,
        queue_ns: op.queue_ns.as_deref(),
        device_ns: op.device_ns.as_deref(),
        total_ns: op.total_ns.as_deref(),
    }
}
