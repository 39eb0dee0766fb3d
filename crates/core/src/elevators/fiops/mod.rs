//! FIOPS, "fair IOPS": as posted in 2012 for Linux 3.4, for non-rotational devices.
//!
//! The idea: each request costs its process a number of *vios*. The process that has spent the
//! least is served next, its requests in order of arrival. There are no slices and no idling:
//! without seek costs, requests are the only resource to share. Classes are strict: real time
//! before best effort before idle.
//!
//! A process that was idle continues with what the others have spent meanwhile (the floor of the
//! tree), so idling earns no credit. A process with requests in the device was not idle and keeps
//! its position.
//!
//! Processes are members of *shares*: one for each class of each group. Without groups, as in the
//! kernel, there is one per class, and the order among shares has no effect. The state is in
//! [`Fiops`]; `service_tree` has the order, `tunables` the costs.

mod service_tree;
mod tunables;

use crate::bio::Bio;
use crate::collections::{Arena, Count, NIL, Node, Slot, Tree};
use crate::context::Context;
use crate::elevator::capacity::Capacity;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{HostTypes, TableMaker, TableOf};
use crate::elevator::{Elevator, MakeTables, Merge, hooks};
use crate::elevators::shared::sorted_fifo::SortedFifo;
use crate::event::Note;
use crate::group::ROOT;
use crate::priority::{Class, Priority};

use service_tree::{ServiceTree, is_below};
pub(crate) use tunables::{INFO, cost_at_level};
use tunables::{SyncPreempt, Tunables};

/// The number of classes, highest first.
const CLASSES: usize = 3;
const CLASS_SLOTS: u32 = 3;
/// The recorded group of a process that left its group while it had no requests.
const OTHER_GROUP: Slot = NIL - 1;
/// The weight of a group that is charged the cost of its requests.
const NORMAL_WEIGHT: u64 = 100;

/// A process, at the slot of its context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    /// The vios that it has spent.
    vios: u64,
    /// The count of insertions, which orders equals.
    order: u64,
    /// Its requests, sync and async.
    queue: SortedFifo,
    /// Requests on the dispatch list or in the device.
    in_flight: u32,
    priority: Priority,
    priority_changed: bool,
    /// The share in which it waits, or [`NIL`].
    share: Slot,
    /// The group in which its vios are counted.
    group: Slot,
    /// It is among the processes whose next request is sync.
    leads_with_sync: bool,
}

impl Default for Process {
    fn default() -> Self {
        Process {
            vios: 0,
            order: 0,
            queue: SortedFifo::default(),
            in_flight: 0,
            priority: Priority::UNSET,
            priority_changed: false,
            share: NIL,
            group: NIL,
            leads_with_sync: false,
        }
    }
}

impl Process {
    /// Initialises a new process, or applies its changed priority if `reread` is true.
    #[inline]
    fn prepare(&mut self, context: &mut Context, reread: bool) {
        let new = !core::mem::replace(&mut context.history.known, true);
        if new || (self.priority_changed && reread) {
            self.apply(context, new);
        }
    }

    #[cold]
    #[inline(never)]
    fn apply(&mut self, context: &Context, new: bool) {
        if new {
            debug_assert!(self.queue.is_empty() && self.in_flight == 0, "a new process has no requests");
            *self = Process::default();
        }
        self.priority = context.effective_priority();
        self.priority_changed = false;
    }
}

/// The processes of one class in one group.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    members: ServiceTree,
    /// The members whose next request is sync, in the same order; maintained if async requests can
    /// be passed.
    sync_first: Tree,
    /// The vios that the members have spent, scaled by the group's weight.
    vios: u64,
    in_flight: u32,
    /// It is among the shares with requests.
    waits: bool,
}

/// The tables of the elevator.
pub(crate) struct Tables<H: HostTypes> {
    processes: H::Slots<Process>,
    process_nodes: H::Slots<Node>,
    sync_nodes: H::Slots<Node>,
    shares: H::Slots<Share>,
    share_nodes: H::Slots<Node>,
}

/// The state of the elevator.
pub(crate) struct Fiops<H: HostTypes> {
    processes: TableOf<H, Process>,
    process_nodes: TableOf<H, Node>,
    sync_nodes: TableOf<H, Node>,
    /// The number of contexts for which the tables have entries.
    room: u32,
    shares: TableOf<H, Share>,
    share_nodes: TableOf<H, Node>,
    /// The shares with requests, by class.
    classes: [ServiceTree; CLASSES],
    /// The number of processes with requests, by class.
    waiting: [u32; CLASSES],
    /// Requests on the dispatch list or in the device: async, sync.
    in_flight: [u32; 2],
    /// The count of insertions into trees.
    placements: u64,
    /// The count of requests.
    arrivals: u64,
    tunables: Tunables,
}

impl<H: HostTypes> MakeTables<H> for Fiops<H> {
    fn make_tables<M: TableMaker<H>>(capacity: Capacity, maker: &mut M) -> Tables<H> {
        let shares = capacity.group_slots().saturating_mul(CLASS_SLOTS);
        Tables {
            processes: maker.table(capacity.contexts),
            process_nodes: maker.table(capacity.contexts),
            sync_nodes: maker.table(capacity.contexts),
            shares: maker.table(shares),
            share_nodes: maker.table(shares),
        }
    }
}

impl<H: HostTypes> Elevator<H> for Fiops<H> {
    type Tables = Tables<H>;

    fn new(_: &mut QueueCore<H>, tables: Tables<H>) -> Self {
        let processes: TableOf<H, Process> = Arena::new(tables.processes);
        let (process_nodes, sync_nodes): (TableOf<H, Node>, TableOf<H, Node>) =
            (Arena::new(tables.process_nodes), Arena::new(tables.sync_nodes));
        let share_nodes: TableOf<H, Node> = Arena::new(tables.share_nodes);
        let entries = processes.capacity().min(process_nodes.capacity()).min(sync_nodes.capacity());
        Fiops {
            processes,
            process_nodes,
            sync_nodes,
            room: if share_nodes.capacity() >= CLASS_SLOTS { entries } else { 0 },
            shares: Arena::new(tables.shares),
            share_nodes,
            classes: [ServiceTree::default(); CLASSES],
            waiting: [0; CLASSES],
            in_flight: [0; 2],
            placements: 0,
            arrivals: 0,
            tunables: Tunables::defaults(),
        }
    }

    fn into_tables(self) -> Tables<H> {
        Tables {
            processes: self.processes.into_slots(),
            process_nodes: self.process_nodes.into_slots(),
            sync_nodes: self.sync_nodes.into_slots(),
            shares: self.shares.into_slots(),
            share_nodes: self.share_nodes.into_slots(),
        }
    }

    fn tunable(&self, index: usize) -> i64 {
        self.tunables.get(index)
    }

    fn set_tunable(&mut self, core: &mut QueueCore<H>, index: usize, value: i64) {
        self.tunables.set(index, value);
        for process in 0..self.processes.capacity() {
            if self.processes[process].share == NIL {
                continue;
            }
            if self.processes[process].share != self.share_of(core, process) && tunables::decides_shares(index) {
                self.refile(core, process);
            }
            self.note_lead(core, process);
        }
    }

    fn allow_merge(&mut self, core: &mut QueueCore<H>, request: Slot, bio: &Bio) -> bool {
        core.tables.requests[request].context == bio.context.slot
    }

    fn find_front_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Slot {
        let process = bio.context.slot;
        if process < self.room { self.processes[process].queue.at_sector(core, bio.end()) } else { NIL }
    }

    fn merged(&mut self, core: &mut QueueCore<H>, request: Slot, merge: Merge) {
        if merge == Merge::Front {
            let process = core.tables.requests[request].context;
            self.processes[process].queue.resort(core, request);
        }
    }

    fn join(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot) {
        let (process, survivor) = (core.tables.requests[absorbed].context, core.tables.requests[request].context);
        if self.tunables.first_form && process == survivor {
            self.processes[process].queue.inherit(core, request, absorbed);
        }
        self.processes[process].queue.remove(core, absorbed);
        if self.processes[process].queue.is_empty() {
            let share = self.leave(process);
            self.settle(share);
        } else {
            self.note_lead(core, process);
        }
    }

    fn allocate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        core.tables.requests[request].owner = NIL;
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let process = core.tables.requests[request].context;
        if process >= self.room {
            // The storage was made for fewer contexts: serve the request in order of arrival.
            return core.dispatch_sort(request);
        }
        self.arrivals.increment();
        let reread = self.tunables.reread_priority;
        let entry = &mut self.processes[process];
        entry.prepare(&mut core.tables.contexts[process], reread);
        entry.queue.insert(core, request, self.arrivals);
        if entry.share == NIL {
            self.file(core, process);
        }
    }

    fn dispatch(&mut self, core: &mut QueueCore<H>, force: bool) -> u32 {
        let Some(class) = self.classes.iter().position(|class| !class.is_empty()) else { return 0 };
        if force {
            return self.drain(core, class);
        }
        let process = self.select(core, class);
        if process == NIL {
            return 0;
        }
        let request = self.processes[process].queue.oldest();
        self.charge(core, process, request);
        self.move_to_dispatch(core, process, request);
        self.refile_after_turn(core, process);
        1
    }

    fn dispatch_real_time(&mut self, core: &mut QueueCore<H>) -> u32 {
        let class = usize::from(Class::RealTime.rank());
        if self.class(class).is_empty() { 0 } else { hooks::dispatch(self, core, false) }
    }

    fn complete(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let entry = &core.tables.requests[request];
        let (process, share, sync) = (entry.context, entry.owner, entry.is_sync());
        if share == NIL {
            return;
        }
        let [of_async, of_sync] = &mut self.in_flight;
        (if sync { of_sync } else { of_async }).decrement();
        self.processes[process].in_flight.decrement();
        self.shares[share].in_flight.decrement();
        // Async requests that waited for sync ones may be allowed now.
        if self.in_flight == [0; 2] && !Elevator::<H>::is_empty(self) {
            core.kick();
        }
    }

    fn is_empty(&self) -> bool {
        self.classes.iter().all(ServiceTree::is_empty)
    }

    fn priority_changed(&mut self, _: &mut QueueCore<H>, context: Slot) {
        self.processes[context].priority_changed = true;
    }

    fn group_created(&mut self, _: &mut QueueCore<H>, group: Slot) {
        for share in shares_of(group) {
            self.shares[share] = Share::default();
        }
    }

    fn release_group(&mut self, _: &mut QueueCore<H>, group: Slot) -> bool {
        let mut shares = shares_of(group);
        shares.all(|share| self.shares[share].members.is_empty() && self.shares[share].in_flight == 0)
    }

    fn group_changed(&mut self, core: &mut QueueCore<H>, context: Slot) {
        if !self.tunables.groups {
            return;
        }
        if self.processes[context].share != NIL {
            self.refile(core, context);
        } else {
            self.processes[context].group = OTHER_GROUP;
        }
    }
}

impl<H: HostTypes> Fiops<H> {
    /// The next process of a class: the one that has spent the least in the share that has spent
    /// the least.
    fn turn_of(&self, class: usize) -> Slot {
        let share = self.class(class).first();
        self.shares[share].members.first()
    }

    /// Selects the process to serve, or [`NIL`] if none may be served now. Lower classes are not
    /// considered then.
    fn select(&mut self, core: &mut QueueCore<H>, class: usize) -> Slot {
        let process = self.turn_of(class);
        let request = self.processes[process].queue.oldest();
        if core.tables.requests[request].is_sync() {
            return process;
        }
        let [_, sync_in_flight] = self.in_flight;
        let alone = self.waiting.get(class) == Some(&1);
        if self.tunables.postpones_async() && sync_in_flight > 0 && alone {
            // With other processes waiting, their sync requests get turns by their costs. Sync
            // requests are in the device, so a completion will run the queue.
            core.note(|_| Note::Postponed);
            return NIL;
        }
        let share = &self.shares[self.processes[process].share];
        if self.tunables.sync_preempt == SyncPreempt::Off || share.members.len() < 2 {
            return process;
        }
        match (share.sync_first.first(), self.tunables.sync_preempt) {
            (NIL, SyncPreempt::Shipped) => share.members.last(),
            (NIL, _) => process,
            (sync, _) => sync,
        }
    }

    /// Moves all requests of the next process without a charge.
    fn drain(&mut self, core: &mut QueueCore<H>, class: usize) -> u32 {
        let process = self.turn_of(class);
        let mut moved = 0u32;
        while !self.processes[process].queue.is_empty() {
            let request = self.processes[process].queue.oldest();
            self.move_to_dispatch(core, process, request);
            moved.increment();
        }
        self.refile(core, process);
        moved
    }

    /// Moves a request to the dispatch list; it then counts as in the device.
    fn move_to_dispatch(&mut self, core: &mut QueueCore<H>, process: Slot, request: Slot) {
        let entry = &mut self.processes[process];
        entry.queue.remove(core, request);
        entry.in_flight.increment();
        let share = entry.share;
        debug_assert!(share != NIL, "a process with requests waits in a share");
        self.shares[share].in_flight.increment();
        let moved = &mut core.tables.requests[request];
        moved.owner = share;
        let [of_async, of_sync] = &mut self.in_flight;
        (if moved.is_sync() { of_sync } else { of_async }).increment();
        if self.tunables.first_form {
            core.dispatch_sort(request);
        } else {
            core.dispatch_append(request);
        }
    }

    /// Charges a process for a request, and its share by the group's weight.
    fn charge(&mut self, core: &mut QueueCore<H>, process: Slot, request: Slot) {
        let entry = &mut self.processes[process];
        let cost = self.tunables.cost(&core.tables.requests[request], entry.priority);
        entry.vios = entry.vios.wrapping_add(cost);
        let share = &mut self.shares[entry.share];
        let group = entry.share / CLASS_SLOTS;
        let weight = u64::from(core.tables.groups[group].weights().weight);
        let scaled = if weight == NORMAL_WEIGHT { cost } else { cost.saturating_mul(NORMAL_WEIGHT) / weight.max(1) };
        share.vios = share.vios.wrapping_add(scaled.max(1));
        core.note(|core| Note::Charge { queue: core.tables.contexts[process].pid, amount: cost });
    }

    /// Files a process that has requests again. A process that was idle starts at the floor; one
    /// with requests in the device was not idle.
    fn file(&mut self, core: &QueueCore<H>, process: Slot) {
        let share = self.share_of(core, process);
        let entry = &mut self.processes[process];
        if !(self.tunables.shares_deep() && entry.in_flight > 0) {
            entry.vios = self.shares[share].members.entry(entry.vios);
        }
        self.enter(core, process, share);
    }

    /// Files a process again after its vios, class or group have changed; or removes it if it has
    /// no more requests.
    fn refile(&mut self, core: &QueueCore<H>, process: Slot) {
        let Process { share, ref queue, leads_with_sync, .. } = self.processes[process];
        let plain = self.tunables.sync_preempt == SyncPreempt::Off && !leads_with_sync;
        if plain && !queue.is_empty() && share == self.share_of(core, process) {
            return self.reorder(process);
        }
        let before = self.leave(process);
        if !self.processes[process].queue.is_empty() {
            let share = self.share_of(core, process);
            self.enter(core, process, share);
        }
        self.settle(before);
    }

    /// Files a process again after its vios have changed, as [`refile`](Self::refile) does. Its
    /// share is the same as before unless groups are in use or priorities change.
    #[inline]
    fn refile_after_turn(&mut self, core: &QueueCore<H>, process: Slot) {
        let entry = &self.processes[process];
        let rank = if self.tunables.first_form { Class::BestEffort.rank() } else { entry.priority.class().rank() };
        let usual = self.tunables.sync_preempt == SyncPreempt::Off && !self.tunables.groups && !entry.leads_with_sync;
        if usual && !entry.queue.is_empty() && entry.share == Slot::from(rank) {
            self.reorder(process);
        } else {
            self.refile(core, process);
        }
    }

    /// Changes the position of a process with requests in its share.
    fn reorder(&mut self, process: Slot) {
        self.placements.increment();
        let entry = &mut self.processes[process];
        entry.order = self.placements;
        let share = entry.share;
        self.shares[share].members.refile::<H>(&mut self.process_nodes, process, entry.vios);
        self.settle(share);
    }

    /// Adds a process with the vios that it has spent. Vios spent in another group do not count
    /// here.
    fn enter(&mut self, core: &QueueCore<H>, process: Slot, share: Slot) {
        let (group, class) = (share / CLASS_SLOTS, class_index(share));
        let entry = &mut self.processes[process];
        debug_assert!(entry.share == NIL && !entry.queue.is_empty(), "a process enters once, with requests");
        let members = &mut self.shares[share].members;
        if entry.group != NIL && entry.group != group {
            entry.vios = members.floor();
        }
        self.placements.increment();
        (entry.share, entry.group, entry.order) = (share, group, self.placements);
        members.insert::<H>(&mut self.process_nodes, process, entry.vios);
        members.raise_floor::<H>(&self.process_nodes);
        if let Some(waiting) = self.waiting.get_mut(class) {
            waiting.increment();
        }
        self.note_lead(core, process);
        if !self.shares[share].waits {
            self.file_share(share);
        }
    }

    /// Removes a process from its share and returns the share; [`settle`](Self::settle) must
    /// follow.
    fn leave(&mut self, process: Slot) -> Slot {
        let entry = &mut self.processes[process];
        let share = core::mem::replace(&mut entry.share, NIL);
        debug_assert!(share != NIL, "a process that leaves is in a share");
        if core::mem::take(&mut entry.leads_with_sync) {
            self.shares[share].sync_first.remove(&mut self.sync_nodes, process);
        }
        self.shares[share].members.remove::<H>(&mut self.process_nodes, process);
        if let Some(waiting) = self.waiting.get_mut(class_index(share)) {
            waiting.decrement();
        }
        share
    }

    /// Updates whether the process leads with a sync request, if that is needed.
    #[inline]
    fn note_lead(&mut self, core: &QueueCore<H>, process: Slot) {
        if self.tunables.sync_preempt != SyncPreempt::Off || self.processes[process].leads_with_sync {
            self.update_lead(core, process);
        }
    }

    #[inline(never)]
    fn update_lead(&mut self, core: &QueueCore<H>, process: Slot) {
        let entry = &self.processes[process];
        let (share, vios, order) = (entry.share, entry.vios, entry.order);
        let wanted = self.tunables.sync_preempt != SyncPreempt::Off;
        let leads = wanted && core.tables.requests[entry.queue.oldest()].is_sync();
        if leads == entry.leads_with_sync || share == NIL {
            return;
        }
        self.processes[process].leads_with_sync = leads;
        let Fiops { processes, shares, sync_nodes, .. } = self;
        let tree = &mut shares[share].sync_first;
        if leads {
            // The same order as among all members.
            let precedes =
                |other: Slot, key: u64| is_below(vios, key) || (vios == key && is_below(order, processes[other].order));
            tree.insert_by(sync_nodes, process, vios, precedes);
        } else {
            tree.remove(sync_nodes, process);
        }
    }

    /// Files a share that has requests again, by the rule for processes.
    fn file_share(&mut self, share: Slot) {
        let entry = &mut self.shares[share];
        let [real_time, best_effort, idle] = &mut self.classes;
        let class = of_class(class_index(share), real_time, best_effort, idle);
        if !(self.tunables.shares_deep() && entry.in_flight > 0) {
            entry.vios = class.entry(entry.vios);
        }
        entry.waits = true;
        class.insert::<H>(&mut self.share_nodes, share, entry.vios);
        class.raise_floor::<H>(&self.share_nodes);
    }

    /// Updates the position of a share after a change of its members or vios.
    fn settle(&mut self, share: Slot) {
        let entry = &mut self.shares[share];
        entry.members.raise_floor::<H>(&self.process_nodes);
        let [real_time, best_effort, idle] = &mut self.classes;
        let class = of_class(class_index(share), real_time, best_effort, idle);
        debug_assert!(entry.waits, "a share with members waits");
        entry.waits = !entry.members.is_empty();
        if entry.waits {
            class.refile::<H>(&mut self.share_nodes, share, entry.vios);
        } else {
            class.remove::<H>(&mut self.share_nodes, share);
        }
        class.raise_floor::<H>(&self.share_nodes);
    }

    /// The share of a process now.
    fn share_of(&self, core: &QueueCore<H>, process: Slot) -> Slot {
        let first_form = self.tunables.first_form;
        let rank = if first_form { Class::BestEffort.rank() } else { self.processes[process].priority.class().rank() };
        let class = Slot::from(rank);
        let group = if self.tunables.groups { core.tables.contexts[process].group } else { ROOT };
        let share = group.saturating_mul(CLASS_SLOTS).saturating_add(class);
        // A group beyond the capacity of the storage counts as the root.
        if share < self.shares.capacity().min(self.share_nodes.capacity()) { share } else { class }
    }

    fn class(&self, class: usize) -> &ServiceTree {
        let [real_time, best_effort, idle] = &self.classes;
        of_class(class, real_time, best_effort, idle)
    }
}

/// The shares of a group, one per class.
fn shares_of(group: Slot) -> core::ops::Range<Slot> {
    let first = group.saturating_mul(CLASS_SLOTS);
    first..first.saturating_add(CLASS_SLOTS)
}

/// The index of a share's class.
fn class_index(share: Slot) -> usize {
    (share % CLASS_SLOTS) as usize
}

#[inline]
fn of_class<T>(class: usize, real_time: T, best_effort: T, idle: T) -> T {
    match class {
        0 => real_time,
        1 => best_effort,
        _ => idle,
    }
}
