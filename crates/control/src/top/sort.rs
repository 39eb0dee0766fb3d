//! Sort keys of the tenants of a device.

use std::cmp::Ordering;

use super::view::{DeviceView, TenantView};

/// A figure by which tenants are sorted: the greatest first, names in alphabetical order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortBy {
    /// The name of the tenant.
    Name,
    /// The weight.
    Weight,
    /// The I/O class.
    Class,
    /// Bytes a second.
    Bytes,
    /// Bytes read a second.
    ReadBytes,
    /// Bytes written a second.
    WrittenBytes,
    /// Requests a second.
    Requests,
    /// Median of the waiting times in the queue.
    QueueP50,
    /// 99th percentile of the waiting times in the queue.
    QueueP99,
    /// Median of the service times.
    DeviceP50,
    /// 99th percentile of the service times.
    DeviceP99,
    /// Share of the bytes.
    Share,
    /// Share of the device's time.
    ShareOfTime,
    /// The share that weights and reservations grant.
    Entitlement,
    /// Requests in the device.
    InFlight,
    /// Requests that wait in the queue or are held by limits.
    Waiting,
    /// Requests that limits hold.
    Held,
    /// Failed requests a second.
    Errors,
}

impl SortBy {
    /// Compares two tenants; `Less` means that `one` comes first.
    pub fn compare(self, one: &TenantView, other: &TenantView) -> Ordering {
        let descending = |of: fn(&TenantView) -> f64| of(other).total_cmp(&of(one));
        let share = |of: fn(&TenantView) -> Option<f64>| of(other).unwrap_or(-1.0).total_cmp(&of(one).unwrap_or(-1.0));
        match self {
            SortBy::Name => one.name.cmp(&other.name),
            SortBy::Weight => other.weight.cmp(&one.weight),
            SortBy::Class => one.class.cmp(&other.class),
            SortBy::Bytes => descending(|tenant| tenant.bytes_per_second),
            SortBy::ReadBytes => descending(|tenant| tenant.read_bytes_per_second),
            SortBy::WrittenBytes => descending(|tenant| tenant.written_bytes_per_second),
            SortBy::Requests => descending(|tenant| tenant.requests_per_second),
            SortBy::QueueP50 => other.queue_p50_ns.cmp(&one.queue_p50_ns),
            SortBy::QueueP99 => other.queue_p99_ns.cmp(&one.queue_p99_ns),
            SortBy::DeviceP50 => other.device_p50_ns.cmp(&one.device_p50_ns),
            SortBy::DeviceP99 => other.device_p99_ns.cmp(&one.device_p99_ns),
            SortBy::Share => share(|tenant| tenant.share),
            SortBy::ShareOfTime => share(|tenant| tenant.share_of_time),
            SortBy::Entitlement => share(|tenant| tenant.entitlement),
            SortBy::InFlight => other.in_flight.cmp(&one.in_flight),
            SortBy::Waiting => (other.waiting + other.held).cmp(&(one.waiting + one.held)),
            SortBy::Held => other.held.cmp(&one.held),
            SortBy::Errors => descending(|tenant| tenant.errors_per_second),
        }
    }
}

impl DeviceView {
    /// The tenants in the order of a sort key, or in its reverse; equal ones by name.
    pub fn sorted_tenants(&self, by: SortBy, reverse: bool) -> Vec<&TenantView> {
        let mut tenants: Vec<&TenantView> = self.tenants.iter().collect();
        tenants.sort_by(|one, other| {
            let order = if reverse { by.compare(other, one) } else { by.compare(one, other) };
            order.then_with(|| one.name.cmp(&other.name))
        });
        tenants
    }
}
