//! The cost of the kernels' own elevators, for comparison.
//!
//! Source: the kernels' scheduler code, compiled in user space (gcc 12.2, -O2) over stubs for locks,
//! tracing and accounting, and driven with the load of `hoistway bench elevators`; an AMD EPYC with
//! 2 processors, medians of 5 runs. The stubs make the figures lower bounds of the cost in a kernel.
//! The measurement's own loop, which noop shows, is in every figure.

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

/// Why goals are missed, by elevator: what of the difference is known.
pub const REASONS: &[(&str, &str)] = &[];
