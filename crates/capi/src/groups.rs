//! Calls on groups, and on the CPU of a context.
//!
//! `queue` must always be null or point to a queue that `hoistway_queue_init` created and that no
//! other thread uses during the call.

use hoistway_core::{GroupError, GroupId, GroupWeights};

use crate::arguments;
use crate::calls::{kick, refusal, stale};
use crate::memory::{Shell, shell};
use crate::types::{CReservation, Status};

fn status(error: GroupError) -> Status {
    match error {
        GroupError::Stale => Status::Stale,
        GroupError::Full => Status::Full,
        GroupError::BadWeight => Status::OutOfRange,
        GroupError::Busy => Status::Busy,
    }
}

/// Converts weights; those too large for the core's type are out of range, too.
fn weights(weight: u32, leaf_weight: u32) -> Result<GroupWeights, Status> {
    let narrow = |weight: u32| u16::try_from(weight).map_err(|_| Status::OutOfRange);
    Ok(GroupWeights { weight: narrow(weight)?, leaf_weight: narrow(leaf_weight)? })
}

/// Writes the handle of a created group, or returns the error.
///
/// # Safety
///
/// On success `group` must have been checked and point to a writable number.
unsafe fn write(made: Result<GroupId, Status>, group: *mut u64) -> i32 {
    match made {
        Ok(id) => {
            // SAFETY: guaranteed by the caller.
            unsafe { group.write(arguments::group_bits(id)) };
            Status::Ok as i32
        }
        Err(status) => status as i32,
    }
}

/// Writes the root group, in which every context starts.
///
/// # Safety
/// See the module documentation; `group` must point to a writable number, null and
/// misaligned pointers are refused.
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

/// Creates a group below `parent`; its handle is written to `group`.
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
    let made = unsafe { shell(queue) }.and_then(|shell| {
        arguments::check_out(group)?;
        let weights = weights(weight, leaf_weight)?;
        shell.queue.create_group(arguments::group_id(parent), weights, now_ns).map_err(status)
    });
    // SAFETY: checked here, and guaranteed by the caller.
    unsafe { write(made, group) }
}

/// Changes a group's weights.
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

/// Removes a group without child groups, contexts and requests.
///
/// # Safety
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_group_remove(queue: *mut Shell, group: u64, now_ns: u64) -> i32 {
    // SAFETY: guaranteed by the caller.
    let shell = unsafe { shell(queue) };
    kick(shell.and_then(|shell| shell.queue.remove_group(arguments::group_id(group), now_ns).map_err(status)))
}

/// Moves a context to a group.
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

/// Reserves bandwidth for a group's processes together, or changes the reservation. If the device
/// has no capacity for it, the available bandwidth is written to `headroom`, in bytes a second.
///
/// # Safety
/// See the module documentation; `reservation` must point to a readable structure and
/// `headroom` to a writable number, null and misaligned pointers are refused.
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

/// Ends a group's reservation; without one the call has no effect.
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

/// Sets the CPU on which a context's process runs.
///
/// # Safety
///
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_context_set_cpu(queue: *mut Shell, context: u64, cpu: u32) -> i32 {
    // SAFETY: guaranteed by the caller.
    let set = unsafe { shell(queue) }.and_then(|shell| {
        let cpu = u16::try_from(cpu).map_err(|_| Status::Invalid)?;
        shell.queue.set_cpu(arguments::context_id(context), cpu).map_err(stale)
    });
    set.err().unwrap_or(Status::Ok) as i32
}
