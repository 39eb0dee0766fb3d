//! A device and what its tenants had, in the words of the contract: whoever has devices tells of them by this.

use super::steer::{AccountView, DeviceFacts, Lateness, OpView};
use crate::config::{BackendConfig, DeviceConfig};
use crate::device::account::OpAccount;
use crate::device::{Account, Device};

/// A device, as the control tree and the metrics tell of it.
pub fn facts_of(device: &Device, config: &DeviceConfig, now_ns: u64) -> DeviceFacts {
    let (queued, held) = device.waiting();
    let in_flight = device.in_flight_by_direction();
    let late = device.lateness().map(|recorded| Lateness {
        count: recorded.len(),
        p50_ns: recorded.value_at_percentile(50.0),
        p99_ns: recorded.value_at_percentile(99.0),
        max_ns: recorded.max(),
    });
    DeviceFacts {
        bytes: device.size(),
        backend: backend(&config.backend),
        drive: device.drive().map(str::to_owned),
        elevator: device.elevator(),
        switching: device.is_switching(),
        tunables: device.tunables().collect(),
        depth: device.depth(),
        rotational: device.is_rotational(),
        merge: device.merges(),
        request_bytes_max: device.request_bytes_max(),
        block_bytes: device.backend().block_min(),
        bandwidth: config.bandwidth,
        position_ns: config.position_ns,
        reserved: device.reserved(),
        in_flight,
        waiting: queued.saturating_add(held),
        busy_ns: device.busy_ns(now_ns),
        merges: device.merged(),
        slice: device.slice_holder().map(str::to_owned),
        lateness: late,
    }
}

/// Where the bytes lie, as a configuration says it.
fn backend(config: &BackendConfig) -> String {
    match config {
        BackendConfig::File { path, .. } => format!("file:{}", path.display()),
        BackendConfig::Memory { bytes } => format!("mem:{}", hoistway_units::print_size(*bytes)),
        BackendConfig::Null { bytes } => format!("null:{}", hoistway_units::print_size(*bytes)),
    }
}

/// Whether a tenant has asked a device for anything.
pub fn is_used(account: &Account) -> bool {
    account.requests() > 0 || account.waiting + account.held + account.in_flight > 0
}

/// What a tenant had, as the control tree and the metrics tell of it.
pub fn view_of(account: &Account) -> AccountView<'_> {
    AccountView {
        ops: account.ops.each_ref().map(op_view),
        waiting: account.waiting,
        held: account.held,
        in_flight: account.in_flight,
        service_ns: account.service_ns,
        reservation_missed: account.reservation_missed,
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
