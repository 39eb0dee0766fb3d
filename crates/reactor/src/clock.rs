//! The system's monotonic clock.

use rustix::time::{ClockId, clock_gettime};

/// Returns the time of `CLOCK_MONOTONIC` in ns.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns the number of involuntary context switches of this thread.
pub(crate) fn preemptions() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the structure consists of integers, for which zero is a valid value, and the kernel
    // writes only integers.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_nivcsw.cast_unsigned() as u64
}

/// Sets the timer slack of this thread to 1 ns. The default slack is 50 us, by which the kernel
/// combines wake-ups.
pub(crate) fn request_precise_timers() {
    // SAFETY: all arguments are integers.
    let refused = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) } != 0;
    if refused {
        tracing::debug!("timers may expire 50 us late: {}", std::io::Error::last_os_error());
    }
}
