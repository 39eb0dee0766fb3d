//! The elevators behind the names in `queue/scheduler`.

use hoistway_core::Kind;

/// The prefix of those elevators of the module `hoistway_iosched` whose names the kernel uses
/// itself.
pub(crate) const PREFIX: &str = "h-";

/// Returns true if only the module can have registered a scheduler of this name with a kernel 5.0
/// or later.
pub(crate) fn is_of_module(scheduler: &str) -> bool {
    let is_kernels_own = matches!(scheduler, "none" | "noop" | "deadline" | "mq-deadline" | "kyber" | "bfq");
    !is_kernels_own && elevator_of_scheduler(scheduler).is_some()
}

/// The elevator of a scheduler in `queue/scheduler`. The module's elevators whose names the kernel
/// uses itself have the prefix `h-`.
///
/// ```
/// use hoistway_core::Kind;
/// use hoistway_machine::elevator_of_scheduler;
/// assert_eq!(elevator_of_scheduler("h-bfq"), Some(Kind::Bfq));
/// assert_eq!(elevator_of_scheduler("cfq"), Some(Kind::Cfq));
/// assert_eq!(elevator_of_scheduler("adios"), None);
/// ```
pub fn elevator_of_scheduler(scheduler: &str) -> Option<Kind> {
    Kind::from_name(scheduler.strip_prefix(PREFIX).unwrap_or(scheduler))
}
