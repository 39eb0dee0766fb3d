//! Calls on contexts, bios, requests of the driver, time and deferred work.
//!
//! `queue` must always be null or point to a queue that `hoistway_queue_init` created and that no
//! other thread uses during the call.

use hoistway_core::{CpuPolicy, DeferredWork, HostTypes as _, Kick, Next, ReserveError, Stale, SubmitError, Submitted};

use crate::arguments;
use crate::events::CEvent;
use crate::memory::{CHost, Shell, shell};
use crate::types::{CBio, CRequest, CReservation, CSubmitted, CWork, Choice, Status};

/// Converts a result to a status: whether the host must run the queue, or the error.
pub(crate) fn kick(result: Result<Kick, Status>) -> i32 {
    match result {
        Ok(Kick::Quiet) => Status::Ok as i32,
        Ok(Kick::Run) => Status::Run as i32,
        Err(status) => status as i32,
    }
}

pub(crate) fn stale(_: Stale) -> Status {
    Status::Stale
}

/// Creates a context for a process and writes its handle to `context`.
///
/// # Safety
/// See the module documentation; `context` must point to a writable number, null and
/// misaligned pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_context_create(
    queue: *mut Shell,
    pid: u32,
    class: u32,
    level: u32,
    nice: i8,
    context: *mut u64,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let made = unsafe { shell(queue) }.and_then(|shell| {
        arguments::check_out(context)?;
        let priority = arguments::priority(class, level)?;
        shell.queue.create_context(pid, priority, nice).map_err(|_| Status::Full)
    });
    match made {
        Ok(id) => {
            // SAFETY: checked here, and guaranteed by the caller.
            unsafe { context.write(arguments::context_bits(id)) };
            Status::Ok as i32
        }
        Err(status) => status as i32,
    }
}

/// Ends a context because its process exits. Pending requests are still served.
///
/// # Safety
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_context_exit(queue: *mut Shell, context: u64, now_ns: u64) -> i32 {
    // SAFETY: guaranteed by the caller.
    let shell = unsafe { shell(queue) };
    kick(shell.and_then(|shell| shell.queue.exit_context(arguments::context_id(context), now_ns).map_err(stale)))
}

/// Sets a context's priority.
///
/// # Safety
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_context_set_priority(
    queue: *mut Shell,
    context: u64,
    class: u32,
    level: u32,
    now_ns: u64,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let shell = unsafe { shell(queue) };
    kick(shell.and_then(|shell| {
        let priority = arguments::priority(class, level)?;
        shell.queue.set_priority(arguments::context_id(context), priority, now_ns).map_err(stale)
    }))
}

/// Sets a context's nice value.
///
/// # Safety
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_context_set_nice(queue: *mut Shell, context: u64, nice: i8, now_ns: u64) -> i32 {
    // SAFETY: guaranteed by the caller.
    let shell = unsafe { shell(queue) };
    kick(shell.and_then(|shell| shell.queue.set_nice(arguments::context_id(context), nice, now_ns).map_err(stale)))
}

/// Sets the CPU scheduling policy of a process: 0 normal, 1 real time, 2 idle.
///
/// # Safety
///
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_context_set_cpu_policy(
    queue: *mut Shell,
    context: u64,
    policy: u32,
    now_ns: u64,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let shell = unsafe { shell(queue) };
    kick(shell.and_then(|shell| {
        let policy = match policy {
            0 => CpuPolicy::Normal,
            1 => CpuPolicy::RealTime,
            2 => CpuPolicy::Idle,
            _ => return Err(Status::Invalid),
        };
        shell.queue.set_cpu_policy(arguments::context_id(context), policy, now_ns).map_err(stale)
    }))
}

/// Reserves bandwidth for a process, or changes its reservation. If the device has no capacity for
/// it, the available bandwidth is written to `headroom`, in bytes a second.
///
/// # Safety
/// See the module documentation; `reservation` must point to a readable structure and
/// `headroom` to a writable number, null and misaligned pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_reserve(
    queue: *mut Shell,
    context: u64,
    reservation: *const CReservation,
    now_ns: u64,
    headroom: *mut u64,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let (shell, reservation) = unsafe { (shell(queue), arguments::read(reservation)) };
    kick(shell.and_then(|shell| {
        let reservation = reservation?.to_core();
        arguments::check_out(headroom)?;
        let reserved = shell.queue.reserve(arguments::context_id(context), reservation, now_ns);
        // SAFETY: checked here, and guaranteed by the caller.
        reserved.map_err(|error| unsafe { refusal(error, headroom) })
    }))
}

/// The status of a refused reservation.
///
/// # Safety
///
/// `headroom` must have been checked and point to a writable number.
pub(crate) unsafe fn refusal(error: ReserveError, headroom: *mut u64) -> Status {
    match error {
        ReserveError::Stale => Status::Stale,
        ReserveError::NotSupported => Status::NotSupported,
        ReserveError::BadRate => Status::Invalid,
        ReserveError::NoCapacity { headroom_bytes_per_second } => {
            // SAFETY: guaranteed by the caller.
            unsafe { headroom.write(headroom_bytes_per_second) };
            Status::NoCapacity
        }
    }
}

/// Ends a process's reservation; without one the call has no effect.
///
/// # Safety
///
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_release(queue: *mut Shell, context: u64, now_ns: u64) -> i32 {
    // SAFETY: guaranteed by the caller.
    let shell = unsafe { shell(queue) };
    kick(shell.and_then(|shell| shell.queue.release(arguments::context_id(context), now_ns).map_err(stale)))
}

/// Submits a bio of a process.
///
/// # Safety
/// See the module documentation; `bio` must point to a readable and `submitted` to a
/// writable structure, null and misaligned pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_submit(
    queue: *mut Shell,
    bio: *const CBio,
    now_ns: u64,
    submitted: *mut CSubmitted,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    unsafe { submit(queue, bio, now_ns, submitted, false) }
}

/// Resubmits the bio of a process that slept for a request and was woken.
///
/// # Safety
///
/// As for [`hoistway_submit`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_resubmit(
    queue: *mut Shell,
    bio: *const CBio,
    now_ns: u64,
    submitted: *mut CSubmitted,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    unsafe { submit(queue, bio, now_ns, submitted, true) }
}

unsafe fn submit(queue: *mut Shell, bio: *const CBio, now_ns: u64, out: *mut CSubmitted, again: bool) -> i32 {
    // SAFETY: guaranteed by the caller.
    let (shell, bio) = unsafe { (shell(queue), arguments::read(bio)) };
    let submitted = shell.and_then(|shell| {
        let bio = arguments::bio(&bio?)?;
        arguments::check_out(out)?;
        let submitted = if again { shell.queue.resubmit(bio, now_ns) } else { shell.queue.submit(bio, now_ns) };
        submitted.map_err(|error| match error {
            SubmitError::Full => Status::Full,
            SubmitError::Asleep | SubmitError::NotWoken => Status::NotAwake,
            SubmitError::NoContext => Status::Stale,
            SubmitError::BadExtent => Status::BadExtent,
            SubmitError::NotSupported => Status::NotSupported,
        })
    });
    kick(submitted.map(|(what, kick)| {
        let (what, request) = match what {
            Submitted::Queued(id) => (0, arguments::request_bits(id)),
            Submitted::Merged(id) => (1, arguments::request_bits(id)),
            Submitted::Asleep => (2, 0),
        };
        // SAFETY: checked here, and guaranteed by the caller.
        unsafe { out.write(CSubmitted { request, what, reserved: 0 }) };
        kick
    }))
}

/// Unplugs the queue because a process waits for pending I/O.
///
/// # Safety
///
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_unplug(queue: *mut Shell, now_ns: u64) -> i32 {
    // SAFETY: guaranteed by the caller.
    kick(unsafe { shell(queue) }.map(|shell| shell.queue.unplug_for_waiter(now_ns)))
}

/// Writes the next request for the driver (`Ok`), or returns `Wait` or `Empty`.
///
/// # Safety
/// See the module documentation; `request` must point to a writable structure, null and
/// misaligned pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_next(queue: *mut Shell, now_ns: u64, request: *mut CRequest) -> i32 {
    // SAFETY: guaranteed by the caller.
    unsafe { next(queue, None, now_ns, request) }
}

/// Returns the next request for one hardware queue.
///
/// # Safety
///
/// As for [`hoistway_next`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_next_for(
    queue: *mut Shell,
    hw_queue: u32,
    now_ns: u64,
    request: *mut CRequest,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    unsafe { next(queue, Some(hw_queue), now_ns, request) }
}

unsafe fn next(queue: *mut Shell, hw_queue: Option<u32>, now_ns: u64, request: *mut CRequest) -> i32 {
    // SAFETY: guaranteed by the caller.
    let shell = match unsafe { shell(queue) }.and_then(|shell| arguments::check_out(request).map(|()| shell)) {
        Ok(shell) => shell,
        Err(status) => return status as i32,
    };
    let next = match hw_queue.map(u16::try_from) {
        None => shell.queue.next(now_ns),
        Some(Ok(hw_queue)) if hw_queue < shell.queue.config().hw_queues => shell.queue.next_for(hw_queue, now_ns),
        Some(_) => return Status::Invalid as i32,
    };
    let id = match next {
        Next::Request(id) => id,
        Next::Wait => return Status::Wait as i32,
        Next::Empty => return Status::Empty as i32,
    };
    let pid = shell.queue.context_of(id).map_or(0, |context| context.pid());
    let Some(entry) = shell.queue.request(id) else { return Status::Stale as i32 };
    let taken = CRequest {
        id: arguments::request_bits(id),
        token: entry.token(),
        sector: entry.sector(),
        submitted_ns: entry.submitted_ns(),
        sectors: entry.sectors(),
        pid,
        op: entry.op() as u16,
        flags: arguments::flags_bits(entry.flags()),
        bios_max: arguments::bios_max(entry, shell.merged_bios),
    };
    // SAFETY: checked here, and guaranteed by the caller.
    unsafe { request.write(taken) };
    Status::Ok as i32
}

/// Completes a request that the device has finished. Writes the tokens of its bios to `tokens`, in
/// the order in which they were merged, and their number to `count`. An array shorter than the
/// request's `bios_max` is refused; then nothing has changed.
///
/// # Safety
/// See the module documentation; `tokens` must point to `len` writable numbers and `count`
/// to one, null and misaligned pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_complete(
    queue: *mut Shell,
    request: u64,
    now_ns: u64,
    tokens: *mut u64,
    len: u32,
    count: *mut u32,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let shell = unsafe { shell(queue) };
    kick(shell.and_then(|shell| {
        arguments::check_out(tokens)?;
        arguments::check_out(count)?;
        let id = arguments::request_id(request);
        let entry = shell.queue.request(id).ok_or(Status::Stale)?;
        if len < arguments::bios_max(entry, shell.merged_bios) {
            return Err(Status::TooSmall);
        }
        let mut written = 0u32;
        let completed = shell.queue.complete(id, now_ns, |token| {
            if written < len {
                // SAFETY: within the array, as guaranteed by the caller.
                unsafe { tokens.add(written as usize).write(token) };
                written = written.saturating_add(1);
            }
        });
        let kick = completed.map_err(stale)?;
        // SAFETY: checked here, and guaranteed by the caller.
        unsafe { count.write(written) };
        Ok(kick)
    }))
}

/// Returns an unserved request to the queue.
///
/// # Safety
///
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_requeue(queue: *mut Shell, request: u64, now_ns: u64) -> i32 {
    // SAFETY: guaranteed by the caller.
    let shell = unsafe { shell(queue) };
    kick(shell.and_then(|shell| shell.queue.requeue(arguments::request_id(request), now_ns).map_err(stale)))
}

/// Writes the time of the next `hoistway_timer` call to `at_ns` (`Ok`), or returns `Empty` if no
/// timer is armed.
///
/// # Safety
/// See the module documentation; `at_ns` must point to a writable number, null and
/// misaligned pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_next_timer(queue: *mut Shell, at_ns: *mut u64) -> i32 {
    // SAFETY: guaranteed by the caller.
    let next = unsafe { shell(queue) }.and_then(|shell| {
        arguments::check_out(at_ns)?;
        shell.queue.next_timer().ok_or(Status::Empty)
    });
    match next {
        Ok(time_ns) => {
            // SAFETY: checked here, and guaranteed by the caller.
            unsafe { at_ns.write(time_ns) };
            Status::Ok as i32
        }
        Err(status) => status as i32,
    }
}

/// Fires the first due timer, if any.
///
/// # Safety
///
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_timer(queue: *mut Shell, now_ns: u64) -> i32 {
    // SAFETY: guaranteed by the caller.
    kick(unsafe { shell(queue) }.map(|shell| shell.queue.timer(now_ns)))
}

/// Takes the oldest item of deferred work (`Ok`), or returns `Empty`.
///
/// # Safety
/// See the module documentation; `work` must point to a writable structure, null and
/// misaligned pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_next_work(queue: *mut Shell, work: *mut CWork) -> i32 {
    // SAFETY: guaranteed by the caller.
    let next = unsafe { shell(queue) }.and_then(|shell| {
        arguments::check_out(work)?;
        shell.queue.next_work().ok_or(Status::Empty)
    });
    let next = match next {
        Ok(DeferredWork::Wake(context)) => CWork { what: 1, reserved: 0, context: arguments::context_bits(context) },
        Ok(_) => CWork::default(),
        Err(status) => return status as i32,
    };
    // SAFETY: checked here, and guaranteed by the caller.
    unsafe { work.write(next) };
    Status::Ok as i32
}

/// Begins to switch to another elevator, or to add or remove the reservation layer.
///
/// # Safety
///
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_switch(queue: *mut Shell, elevator: u32, now_ns: u64) -> i32 {
    // SAFETY: guaranteed by the caller.
    let shell = unsafe { shell(queue) };
    kick(shell.and_then(|shell| {
        let elevator = Choice::read(elevator)?;
        if !CHost::SWITCHES || shell.fixed || elevator.fixed {
            return Err(Status::NotSupported);
        }
        if shell.queue.is_switching() {
            return Err(Status::Busy);
        }
        if shell.queue.kind() == elevator.kind && shell.queue.is_reserving() == elevator.reserving {
            return Ok(Kick::Quiet);
        }
        let _ = shell.queue.take_retired_storage();
        // SAFETY: no switch is in progress, and the storage that the last one retired is dropped.
        let storage = unsafe { shell.other_elevator_storage(elevator) };
        Ok(shell.queue.switch(storage, now_ns))
    }))
}

/// Returns 1 while a switch waits for the old elevator's last request, otherwise 0.
///
/// # Safety
///
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_is_switching(queue: *mut Shell) -> i32 {
    // SAFETY: guaranteed by the caller.
    unsafe { shell(queue) }.map_or_else(|status| status as i32, |shell| i32::from(shell.queue.is_switching()))
}

/// Returns the number of requests in the device.
///
/// # Safety
///
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_in_flight(queue: *mut Shell) -> i32 {
    // SAFETY: guaranteed by the caller.
    unsafe { shell(queue) }.map_or_else(|status| status as i32, |shell| shell.queue.in_flight() as i32)
}

/// Starts (`on` not 0) or stops the recording of trace events, which is on at first. A queue with
/// room for 0 events records none.
///
/// # Safety
///
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_events_enable(queue: *mut Shell, on: u32) -> i32 {
    // SAFETY: guaranteed by the caller.
    let shell = unsafe { shell(queue) };
    let enabled = shell.map(|shell| shell.queue.sink_mut().set_on(on != 0));
    enabled.map_or_else(|status| status as i32, |()| Status::Ok as i32)
}

/// Takes the oldest trace event (`Ok`), or returns `Empty`.
///
/// # Safety
/// See the module documentation; `event` must point to a writable structure, null and
/// misaligned pointers are refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_next_event(queue: *mut Shell, event: *mut CEvent) -> i32 {
    // SAFETY: guaranteed by the caller.
    let next = unsafe { shell(queue) }.and_then(|shell| {
        arguments::check_out(event)?;
        shell.queue.sink_mut().pop().ok_or(Status::Empty)
    });
    match next {
        Ok(next) => {
            // SAFETY: checked here, and guaranteed by the caller.
            unsafe { event.write(next) };
            Status::Ok as i32
        }
        Err(status) => status as i32,
    }
}

/// Returns the number of trace events dropped because the ring was full.
///
/// # Safety
///
/// See the module documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hoistway_events_dropped(queue: *mut Shell) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { shell(queue) }.map_or(0, |shell| shell.queue.sink().dropped())
}
