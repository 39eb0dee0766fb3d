//! The disk with its request queue: bios in, completions out.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher};

use hoistway_core::{
    Bio, BlockLayer, ContextId, DeferredWork, Flags, GroupId, Kick, Next, Op, Owned, Priority, RequestId, RequestQueue,
    Reservation, ReserveError, SubmitError, Submitted, Tunable,
};
use hoistway_drive::{Access, Command, Completion, Drive, Phases, Status};

use crate::config::Plugging;
use crate::measure::DriveTime;
use crate::record::{HeadSample, Observer};
use crate::settings::group_switch;

use super::plug::Plug;
use super::slab::Slab;

/// The queue, the drive, and who submits to them.
pub(crate) struct Device<S: Observer> {
    queue: RequestQueue<Owned<S>>,
    drive: Drive,
    /// So many requests it is given at once.
    depth: u32,
    /// Requests in the drive, by the tag that they have there.
    in_flight: Slab<Started>,
    submitters: Vec<Submitter>,
    by_context: HashMap<ContextId, u32, BuildHasherDefault<DefaultHasher>>,
    /// Submitters that the queue's storage had no room for.
    refused: VecDeque<u32>,
    /// Submitters whose last held-back bio was taken.
    pub resumed: Vec<u32>,
    phases: Phases,
    busy_ns: u64,
    busy_since_ns: u64,
    /// When the drive last completed a request.
    pub answered_ns: u64,
    pub requests: u64,
    /// Bytes that the drive was asked for.
    pub bytes: u64,
    /// How often the drive went from one process's request to another's.
    pub turns: u64,
    last_pid: u32,
    head: Vec<HeadSample>,
    /// Reservations that were refused by an elevator that takes some: the process, and why.
    pub refused_reservations: Vec<(u32, ReserveError)>,
    /// Where bios are held back.
    plugging: Plugging,
    /// What a task held back is being submitted: the queue is run when all of it is in.
    flushing: bool,
    /// Whether reads, and writes, have filled the pool so far that those who can wait should.
    congested: [bool; 2],
    /// Writes have stopped being congested since this was looked at last.
    pub relieved: bool,
    /// What went wrong and cannot.
    pub defect: Option<String>,
}

/// A request in the drive.
#[derive(Clone, Copy, Debug)]
struct Started {
    id: RequestId,
    at_ns: u64,
}

/// A task as the queue knows it, and the bios that it could not submit yet.
#[derive(Debug)]
struct Submitter {
    context: ContextId,
    backlog: VecDeque<Bio>,
    /// What is held back while a call submits, if one does.
    plug: Option<Plug>,
}

impl<S: Observer> Device<S> {
    pub fn new(queue: RequestQueue<Owned<S>>, drive: Drive, depth: u32, plugging: Plugging) -> Self {
        Device {
            queue,
            drive,
            depth,
            in_flight: Slab::new(),
            submitters: Vec::new(),
            by_context: HashMap::default(),
            refused: VecDeque::new(),
            resumed: Vec::new(),
            phases: Phases::default(),
            busy_ns: 0,
            busy_since_ns: 0,
            answered_ns: 0,
            requests: 0,
            bytes: 0,
            turns: 0,
            last_pid: 0,
            head: Vec::new(),
            refused_reservations: Vec::new(),
            plugging,
            flushing: false,
            congested: [false; 2],
            relieved: false,
            defect: None,
        }
    }

    /// Makes the next task known; tasks are numbered in the order of these calls. Answers whether there was room.
    pub fn add_submitter(&mut self, pid: u32, priority: Priority, nice: i8, group: Option<GroupId>) -> bool {
        let Ok(context) = self.queue.create_context(pid, priority, nice) else { return false };
        let moved = group.map(|group| self.queue.move_context(context, group, 0));
        if !matches!(moved, Some(Ok(_))) {
            return false;
        }
        self.by_context.insert(context, self.submitters.len() as u32);
        self.submitters.push(Submitter { context, backlog: VecDeque::new(), plug: None });
        true
    }

    /// Whether the elevator, as it is tuned, divides the disk among groups.
    pub fn divides_by_groups(&self) -> bool {
        let switch = group_switch(self.queue.kind());
        let is_off =
            |(tunable, value): (&Tunable, i64)| switch.is_some_and(|known| known.name == tunable.name) && value == 0;
        self.queue.kind().info().groups && !self.queue.tunables().any(is_off)
    }

    /// A task reserves bandwidth, where the elevator takes reservations; one that it refuses is written down, and the task goes on without.
    pub fn reserve(&mut self, task: u32, reservation: Reservation, now_ns: u64) {
        let context = self.context(task);
        match self.queue.reserve(context, reservation, now_ns) {
            Ok(kick) => self.settle(kick, now_ns),
            Err(ReserveError::NotSupported) => {}
            Err(refusal) => {
                let pid = self.queue.context(context).map_or(0, |context| context.pid());
                self.refused_reservations.push((pid, refusal));
            }
        }
    }

    /// The context that a task's bios carry.
    pub fn context(&self, task: u32) -> ContextId {
        self.submitters[task as usize].context
    }

    /// Whether bios of a task are held back: it sleeps until there is room.
    #[inline]
    pub fn is_held_back(&self, task: u32) -> bool {
        !self.submitters[task as usize].backlog.is_empty()
    }

    /// A task submits a bio; when there is no room for it, it and those after it are submitted later.
    pub fn submit(&mut self, task: u32, bio: Bio, now_ns: u64) {
        if let (Plugging::Task { requests, kib }, Some(plug)) =
            (self.plugging, &mut self.submitters[task as usize].plug)
        {
            let (count, sectors) = plug.add(bio, self.queue.config());
            if count >= requests || (kib > 0 && sectors >= kib.saturating_mul(2)) {
                self.flush_plug(task, now_ns);
            }
            return;
        }
        self.submit_now(task, bio, now_ns);
    }

    /// A task begins a call that submits: what it submits is held back until [`Self::finish_plug`], where tasks hold back.
    pub fn plug(&mut self, task: u32) {
        if matches!(self.plugging, Plugging::Task { .. }) {
            self.submitters[task as usize].plug.get_or_insert_default();
        }
    }

    /// The call is over.
    pub fn finish_plug(&mut self, task: u32, now_ns: u64) {
        self.flush_plug(task, now_ns);
        self.submitters[task as usize].plug = None;
    }

    /// Submits what is held back, and runs the queue then.
    fn flush_plug(&mut self, task: u32, now_ns: u64) {
        let Some(plug) = self.submitters[task as usize].plug.as_mut() else { return };
        let bios = plug.take();
        self.flushing = true;
        for bio in bios {
            self.submit_now(task, bio, now_ns);
        }
        self.flushing = false;
        self.run(now_ns);
        self.work(now_ns);
    }

    /// Whether the pool of requests of this direction is nearly used up. It is from seven eighths on, until fewer than thirteen sixteenths
    /// are used; the multi-queue layer does not say.
    pub fn is_congested(&self, op: Op) -> bool {
        self.congested[usize::from(op != Op::Read)]
    }

    fn watch_congestion(&mut self) {
        if self.queue.config().layer == BlockLayer::V6_1 {
            return;
        }
        for op in [Op::Read, Op::Write] {
            let (used, Some(size)) = self.queue.pool_use(op) else { return };
            let congested = &mut self.congested[usize::from(op != Op::Read)];
            if used > size - size / 8 {
                *congested = true;
            } else if *congested && used + 1 < size - size / 8 - size / 16 {
                *congested = false;
                self.relieved |= op == Op::Write;
            }
        }
    }

    fn submit_now(&mut self, task: u32, bio: Bio, now_ns: u64) {
        if self.is_held_back(task) {
            self.submitters[task as usize].backlog.push_back(bio);
            return;
        }
        let answer = self.queue.submit(bio, now_ns);
        self.submitted(task, bio, answer, now_ns);
        self.work(now_ns);
    }

    /// A task is going to wait for what it submitted: whatever the queue holds back goes to the drive.
    pub fn unplug(&mut self, now_ns: u64) {
        let kick = self.queue.unplug_for_waiter(now_ns);
        self.settle(kick, now_ns);
    }

    /// When [`Self::drive_event`] has to be called.
    #[inline]
    pub fn next_drive_event(&self) -> Option<u64> {
        self.drive.next_event_ns()
    }

    /// The drive has done something; when it has finished a request, the tokens of its bios are added to `tokens`, and the answer is how it
    /// ended: all of them did so.
    pub fn drive_event(&mut self, now_ns: u64, tokens: &mut Vec<u64>) -> Option<Status> {
        let completion = self.drive.poll(now_ns)?;
        let started = self.in_flight.remove(completion.tag);
        self.completed(&started, &completion, now_ns);
        self.complete(started.id, now_ns, tokens);
        Some(completion.status)
    }

    /// How many commands the drive will never answer; `None` when it has something to do.
    pub fn unanswered(&self) -> Option<u32> {
        let commands = self.in_flight.len();
        (commands > 0 && self.drive.next_event_ns().is_none()).then_some(commands)
    }

    /// Where requests are, as the end of a sentence.
    pub fn whereabouts(&self) -> String {
        let kept =
            if self.queue.is_empty() { "no request waits in the elevator" } else { "requests wait in the elevator" };
        format!("{kept}, {} are in the drive", self.in_flight.len())
    }

    fn completed(&mut self, started: &Started, completion: &Completion, now_ns: u64) {
        add(&mut self.phases, &completion.service.phases);
        self.requests += 1;
        self.answered_ns = now_ns;
        if self.in_flight.is_empty() {
            self.busy_ns += now_ns - self.busy_since_ns;
        }
        debug_assert_eq!(completion.service.phases.total_ns(), now_ns - started.at_ns, "the phases are the whole time");
    }

    fn complete(&mut self, id: RequestId, now_ns: u64, tokens: &mut Vec<u64>) {
        match self.queue.complete(id, now_ns, |token| tokens.push(token)) {
            Ok(kick) => self.settle(kick, now_ns),
            Err(stale) => self.broken(format!("a completion was refused: {stale:?}")),
        }
        self.watch_congestion();
        while let Some(task) = self.refused.pop_front() {
            if !self.retry(task, false, now_ns) {
                break;
            }
        }
        self.work(now_ns);
    }

    /// When [`Self::timer`] has to be called.
    #[inline]
    pub fn next_timer(&self) -> Option<u64> {
        self.queue.next_timer()
    }

    pub fn timer(&mut self, now_ns: u64) {
        let kick = self.queue.timer(now_ns);
        self.settle(kick, now_ns);
    }

    /// A task has ended.
    pub fn exit(&mut self, task: u32, now_ns: u64) {
        match self.queue.exit_context(self.context(task), now_ns) {
            Ok(kick) => self.settle(kick, now_ns),
            Err(stale) => self.broken(format!("the exit of task {task} was refused: {stale:?}")),
        }
    }

    /// Where the time from `from_ns` to `now_ns` went. Requests are not begun before `from_ns`; what is under way at the end counts as
    /// what was served before it did.
    pub fn time(&self, from_ns: u64, now_ns: u64) -> DriveTime {
        let phases = self.phases;
        let under_way = if self.in_flight.is_empty() { 0 } else { now_ns - self.busy_since_ns };
        let busy_ns = self.busy_ns + under_way;
        let total_ns = phases.service_ns().max(1);
        // A drive that serves several requests at once spends their times side by side.
        let share = |phase_ns: u64| match total_ns > busy_ns {
            true => (u128::from(phase_ns) * u128::from(busy_ns) / u128::from(total_ns)) as u64,
            false => phase_ns,
        };
        let time = DriveTime {
            overhead: share(phases.overhead_ns),
            seek: share(phases.seek_ns),
            rotation: share(phases.rotation_ns),
            transfer: share(phases.transfer_ns),
            idle: 0,
        };
        let accounted = time.overhead + time.seek + time.rotation + time.transfer;
        DriveTime { idle: now_ns.saturating_sub(from_ns).saturating_sub(accounted), ..time }
    }

    /// Takes the recording out.
    pub fn recording(&mut self, now_ns: u64) -> crate::record::Recording {
        let slices = self.queue.sink_mut().slices(now_ns);
        crate::record::Recording { head: std::mem::take(&mut self.head), slices }
    }

    fn submitted(&mut self, task: u32, bio: Bio, answer: Result<(Submitted, Kick), SubmitError>, now_ns: u64) -> bool {
        let taken = match answer {
            Ok((Submitted::Asleep, kick)) => {
                self.kicked(kick, now_ns);
                false
            }
            Ok((_, kick)) => {
                self.kicked(kick, now_ns);
                self.watch_congestion();
                if !self.queue.config().plugging && !self.flushing {
                    // Without plugs nothing else would run a queue that was empty.
                    self.run(now_ns);
                }
                true
            }
            Err(SubmitError::Full) => {
                self.refused.push_back(task);
                false
            }
            Err(error) => {
                self.broken(format!(
                    "a bio of {} sectors at sector {} was refused: {error:?}",
                    bio.sectors, bio.sector
                ));
                true
            }
        };
        if !taken {
            self.submitters[task as usize].backlog.push_front(bio);
        }
        taken
    }

    /// Submits what is held back of a task, as far as there is room. Answers whether all of it was taken.
    fn retry(&mut self, task: u32, mut woken: bool, now_ns: u64) -> bool {
        while let Some(bio) = self.submitters[task as usize].backlog.pop_front() {
            let answer = if woken { self.queue.resubmit(bio, now_ns) } else { self.queue.submit(bio, now_ns) };
            woken = false;
            if !self.submitted(task, bio, answer, now_ns) {
                return false;
            }
        }
        self.resumed.push(task);
        true
    }

    fn settle(&mut self, kick: Kick, now_ns: u64) {
        self.kicked(kick, now_ns);
        self.work(now_ns);
    }

    /// Does what the queue has put off.
    fn work(&mut self, now_ns: u64) {
        while let Some(work) = self.queue.next_work() {
            match work {
                DeferredWork::Run => self.run(now_ns),
                DeferredWork::Unplug => {}
                DeferredWork::Wake(context) => {
                    if let Some(task) = self.by_context.get(&context).copied() {
                        self.retry(task, true, now_ns);
                    }
                }
            }
        }
    }

    #[inline]
    fn kicked(&mut self, kick: Kick, now_ns: u64) {
        if kick == Kick::Run {
            self.run(now_ns);
        }
    }

    /// Gives the drive requests until it is full or none comes.
    fn run(&mut self, now_ns: u64) {
        while self.in_flight.len() < self.depth && self.defect.is_none() {
            let Next::Request(id) = self.queue.next(now_ns) else { return };
            self.start(id, now_ns);
        }
    }

    fn start(&mut self, id: RequestId, now_ns: u64) {
        let Some(request) = self.queue.request(id) else {
            return self.broken(format!("request {id:?} is not there"));
        };
        let (sector, sectors) = (request.sector(), request.sectors());
        let (op, command) = (request.op(), command_of(request.op(), sector, sectors, request.flags()));
        if self.in_flight.is_empty() {
            self.busy_since_ns = now_ns;
        }
        let tag = self.in_flight.insert(Started { id, at_ns: now_ns });
        if let Err(error) = self.drive.submit(now_ns, tag, &command) {
            return self.broken(format!("the drive refused a request: {error}"));
        }
        if matches!(op, Op::Flush | Op::Discard) {
            return;
        }
        let pid = self.queue.context_of(id).map_or(0, |context| context.pid());
        self.bytes += u64::from(sectors) * 512;
        if pid != self.last_pid {
            self.last_pid = pid;
            self.turns += 1;
        }
        if S::ENABLED {
            self.head.push(HeadSample { at_ns: now_ns, sector, pid });
        }
    }

    fn broken(&mut self, problem: String) {
        if self.defect.is_none() {
            self.defect = Some(problem);
        }
    }
}

fn add(sum: &mut Phases, more: &Phases) {
    sum.overhead_ns += more.overhead_ns;
    sum.seek_ns += more.seek_ns;
    sum.rotation_ns += more.rotation_ns;
    sum.transfer_ns += more.transfer_ns;
}

/// A request as the drive is told it.
fn command_of(op: Op, sector: u64, sectors: u32, flags: Flags) -> Command {
    let fua = flags.has(Flags::FUA);
    match op {
        Op::Read => Command::Transfer { access: Access { op: hoistway_drive::Op::Read, sector, sectors }, fua },
        Op::Write => Command::Transfer { access: Access { op: hoistway_drive::Op::Write, sector, sectors }, fua },
        Op::Flush => Command::Flush,
        Op::Discard => Command::Discard { sector, sectors },
    }
}
