//! Elevators and tunables by name and index, and the texts of statuses.

use hoistway_core::{Kind, TunableError};

use crate::arguments;
use crate::memory::{Shell, shell};
use crate::types::{CConfig, CTunable, Status};

/// Returns the text of a status, which ends with a zero: one general text for values that are no
/// status.
#[unsafe(no_mangle)]
pub extern "C" fn hoistway_status_text(status: i32) -> *const u8 {
    let text = match status {
        0 => c"success",
        1 => c"success; the queue must be run",
        2 => c"no request now; requests are queued",
        3 => c"nothing is queued, armed, deferred or recorded",
        4 => c"the caller searches for the merge",
        -1 => c"a null or misaligned pointer, a number out of range, or an unknown flag",
        -2 => c"the memory or an array is too small",
        -3 => c"the table of requests, contexts or groups is full",
        -4 => c"the context, group or request does not, or no longer, belong to this queue",
        -5 => c"the bio has no sectors, or ends beyond sector 2^64",
        -6 => c"barriers or reservations are not supported",
        -7 => c"no elevator or tunable with this name or number",
        -8 => c"the value of a tunable or the weight of a group is out of range",
        -9 => c"a switch is in progress, or the group is in use or the root",
        -10 => c"the process sleeps for a request, or was not woken",
        -11 => c"the device has no capacity for the reservation",
        _ => c"unknown status",
    };
    text.as_ptr().cast()
}

/// Returns the number of elevators. Their indices start at 0, in the order of their appearance in
/// Linux.
#[unsafe(no_mangle)]
pub extern "C" fn hoistway_elevator_count() -> u32 {
    Kind::ALL.len() as u32
}

/// The index of the elevator with this name or alias, or `Unknown`.
///
/// # Safety
///
/// `name` must point to `len` readable bytes; null is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_elevator_index(name: *const u8, len: usize) -> i32 {
    // SAFETY: guaranteed by the caller.
    let Ok(name) = (unsafe { arguments::bytes(name, len) }) else { return Status::Invalid as i32 };
    let named = |kind: &&Kind| {
        let info = kind.info();
        info.name.as_bytes() == name || info.aliases.iter().any(|alias| alias.as_bytes() == name)
    };
    Kind::ALL.iter().find(named).map_or(Status::Unknown as i32, |kind| i32::from(kind.index()))
}

/// Writes the name of an elevator and a zero to `buffer`; returns the length of the name in bytes.
///
/// # Safety
///
/// `buffer` must point to `len` writable bytes; null is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_elevator_name(elevator: u32, buffer: *mut u8, len: usize) -> i32 {
    let Some(kind) = Kind::ALL.get(elevator as usize) else { return Status::Unknown as i32 };
    let name = kind.info().name.as_bytes();
    if buffer.is_null() {
        return Status::Invalid as i32;
    }
    if len <= name.len() {
        return Status::TooSmall as i32;
    }
    // SAFETY: there is room for the name and the zero: guaranteed by the caller and compared above.
    unsafe {
        core::ptr::copy_nonoverlapping(name.as_ptr(), buffer, name.len());
        buffer.add(name.len()).write(0);
    }
    name.len() as i32
}

/// Writes the default configuration.
///
/// # Safety
/// `config` must point to a writable structure; null and misaligned pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_config_default(config: *mut CConfig) -> i32 {
    if arguments::check_out(config).is_err() {
        return Status::Invalid as i32;
    }
    // SAFETY: checked here, and guaranteed by the caller.
    unsafe { config.write(CConfig::defaults()) };
    Status::Ok as i32
}

/// The index of the current elevator.
///
/// # Safety
///
/// `queue` must be null or point to a queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_elevator(queue: *mut Shell) -> i32 {
    // SAFETY: guaranteed by the caller.
    match unsafe { shell(queue) } {
        Ok(shell) => i32::from(shell.queue.kind().index()),
        Err(status) => status as i32,
    }
}

/// Returns 1 if the current elevator supports reservations, by itself or with the layer, otherwise
/// 0.
///
/// # Safety
///
/// `queue` must be null or point to a queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_is_reserving(queue: *mut Shell) -> i32 {
    // SAFETY: guaranteed by the caller.
    unsafe { shell(queue) }.map_or_else(|status| status as i32, |shell| i32::from(shell.queue.is_reserving()))
}

/// Returns the number of tunables of the current elevator; indices start at 0. With the reservation
/// layer, its tunables come first.
///
/// # Safety
///
/// `queue` must be null or point to a queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_tunable_count(queue: *mut Shell) -> i32 {
    // SAFETY: guaranteed by the caller.
    match unsafe { shell(queue) } {
        // `count` could overflow, as far as the proof can see.
        Ok(shell) => shell.queue.tunables().fold(0i32, |count, _| count.saturating_add(1)),
        Err(status) => status as i32,
    }
}

/// Writes a tunable of the current elevator and its value.
///
/// # Safety
///
/// `queue` must be null or point to a queue, `tunable` to a writable structure; null and misaligned
/// pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_tunable(queue: *mut Shell, index: u32, tunable: *mut CTunable) -> i32 {
    // SAFETY: guaranteed by the caller.
    let shell = match unsafe { shell(queue) } {
        Ok(shell) => shell,
        Err(status) => return status as i32,
    };
    if arguments::check_out(tunable).is_err() {
        return Status::Invalid as i32;
    }
    let Some((row, value)) = shell.queue.tunables().nth(index as usize) else { return Status::Unknown as i32 };
    let found = CTunable {
        name: row.name.as_ptr(),
        name_len: row.name.len(),
        value,
        default_value: row.default,
        min: row.min,
        max: row.max,
    };
    // SAFETY: checked here, and guaranteed by the caller.
    unsafe { tunable.write(found) };
    Status::Ok as i32
}

/// Sets a tunable of the current elevator by its index.
///
/// # Safety
///
/// `queue` must be null or point to a queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_set_tunable(queue: *mut Shell, index: u32, value: i64) -> i32 {
    // SAFETY: guaranteed by the caller.
    match unsafe { shell(queue) } {
        Ok(shell) => set(shell, index as usize, value) as i32,
        Err(status) => status as i32,
    }
}

/// Sets a tunable of the current elevator by its kernel name.
///
/// # Safety
///
/// `queue` must be null or point to a queue, `name` to `len` readable bytes; null is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_set_tunable_by_name(
    queue: *mut Shell,
    name: *const u8,
    len: usize,
    value: i64,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let (shell, name) = match unsafe { (shell(queue), arguments::bytes(name, len)) } {
        (Ok(shell), Ok(name)) => (shell, name),
        (Err(status), _) | (_, Err(status)) => return status as i32,
    };
    let named = shell.queue.tunables().position(|(tunable, _)| tunable.name.as_bytes() == name);
    match named {
        Some(index) => set(shell, index, value) as i32,
        None => Status::Unknown as i32,
    }
}

fn set(shell: &mut Shell, index: usize, value: i64) -> Status {
    let Some(tunable) = shell.queue.tunables().nth(index).map(|(tunable, _)| tunable) else { return Status::Unknown };
    match shell.queue.set_tunable(tunable.name, value) {
        Ok(()) => Status::Ok,
        Err(TunableError::Unknown) => Status::Unknown,
        Err(TunableError::OutOfRange { .. }) => Status::OutOfRange,
    }
}
