//! The processes of a world.

use std::ops::{Index, IndexMut};

use super::process::Process;
use super::task::ProcessId;

/// The processes of a world, by their identities.
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
