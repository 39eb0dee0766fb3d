//! The words for what runs and what submits: a *process* runs a job, a *task* is a process or a
//! kernel thread, and a *submitter* is what the request queue sees of a task.

/// A process, by its place in the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessId(pub u32);

/// A submitter of bios, as each device knows it. The request queue and the elevators call it a
/// context ([`ContextId`](hoistway_core::ContextId)). A task is one submitter; a process has more
/// for threads that submit its requests, or for priorities of single requests.
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

/// The state that every task has.
#[derive(Debug)]
pub(crate) struct TaskState {
    /// The task as a submitter of the devices.
    pub submitter: SubmitterId,
    /// True while the task sleeps outside the host's queues.
    pub is_blocked: bool,
    /// CPU time of finished work, in ns: it passes before the next step.
    pub debt_ns: u64,
    /// Time at which the task got its processor.
    pub on_cpu_since_ns: u64,
}

impl TaskState {
    /// A task that sleeps.
    pub fn new(submitter: SubmitterId) -> TaskState {
        TaskState { submitter, is_blocked: true, debt_ns: 0, on_cpu_since_ns: 0 }
    }
}
