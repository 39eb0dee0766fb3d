//! Clocks of CPU time, which other load of the machine does not advance.

use nix::time::{ClockId, clock_gettime};

/// CPU time of the whole process so far, in ns.
pub fn process_cpu_ns() -> u64 {
    cpu_ns(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of this thread so far, in ns.
pub fn thread_cpu_ns() -> u64 {
    cpu_ns(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of this process and of its finished children so far, in ns. Linux reports that of
/// children in steps of 10 ms.
pub fn cpu_ns_with_children() -> u64 {
    const TICK_NS: u64 = 10_000_000;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The process name may contain anything but the last parenthesis; the 14th and 15th field after
    // it are the children's times.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace().skip(13).take(2);
    process_cpu_ns() + fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() * TICK_NS
}

fn cpu_ns(clock: ClockId) -> u64 {
    // The C library's function: valgrind, which counts instructions, does not emulate a direct call
    // of the kernel's vDSO.
    clock_gettime(clock).map_or(0, |time| time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}
