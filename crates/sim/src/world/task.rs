//! The tasks of the host: processes and kernel threads.

/// A process, by its place in the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessId(pub u32);

/// A submitter of bios to the devices: a task, a thread of it, or one of the priorities of its
/// requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubmitterId(pub u32);

/// A task of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Process(ProcessId),
    /// The thread that writes dirty pages back.
    Flusher,
    /// The thread that commits the journal.
    Journal,
}

impl From<ProcessId> for Task {
    fn from(process: ProcessId) -> Task {
        Task::Process(process)
    }
}

/// What the host knows of each task.
#[derive(Debug)]
pub(crate) struct Thread {
    /// The task as a submitter of the devices.
    pub submitter: SubmitterId,
    /// True while the task sleeps outside the host's queues.
    pub is_blocked: bool,
    /// CPU time of finished work, in ns: it passes before the next step.
    pub debt_ns: u64,
    /// Time at which the task got its processor.
    pub on_cpu_since_ns: u64,
}

impl Thread {
    /// A task that sleeps.
    pub fn new(submitter: SubmitterId) -> Thread {
        Thread { submitter, is_blocked: true, debt_ns: 0, on_cpu_since_ns: 0 }
    }
}
