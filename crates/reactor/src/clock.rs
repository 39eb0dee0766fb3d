//! The system's monotonic clock.

use rustix::time::{ClockId, clock_gettime};

/// The time in ns since the system came up.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// How often the processor was taken from this thread, because its time was up or somebody came
/// first.
pub(crate) fn preemptions() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes a structure of this type, all of whose values are good; one that it
    // did not write is all zeroes.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_nivcsw.cast_unsigned() as u64
}

/// Asks for timers of this thread that are as exact as the hardware (the kernel may be 50 us late
/// otherwise, to wake less often).
pub(crate) fn want_exact_timers() {
    // SAFETY: a call with numbers alone.
    let refused = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) } != 0;
    if refused {
        tracing::debug!("timers stay up to 50 us late: {}", std::io::Error::last_os_error());
    }
}
