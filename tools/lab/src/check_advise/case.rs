//! The cases: a workload, the current scheduler, and the objective.

/// A case of the check.
pub struct Case {
    /// The name of the case.
    pub name: &'static str,
    /// The workload.
    pub from: From,
    /// The current scheduler, under which a recording is made.
    pub now: &'static str,
    /// The objective in the form of `--objective`.
    pub objective: &'static str,
}

/// The origin of a workload.
pub enum From {
    /// Clients of `recorded_clients` of this kind, with this seed. Their recording is the input of
    /// the advice.
    Clients(&'static str, u64),
    /// A job file, which fio executes in real time.
    Job(&'static str),
}

/// The candidates: the schedulers of Linux 6.
pub const CANDIDATES: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

/// All cases. Their seeds were not used during the development of the advice.
pub const CASES: [Case; 7] = [
    Case {
        name: "streams beside each other",
        from: From::Clients("streams", 401),
        now: "mq-deadline",
        objective: "throughput max, p99(worst) min",
    },
    Case {
        name: "random readers and a stream",
        from: From::Clients("random-and-stream", 402),
        now: "kyber",
        objective: "throughput max, p99(worst) min",
    },
    Case {
        name: "random readers that must not wait beside a stream",
        from: From::Clients("random-and-stream", 403),
        now: "bfq",
        objective: "p99(random) min",
    },
    Case {
        name: "a database",
        from: From::Clients("database", 404),
        now: "none",
        objective: "p99(reader) min, throughput >= 80% of best",
    },
    Case {
        name: "a database whose log counts",
        from: From::Clients("database", 405),
        now: "mq-deadline",
        objective: "p99(log) min",
    },
    Case {
        name: "a thinker among streams",
        from: From::Clients("thinker", 406),
        now: "none",
        objective: "throughput max, p99(worst) min",
    },
    Case {
        name: "fio: a log beside a scan",
        from: From::Job("examples/advise/log-and-scan.fio"),
        now: "mq-deadline",
        objective: "p99(log) min, throughput(scan) >= 10%",
    },
];

/// The elevator with the name of a scheduler.
pub fn elevator(scheduler: &str) -> &str {
    if scheduler == "none" { "noop" } else { scheduler }
}

impl Case {
    /// The deciding figure, and whether less of it is better.
    pub fn goal(&self) -> (&'static str, bool) {
        let clause = self.objective.split(", ").next().unwrap_or_default();
        match clause.rsplit_once(' ') {
            Some((figure, way)) => (figure, way == "min"),
            None => (clause, true),
        }
    }
}
