//! The cases: what is done, what is set, and what is to be good.

/// A case.
pub struct Case {
    /// What it is called.
    pub name: &'static str,
    /// Who does what.
    pub from: From,
    /// What is set now; of a recording that under which it is made.
    pub now: &'static str,
    /// As `--objective` takes it.
    pub objective: &'static str,
}

/// Where a workload is from.
pub enum From {
    /// Clients of `recorded_clients` of this kind, with this seed: they are recorded, and the
    /// recording is what is advised on.
    Clients(&'static str, u64),
    /// This job file, which fio does in real time.
    Job(&'static str),
}

/// What could be set: the schedulers of Linux 6.
pub const CANDIDATES: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

/// All of them. The seeds were not used while the advice was being made.
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

/// The elevator that stands for a scheduler's name.
pub fn elevator(scheduler: &str) -> &str {
    if scheduler == "none" { "noop" } else { scheduler }
}

impl Case {
    /// The figure that decides, and whether less of it is better.
    pub fn goal(&self) -> (&'static str, bool) {
        let clause = self.objective.split(", ").next().unwrap_or_default();
        match clause.rsplit_once(' ') {
            Some((figure, way)) => (figure, way == "min"),
            None => (clause, true),
        }
    }
}
