//! Calls for a caller that merges bios and requests itself, as the kernel's block layer does. Its
//! queue is configured without merging and without a pool.
//!
//! `queue` must always be null or point to a queue that `hoistway_queue_init` created and that no
//! other thread uses during the call.

use hoistway_core::{Extent, HostSearch, Merge, MergeError, RequestId, SubmitError};

use crate::arguments;
use crate::calls::kick;
use crate::memory::{Shell, shell};
use crate::types::{CBio, CExtent, CNeighbour, Status};

fn status(error: MergeError) -> Status {
    match error {
        MergeError::Stale | MergeError::Submit(SubmitError::NoContext) => Status::Stale,
        MergeError::BadExtent | MergeError::Submit(SubmitError::BadExtent) => Status::BadExtent,
        MergeError::Submit(SubmitError::Full) => Status::Full,
        MergeError::Submit(SubmitError::NotSupported) => Status::NotSupported,
        MergeError::Submit(SubmitError::Asleep | SubmitError::NotWoken) => Status::NotAwake,
    }
}

fn extent(from: CExtent) -> Extent {
    Extent { sector: from.sector, sectors: from.sectors }
}

fn side(number: u32) -> Result<Merge, Status> {
    match number {
        0 => Ok(Merge::Back),
        1 => Ok(Merge::Front),
        _ => Err(Status::Invalid),
    }
}

/// Writes a request to `found` (`Ok`), or returns `Empty`.
///
/// # Safety
///
/// `found` must have been checked and point to a writable structure.
unsafe fn write_found(shell: &Shell, request: Option<(RequestId, Merge)>, found: *mut CNeighbour) -> i32 {
    let Some((id, merge)) = request else { return Status::Empty as i32 };
    let Some(entry) = shell.queue.request(id) else { return Status::Empty as i32 };
    let side = u32::from(merge == Merge::Front);
    let neighbour = CNeighbour { request: arguments::request_bits(id), token: entry.token(), side, reserved: 0 };
    // SAFETY: guaranteed by the caller.
    unsafe { found.write(neighbour) };
    Status::Ok as i32
}

/// Begins the search for a request into which the caller can merge the bio. Returns `Search` if the
/// caller searches; otherwise the elevator did so: writes the request to `found` (`Ok`), or returns
/// `Empty`.
///
/// # Safety
/// See the module documentation; `bio` must point to a readable and `found` to a writable
/// structure, null and misaligned pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_prepare_merge(
    queue: *mut Shell,
    bio: *const CBio,
    now_ns: u64,
    found: *mut CNeighbour,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let (shell, bio) = unsafe { (shell(queue), arguments::read(bio)) };
    let prepared = shell.and_then(|shell| {
        let bio = arguments::bio(&bio?)?;
        arguments::check_out(found)?;
        let request = match shell.queue.prepare_merge(&bio, now_ns) {
            HostSearch::Usual => return Ok(Status::Search as i32),
            HostSearch::Nothing => None,
            HostSearch::Found(id, merge) => Some((id, merge)),
        };
        // SAFETY: checked here, and guaranteed by the caller.
        Ok(unsafe { write_found(shell, request, found) })
    });
    prepared.unwrap_or_else(|status| status as i32)
}

/// Returns 1 if the caller may merge requests that are about to be inserted; 0 if the elevator
/// searches itself, or a process or group has a reservation.
///
/// # Safety
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_joins_at_insert(queue: *mut Shell) -> i32 {
    // SAFETY: guaranteed by the caller.
    let joins = unsafe { shell(queue) }.map(|shell| shell.queue.joins_at_insert());
    joins.map_or_else(|status| status as i32, i32::from)
}

/// Excludes a queued request from further merges.
///
/// # Safety
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_record_refusal(queue: *mut Shell, request: u64) -> i32 {
    // SAFETY: guaranteed by the caller.
    let refused = unsafe { shell(queue) }
        .and_then(|shell| shell.queue.record_refusal(arguments::request_id(request)).map_err(status));
    refused.err().unwrap_or(Status::Ok) as i32
}

/// Returns 1 if the elevator allows the caller to merge the bio into this queued request, 0 if it
/// does not or the request is not queued.
///
/// # Safety
/// See the module documentation; `bio` must point to a readable structure, null and misaligned
/// pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_allows_merge(queue: *mut Shell, request: u64, bio: *const CBio, now_ns: u64) -> i32 {
    // SAFETY: guaranteed by the caller.
    let (shell, bio) = unsafe { (shell(queue), arguments::read(bio)) };
    let allowed = shell.and_then(|shell| {
        let bio = arguments::bio(&bio?)?;
        Ok(shell.queue.allows_merge(arguments::request_id(request), &bio, now_ns))
    });
    allowed.map_or_else(|status| status as i32, i32::from)
}

/// Searches the elevator for a queued request into which the bio can be merged. Writes it to
/// `found` (`Ok`), or returns `Empty`.
///
/// # Safety
/// See the module documentation; `bio` must point to a readable and `found` to a writable
/// structure, null and misaligned pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_find_merge(
    queue: *mut Shell,
    bio: *const CBio,
    now_ns: u64,
    found: *mut CNeighbour,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let (shell, bio) = unsafe { (shell(queue), arguments::read(bio)) };
    let searched = shell.and_then(|shell| {
        let bio = arguments::bio(&bio?)?;
        arguments::check_out(found)?;
        let request = shell.queue.find_merge_for_host(&bio, now_ns);
        // SAFETY: checked here, and guaranteed by the caller.
        Ok(unsafe { write_found(shell, request, found) })
    });
    searched.unwrap_or_else(|status| status as i32)
}

/// Writes the queued request beside this one that the caller may merge with it: the next higher one
/// for side 0, the next lower one for side 1. Returns `Empty` without one.
///
/// # Safety
/// See the module documentation; `found` must point to a writable structure, null and misaligned
/// pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_neighbour(
    queue: *mut Shell,
    request: u64,
    side_number: u32,
    found: *mut CNeighbour,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let searched = unsafe { shell(queue) }.and_then(|shell| {
        arguments::check_out(found)?;
        let merge = side(side_number)?;
        let other = shell.queue.neighbour(arguments::request_id(request), merge);
        // SAFETY: checked here, and guaranteed by the caller.
        Ok(unsafe { write_found(shell, other.map(|id| (id, merge)), found) })
    });
    searched.unwrap_or_else(|status| status as i32)
}

/// Records that the caller merged a bio at one side (0 end, 1 front) of a queued request, which has
/// this extent now.
///
/// # Safety
/// See the module documentation; `grown` must point to a readable structure, null and misaligned
/// pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_record_growth(
    queue: *mut Shell,
    request: u64,
    side_number: u32,
    grown: *const CExtent,
    now_ns: u64,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let (shell, grown) = unsafe { (shell(queue), arguments::read(grown)) };
    kick(shell.and_then(|shell| {
        let (merge, grown) = (side(side_number)?, extent(grown?));
        shell.queue.record_growth(arguments::request_id(request), merge, grown, now_ns).map_err(status)
    }))
}

/// Records that the caller merged a queued request into its lower neighbour. `extents` has the
/// extent of the result, and that of the absorbed request before it was absorbed.
///
/// # Safety
/// See the module documentation; `extents` must point to two readable structures, null and
/// misaligned pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_record_join(
    queue: *mut Shell,
    request: u64,
    absorbed: u64,
    extents: *const [CExtent; 2],
    now_ns: u64,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let (shell, extents) = unsafe { (shell(queue), arguments::read(extents)) };
    kick(shell.and_then(|shell| {
        let [result, before] = extents?.map(extent);
        let (request, absorbed) = (arguments::request_id(request), arguments::request_id(absorbed));
        shell.queue.record_join((request, result), (absorbed, before), now_ns).map_err(status)
    }))
}

/// Records that the caller merged a request that was about to be inserted into the end of a queued
/// one, which has the extent `grown` now. `bio` describes the merged request.
///
/// # Safety
/// See the module documentation; `bio` and `grown` must point to readable structures, null and
/// misaligned pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_record_join_at_insert(
    queue: *mut Shell,
    request: u64,
    grown: *const CExtent,
    bio: *const CBio,
    now_ns: u64,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let (shell, grown, bio) = unsafe { (shell(queue), arguments::read(grown), arguments::read(bio)) };
    kick(shell.and_then(|shell| {
        let (grown, bio) = (extent(grown?), arguments::bio(&bio?)?);
        shell.queue.record_join_at_insert(arguments::request_id(request), grown, &bio, now_ns).map_err(status)
    }))
}

/// Returns how many of `nr_requests` requests the caller may have while it allocates one for this
/// bio: 1 or more.
///
/// # Safety
/// See the module documentation; `bio` must point to a readable structure, null and misaligned
/// pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_depth_limit(queue: *mut Shell, nr_requests: u32, bio: *const CBio) -> i32 {
    // SAFETY: guaranteed by the caller.
    let (shell, bio) = unsafe { (shell(queue), arguments::read(bio)) };
    let limit = shell.and_then(|shell| Ok(shell.queue.depth_limit(nr_requests, &arguments::bio(&bio?)?)));
    limit.map_or_else(|status| status as i32, |limit| i32::try_from(limit).unwrap_or(i32::MAX))
}

/// Returns which of `hoistway_next_work` (1), `hoistway_next_timer` (2) and `hoistway_dispatched`
/// (4) have something to return, as a sum.
///
/// # Safety
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_pending(queue: *mut Shell) -> i32 {
    // SAFETY: guaranteed by the caller.
    let pending = unsafe { shell(queue) }.map(|shell| shell.queue.pending());
    pending.map_or_else(
        |status| status as i32,
        |pending| i32::from(pending.work) | i32::from(pending.timer) << 1 | i32::from(pending.dispatched) << 2,
    )
}

/// Writes the tokens of the requests with which the caller must not merge any more, because their
/// order is decided. Returns the number of such requests, of which at most `len` are written.
///
/// # Safety
/// See the module documentation; `tokens` must point to `len` writable numbers, null and misaligned
/// pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_dispatched(queue: *mut Shell, tokens: *mut u64, len: u32) -> i32 {
    // SAFETY: guaranteed by the caller.
    let listed = unsafe { shell(queue) }.and_then(|shell| {
        arguments::check_out(tokens)?;
        let mut count = 0u32;
        for request in shell.queue.dispatched() {
            if count < len {
                // SAFETY: within the array, as guaranteed by the caller.
                unsafe { tokens.add(count as usize).write(request.token()) };
            }
            count = count.saturating_add(1);
        }
        Ok(count)
    });
    listed.map_or_else(|status| status as i32, |count| i32::try_from(count).unwrap_or(i32::MAX))
}
