//! C functions for groups, their reservations, and the group and CPU of a context.
//!
//! Each function requires that `queue` is null, which is refused, or points to a queue that
//! `hoistway_queue_init` created and that no other thread uses during the call. Each returns a
//! [`Status`]: errors are negative, and [`Status::Run`] requires that the host runs the queue.
//! Times are in ns of the host's clock.

use hoistway_core::{GroupError, GroupId, GroupWeights};

use crate::arguments;
use crate::calls::{kick, refusal, stale};
use crate::memory::{Shell, shell};
use crate::types::{CReservation, Status};

/// Converts an error of the core to a status.
fn status(error: GroupError) -> Status {
    match error {
        GroupError::Stale => Status::Stale,
        GroupError::Full => Status::Full,
        GroupError::BadWeight => Status::OutOfRange,
        GroupError::Busy => Status::Busy,
    }
}

/// Converts weights to the core's type. The error of a weight above 65,535 is
/// [`Status::OutOfRange`], as for all other invalid weights.
fn weights(weight: u32, leaf_weight: u32) -> Result<GroupWeights, Status> {
    let narrow = |weight: u32| u16::try_from(weight).map_err(|_| Status::OutOfRange);
    Ok(GroupWeights { weight: narrow(weight)?, leaf_weight: narrow(leaf_weight)? })
}

/// Writes the handle of a group to `group` and returns the status of success, or returns the error.
///
/// # Safety
///
/// If `result` is a group, `group` must have passed [`arguments::check_out`] and point to a
/// writable number.
unsafe fn write(result: Result<GroupId, Status>, group: *mut u64) -> i32 {
    match result {
        Ok(id) => {
            // SAFETY: guaranteed by the caller.
            unsafe { group.write(arguments::group_bits(id)) };
            Status::Ok as i32
        }
        Err(status) => status as i32,
    }
}

/// Writes the handle of the root group to `group`. New contexts belong to the root group.
///
/// # Safety
/// See the module documentation. `group` must point to a writable number; null and misaligned
/// pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_group_root(queue: *mut Shell, group: *mut u64) -> i32 {
    // SAFETY: guaranteed by the caller.
    let root = unsafe { shell(queue) }.and_then(|shell| {
        arguments::check_out(group)?;
        Ok(shell.queue.root_group())
    });
    // SAFETY: checked here, and guaranteed by the caller.
    unsafe { write(root, group) }
}

/// Creates a group below the group `parent`, and writes its handle to `group`. Weights are 1 to
/// 1000: `weight` among the other groups and the processes of the parent, `leaf_weight` of the
/// group's own processes against its child groups.
///
/// Errors: [`Status::Invalid`], [`Status::Stale`], [`Status::OutOfRange`], [`Status::Full`].
///
/// # Safety
///
/// As for [`hoistway_group_root`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_group_create(
    queue: *mut Shell,
    parent: u64,
    weight: u32,
    leaf_weight: u32,
    now_ns: u64,
    group: *mut u64,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let created = unsafe { shell(queue) }.and_then(|shell| {
        arguments::check_out(group)?;
        let weights = weights(weight, leaf_weight)?;
        shell.queue.create_group(arguments::group_id(parent), weights, now_ns).map_err(status)
    });
    // SAFETY: checked here, and guaranteed by the caller.
    unsafe { write(created, group) }
}

/// Changes a group's weights: see [`hoistway_group_create`].
///
/// Errors: [`Status::Invalid`], [`Status::Stale`], [`Status::OutOfRange`].
///
/// # Safety
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_group_set_weights(
    queue: *mut Shell,
    group: u64,
    weight: u32,
    leaf_weight: u32,
    now_ns: u64,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let shell = unsafe { shell(queue) };
    kick(shell.and_then(|shell| {
        let weights = weights(weight, leaf_weight)?;
        shell.queue.set_group_weights(arguments::group_id(group), weights, now_ns).map_err(status)
    }))
}

/// Removes a group.
///
/// Errors: [`Status::Invalid`]; [`Status::Stale`]; [`Status::Busy`] if the group is the root, or
/// has child groups, contexts or requests.
///
/// # Safety
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_group_remove(queue: *mut Shell, group: u64, now_ns: u64) -> i32 {
    // SAFETY: guaranteed by the caller.
    let shell = unsafe { shell(queue) };
    kick(shell.and_then(|shell| shell.queue.remove_group(arguments::group_id(group), now_ns).map_err(status)))
}

/// Moves a context to a group. As in the kernel, the elevator notices the change when it next
/// accesses the context.
///
/// Errors: [`Status::Invalid`]; [`Status::Stale`] for the context or the group.
///
/// # Safety
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_context_move(queue: *mut Shell, context: u64, group: u64, now_ns: u64) -> i32 {
    // SAFETY: guaranteed by the caller.
    let shell = unsafe { shell(queue) };
    let (context, group) = (arguments::context_id(context), arguments::group_id(group));
    kick(shell.and_then(|shell| shell.queue.move_context(context, group, now_ns).map_err(stale)))
}

/// Reserves bandwidth for the processes of a group together, or changes the reservation. If the
/// device has no capacity for the reservation, the function writes the available bandwidth in bytes
/// per second to `headroom`.
///
/// Errors: [`Status::Invalid`], [`Status::Stale`], [`Status::NotSupported`],
/// [`Status::NoCapacity`].
///
/// # Safety
/// See the module documentation. `reservation` must point to a readable structure and `headroom` to
/// a writable number; null and misaligned pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_group_reserve(
    queue: *mut Shell,
    group: u64,
    reservation: *const CReservation,
    now_ns: u64,
    headroom: *mut u64,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let (shell, reservation) = unsafe { (shell(queue), arguments::read(reservation)) };
    kick(shell.and_then(|shell| {
        let reservation = reservation?.to_core();
        arguments::check_out(headroom)?;
        let reserved = shell.queue.reserve_group(arguments::group_id(group), reservation, now_ns);
        // SAFETY: checked here, and guaranteed by the caller.
        reserved.map_err(|error| unsafe { refusal(error, headroom) })
    }))
}

/// Ends a group's reservation. Without a reservation, the call has no effect.
///
/// Errors: [`Status::Invalid`], [`Status::Stale`].
///
/// # Safety
///
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_group_release(queue: *mut Shell, group: u64, now_ns: u64) -> i32 {
    // SAFETY: guaranteed by the caller.
    let shell = unsafe { shell(queue) };
    kick(shell.and_then(|shell| shell.queue.release_group(arguments::group_id(group), now_ns).map_err(stale)))
}

/// Sets the number of the CPU on which a context's process runs, 0 to 65,535.
///
/// Errors: [`Status::Invalid`], [`Status::Stale`].
///
/// # Safety
///
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_context_set_cpu(queue: *mut Shell, context: u64, cpu: u32) -> i32 {
    // SAFETY: guaranteed by the caller.
    let result = unsafe { shell(queue) }.and_then(|shell| {
        let cpu = u16::try_from(cpu).map_err(|_| Status::Invalid)?;
        shell.queue.set_cpu(arguments::context_id(context), cpu).map_err(stale)
    });
    result.err().unwrap_or(Status::Ok) as i32
}
