//! How long CFQ's earlier forms keep the disk idle for a process or for the idle class.

use crate::collections::Mean;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;

/// The time without requests of other classes after which the idle class is served, in ms.
const IDLE_GRACE_MS: u64 = 100;
/// The longest wait for the next request of a seeky process, in ms.
const SEEKY_IDLE_MS: u64 = 2;

/// Returns the wait for a process's next request, in ticks: `slice_idle`, or 2 ms if that is less
/// and the process's mean seek distance exceeds `seeky_sectors`.
pub(crate) fn idle_wait<H: HostTypes>(core: &QueueCore<H>, slice_idle: u64, seek: Mean, seeky_sectors: u64) -> u64 {
    let seeky = seek.is_valid() && seek.mean > seeky_sectors;
    if seeky { slice_idle.min(core.clock.ticks_of_ms(SEEKY_IDLE_MS)) } else { slice_idle }
}

/// Returns the tick from which the idle class may be served, if the last request of another class
/// completed at tick `last_end`.
pub(crate) fn grace_end<H: HostTypes>(core: &QueueCore<H>, last_end: u64) -> u64 {
    last_end.saturating_add(core.clock.ticks_of_ms(IDLE_GRACE_MS))
}
