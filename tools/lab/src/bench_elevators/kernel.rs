//! The cost of the kernels' own elevators, for comparison.
//!
//! Source: the kernels' scheduler code, compiled in user space (gcc 12.2, -O2) over stubs for
//! locks, tracing and accounting, and driven with the load of `hoistway bench elevators`; an AMD
//! EPYC with 2 processors, medians of 5 runs. The stubs make the figures lower bounds of the cost
//! in a kernel. The measurement's own loop, which noop shows, is in every figure.

/// The numbers of processes for which there are figures.
pub const PROCESSES: [u32; 3] = [1, 128, 8192];

/// The cost of noop (4.19), in ns a request.
pub const NOOP: [f64; 3] = [20.0, 19.7, 20.9];

/// The cost of one elevator.
pub struct KernelCost {
    /// The name of the elevator here.
    pub elevator: &'static str,
    /// The version of Linux.
    pub version: &'static str,
    /// The cost in ns a request, for each of [`PROCESSES`].
    pub ns: [f64; 3],
}

/// All elevators with figures.
pub const COSTS: [KernelCost; 10] = [
    KernelCost { elevator: "deadline", version: "2.6.18", ns: [38.3, 119.0, 318.0] },
    KernelCost { elevator: "anticipatory", version: "2.6.18", ns: [50.3, 142.0, 389.0] },
    KernelCost { elevator: "cfq-v3", version: "2.6.18", ns: [128.0, 234.0, 88_762.0] },
    KernelCost { elevator: "cfq-tree", version: "2.6.24", ns: [55.6, 272.0, 98_046.0] },
    KernelCost { elevator: "bfq-v0", version: "2.6.29", ns: [69.8, 458.0, 95_317.0] },
    KernelCost { elevator: "fiops", version: "3.4", ns: [33.9, 86.2, 111.0] },
    KernelCost { elevator: "cfq", version: "4.19", ns: [52.0, 92.5, 146.0] },
    KernelCost { elevator: "mq-deadline", version: "6.1", ns: [33.8, 120.0, 443.0] },
    KernelCost { elevator: "bfq", version: "6.1", ns: [88.4, 151.0, 892.0] },
    KernelCost { elevator: "kyber", version: "6.1", ns: [50.3, 41.7, 39.7] },
];

/// Why goals are missed, by elevator, as far as it is known. The counts of cache misses and of
/// branches are valgrind's, of a second-level cache of 1 MiB.
pub const REASONS: &[(&str, &str)] = &[
    (
        "noop",
        "its cost is that of the request queue around every elevator and of the measurement itself: every submission \
         checks its context, and every completion accounts for the pool, barriers, plugs and a switch of elevators.",
    ),
    (
        "anticipatory",
        "with 8192 processes some 8 accesses a request miss the second-level cache, and other programs share the next one.",
    ),
    (
        "mq-deadline",
        "with one process the queue is empty after every request, and is searched once more in vain. With 8192 processes \
         some 6 accesses a request miss the second-level cache, and other programs share the next one.",
    ),
    (
        "cfq-v2",
        "with 8192 processes some 14 accesses a request miss the second-level cache, half of them in the two orders of the \
         driver's list.",
    ),
    (
        "cfq-tree",
        "with one process the cost is in the think times and slices of an arrival and a completion. With 8192 processes \
         some 15 accesses a request miss the second-level cache.",
    ),
    (
        "cfq-v3",
        "with 8192 processes some 15 accesses a request miss the second-level cache: the request, its place in two orders, \
         its queue, and the heap of the dispatch list.",
    ),
    ("cfq-bw", "it is cfq-v3 below the layer of reservations, with some 18 misses of the second-level cache."),
    (
        "bfq-v0",
        "every request charges its queue in B-WF2Q+ and may expire it. With 8192 processes some 22 accesses a request miss \
         the second-level cache.",
    ),
    (
        "fiops",
        "with one process every request empties its queue: the process leaves its share of the group, the share leaves its \
         class, and both enter again. The kernel's form has no groups.",
    ),
    (
        "cfq",
        "an arrival updates three think times, with a division each, and searches the tree of positions; at every step \
         queues, groups and processes are looked up by checked numbers, where the kernel follows pointers.",
    ),
    (
        "bfq",
        "with one process the queue is expired and activated for every request, in some 3000 instructions. With 128 processes \
         four trees (positions, service, weights, requests) cost some 20 mispredicted branches. With 8192 processes requests \
         of different processes are adjacent by chance, so that queues are merged and split, and 36 accesses a request miss \
         the first-level cache.",
    ),
    ("kyber", "the token and the latency of a request are in a table of their own, one more cache line a request."),
];
