//! The tasks of the host: processes and kernel threads.

use std::ops::{Index, IndexMut};

use super::device::SubmitterId;
use super::process::Process;

/// A process, by its place in the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessId(pub u32);

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

/// The processes of a world.
#[derive(Debug)]
pub(super) struct Processes(Vec<Process>);

impl Processes {
    pub fn new(processes: Vec<Process>) -> Processes {
        Processes(processes)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn ids(&self) -> impl Iterator<Item = ProcessId> + use<> {
        (0..self.0.len() as u32).map(ProcessId)
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Process> {
        self.0.iter()
    }

    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Process> {
        self.0.iter_mut()
    }

    /// Each process with its identity.
    pub fn enumerate(&self) -> impl Iterator<Item = (ProcessId, &Process)> {
        self.ids().zip(&self.0)
    }

    pub fn into_vec(self) -> Vec<Process> {
        self.0
    }
}

impl Index<ProcessId> for Processes {
    type Output = Process;

    #[inline]
    fn index(&self, process: ProcessId) -> &Process {
        &self.0[process.0 as usize]
    }
}

impl IndexMut<ProcessId> for Processes {
    #[inline]
    fn index_mut(&mut self, process: ProcessId) -> &mut Process {
        &mut self.0[process.0 as usize]
    }
}
