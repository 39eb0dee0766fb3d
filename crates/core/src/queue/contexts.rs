//! I/O contexts: creation, exit, and the attributes that elevators derive priorities from.

use super::{Full, Kick, RequestQueue, Stale};
use crate::collections::NIL;
use crate::context::{Context, ContextId, State as ContextState};
use crate::elevator::Elevator;
use crate::elevator::tables::HostTypes;
use crate::group::ROOT;
use crate::priority::{CpuPolicy, Priority};

impl<H: HostTypes> RequestQueue<H> {
    /// Creates a context for a process. Its entry is freed when the process has exited and its last
    /// request has completed.
    pub fn create_context(&mut self, pid: u32, priority: Priority, nice: i8) -> Result<ContextId, Full> {
        let slot = self.core.free_contexts.pop_front(&mut self.core.tables.contexts);
        if slot == NIL {
            return Err(Full);
        }
        let generation = self.core.tables.contexts[slot].generation.wrapping_add(1);
        self.core.tables.contexts[slot] =
            Context { generation, pid, priority, nice, state: ContextState::Running, ..Context::default() };
        self.core.enter_group(slot, ROOT);
        Ok(ContextId { slot, generation })
    }

    /// The record of a context; `None` if the handle is stale.
    pub fn context(&self, id: ContextId) -> Option<&Context> {
        let context = &self.core.tables.contexts[id.slot];
        (context.generation == id.generation && context.state != ContextState::Free).then_some(context)
    }

    /// Ends a context because its process exits. Pending requests are still served.
    pub fn exit_context(&mut self, id: ContextId, now_ns: u64) -> Result<Kick, Stale> {
        self.begin(now_ns);
        let slot = self.running_context(id).ok_or(Stale)?;
        self.stop_sleeping(slot);
        self.elevator.exit(&mut self.core, slot);
        self.core.tables.contexts[slot].state = ContextState::Exited;
        self.core.free_context_if_unused(slot);
        Ok(self.end())
    }

    /// Sets a context's priority; with [`Priority::UNSET`] it follows the nice value.
    pub fn set_priority(&mut self, id: ContextId, priority: Priority, now_ns: u64) -> Result<Kick, Stale> {
        self.begin(now_ns);
        let slot = self.running_context(id).ok_or(Stale)?;
        self.core.tables.contexts[slot].priority = priority;
        self.elevator.priority_changed(&mut self.core, slot);
        Ok(self.end())
    }

    /// Sets a context's nice value, from which an unset priority follows. As in the kernel, the
    /// elevator's process queues apply it when they next read the priority.
    pub fn set_nice(&mut self, id: ContextId, nice: i8, now_ns: u64) -> Result<Kick, Stale> {
        self.begin(now_ns);
        let slot = self.running_context(id).ok_or(Stale)?;
        self.core.tables.contexts[slot].nice = nice;
        Ok(self.end())
    }

    /// Sets the CPU scheduling policy of a context's process. From 2.6.26 on, the class of an unset
    /// priority follows it; earlier block layers ignore it. Like [`set_nice`](Self::set_nice), it
    /// applies when the priority is next read.
    pub fn set_cpu_policy(&mut self, id: ContextId, policy: CpuPolicy, now_ns: u64) -> Result<Kick, Stale> {
        self.begin(now_ns);
        let slot = self.running_context(id).ok_or(Stale)?;
        if self.rules.cpu_policy_counts {
            self.core.tables.contexts[slot].policy = policy;
        }
        Ok(self.end())
    }

    /// Sets the CPU on which a context's process runs. Multi-queue elevators file its requests by
    /// CPU.
    pub fn set_cpu(&mut self, id: ContextId, cpu: u16) -> Result<(), Stale> {
        let slot = self.running_context(id).ok_or(Stale)?;
        self.core.tables.contexts[slot].cpu = cpu;
        Ok(())
    }
}
