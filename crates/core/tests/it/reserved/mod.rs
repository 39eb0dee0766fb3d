//! A simulation for reserved bandwidth: processes with a permanent backlog or a fixed pace, and a
//! device with a transfer rate and a fixed positioning time. A request that begins at the end of
//! the previous one needs no positioning.

use hoistway_core::{
    Bio, Capacity, ClockConfig, ContextId, DeferredWork, ElevatorStorage, Event, GroupWeights, Kick, Kind, Next, Note,
    Op, Owned, Priority, QueueConfig, RequestId, RequestQueue, Reservation, ReservationSummary, ReserveError, Sink,
    Storage, Submitted,
};

pub const SECOND_NS: u64 = 1_000_000_000;
const CAPACITY: Capacity = Capacity { requests: 4096, contexts: 32, merged_bios: 0, groups: 8 };

/// A sink that keeps the notes.
#[derive(Default)]
pub struct Notes(pub Vec<(u64, Note)>);

impl Sink for Notes {
    fn record(&mut self, now_ns: u64, event: Event) {
        if let Event::Note(note) = event {
            self.0.push((now_ns, note));
        }
    }
}

/// The performance of a device.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    pub bytes_per_second: u64,
    pub position_ns: u64,
}

/// The pace at which a process submits requests.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// A permanent backlog of this number of outstanding requests.
    Greedy(u64),
    /// One request per this time in ns, even if earlier ones are outstanding.
    Every(u64),
    /// One outstanding request, submitted this time in ns after the previous completion.
    Thinks(u64),
}

#[derive(Clone, Copy, Debug)]
pub struct Process {
    pub pace: Pace,
    pub sectors: u32,
    pub first_sector: u64,
    /// Whether requests are at random positions in a region of 2^22 sectors; otherwise consecutive.
    pub random: bool,
    pub from_ns: u64,
}

/// A served request.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    pub process: usize,
    pub sector: u64,
    pub bytes: u64,
    pub submitted_ns: u64,
    pub issued_ns: u64,
    pub done_ns: u64,
    /// The number of sweeps that had begun when it was issued.
    pub sweep: u64,
}

struct Submitter {
    process: Process,
    context: ContextId,
    next_sector: u64,
    due_ns: Option<u64>,
    outstanding: u64,
    random: u64,
}

pub struct ReservationSimulation {
    pub queue: RequestQueue<Owned<Notes>>,
    pub device: Device,
    pub now_ns: u64,
    pub services: Vec<Service>,
    /// Idle periods of the device (start and end in ns), with the processes that had requests
    /// queued.
    pub idle: Vec<(u64, u64, Vec<usize>)>,
    submitters: Vec<Submitter>,
    busy: Option<(RequestId, Service)>,
    head: u64,
    idle_since: Option<(u64, Vec<usize>)>,
    sweeps: u64,
    seen_notes: usize,
}

impl ReservationSimulation {
    /// Creates a simulation with reservations over cfq-v3.
    pub fn new(device: Device) -> ReservationSimulation {
        ReservationSimulation::over(Kind::CfqBw, device)
    }

    /// Creates a simulation with reservations over an elevator, in the block layer of its kernel.
    pub fn over(kind: Kind, device: Device) -> ReservationSimulation {
        let config = QueueConfig {
            layer: kind.info().layer,
            clock: ClockConfig::default(),
            plugging: false,
            merging: false,
            nr_requests: None,
            ..QueueConfig::default()
        };
        let (storage, elevator) = (Storage::owned(CAPACITY), ElevatorStorage::owned_reserving(kind, CAPACITY));
        let mut queue = RequestQueue::new(config, storage, elevator, Notes::default(), 0);
        let set = [
            ("device_bandwidth", device.bytes_per_second / 1000),
            ("device_position", device.position_ns / 1000),
            ("device_return", 0),
        ];
        for (name, value) in set {
            queue.set_tunable(name, value as i64).expect("in range");
        }
        ReservationSimulation {
            queue,
            device,
            now_ns: 0,
            services: Vec::new(),
            idle: Vec::new(),
            submitters: Vec::new(),
            busy: None,
            head: 0,
            idle_since: None,
            sweeps: 0,
            seen_notes: 0,
        }
    }

    pub fn add(&mut self, process: Process) -> usize {
        let number = self.submitters.len();
        let context = self.queue.create_context(number as u32, Priority::UNSET, 0).expect("few processes");
        let (next_sector, due_ns) = (process.first_sector, Some(process.from_ns));
        let random = 0x9E37_79B9_7F4A_7C15 ^ (number as u64) << 7;
        self.submitters.push(Submitter { process, context, next_sector, due_ns, outstanding: 0, random });
        number
    }

    pub fn reserve(&mut self, process: usize, reservation: Reservation) -> Result<Reservation, ReserveError> {
        let context = self.submitters[process].context;
        let kick = self.queue.reserve(context, reservation, self.now_ns)?;
        assert_eq!(kick, Kick::Quiet, "no request is queued yet");
        Ok(self.queue.reservation(context).expect("just reserved"))
    }

    /// Moves these processes to a new group and reserves bandwidth for the group.
    pub fn reserve_group(
        &mut self,
        processes: &[usize],
        reservation: Reservation,
    ) -> Result<Reservation, ReserveError> {
        let group = self.queue.create_group(self.queue.root_group(), GroupWeights::default(), self.now_ns);
        let group = group.expect("few groups");
        for &process in processes {
            let moved = self.queue.move_context(self.submitters[process].context, group, self.now_ns);
            assert!(moved.is_ok(), "a new process can be moved");
        }
        let kick = self.queue.reserve_group(group, reservation, self.now_ns)?;
        assert_eq!(kick, Kick::Quiet, "no request is queued yet");
        Ok(self.queue.group_reservation(group).expect("just reserved"))
    }

    /// Turns off the idling of the elevator, whatever its tunable is named.
    pub fn never_idle(&mut self) {
        for name in ["slice_idle", "group_idle", "antic_expire", "wait"] {
            let _ = self.queue.set_tunable(name, 0);
        }
    }

    pub fn reserved(&self) -> ReservationSummary {
        self.queue.reserved().expect("a bandwidth class")
    }

    pub fn run(&mut self, until_ns: u64) {
        while let Some(at_ns) = self.next_event().filter(|&at_ns| at_ns <= until_ns) {
            self.now_ns = at_ns;
            if self.busy.is_some_and(|(_, service)| service.done_ns <= at_ns) {
                self.complete();
            }
            while self.queue.next_timer().is_some_and(|timer_ns| timer_ns <= at_ns) {
                let _ = self.queue.timer(at_ns);
            }
            self.submit_due();
            self.run_device();
        }
        self.now_ns = until_ns;
    }

    /// The bytes of a process's requests that completed between two times.
    pub fn served(&self, process: usize, from_ns: u64, until_ns: u64) -> u64 {
        let within =
            |service: &&Service| service.process == process && service.done_ns > from_ns && service.done_ns <= until_ns;
        self.services.iter().filter(within).map(|service| service.bytes).sum()
    }

    pub fn notes(&self) -> &[(u64, Note)] {
        &self.queue.sink().0
    }

    fn next_event(&self) -> Option<u64> {
        let device = self.busy.map(|(_, service)| service.done_ns);
        let due = self.submitters.iter().filter_map(|submitter| submitter.due_ns);
        device.into_iter().chain(self.queue.next_timer()).chain(due).map(|at_ns| at_ns.max(self.now_ns)).min()
    }

    fn complete(&mut self) {
        let (id, service) = self.busy.take().expect("the device has a request");
        let _ = self.queue.complete(id, self.now_ns, |_| ()).expect("it was issued");
        self.services.push(service);
        let submitter = &mut self.submitters[service.process];
        submitter.outstanding -= 1;
        match submitter.process.pace {
            Pace::Greedy(_) => submitter.due_ns = Some(self.now_ns),
            Pace::Thinks(ns) => submitter.due_ns = Some(self.now_ns + ns),
            Pace::Every(_) => {}
        }
    }

    fn submit_due(&mut self) {
        for number in 0..self.submitters.len() {
            while self.submitters[number].due_ns.is_some_and(|due_ns| due_ns <= self.now_ns) {
                self.submit(number);
                let submitter = &mut self.submitters[number];
                submitter.due_ns = match submitter.process.pace {
                    Pace::Greedy(most) if submitter.outstanding < most => Some(self.now_ns),
                    Pace::Greedy(_) | Pace::Thinks(_) => None,
                    Pace::Every(ns) => submitter.due_ns.map(|due_ns| due_ns + ns),
                };
            }
        }
    }

    fn submit(&mut self, number: usize) {
        let submitter = &mut self.submitters[number];
        let Process { sectors, first_sector, random, .. } = submitter.process;
        if random {
            // Marsaglia's xorshift (2003).
            submitter.random ^= submitter.random << 13;
            submitter.random ^= submitter.random >> 7;
            submitter.random ^= submitter.random << 17;
            submitter.next_sector = first_sector + submitter.random % (1 << 22);
        }
        let bio = Bio::new(number as u64, submitter.context, Op::Read, submitter.next_sector, sectors);
        submitter.next_sector += u64::from(sectors);
        submitter.outstanding += 1;
        let (submitted, _) = self.queue.submit(bio, self.now_ns).expect("free entries");
        assert!(matches!(submitted, Submitted::Queued(_)));
    }

    fn run_device(&mut self) {
        loop {
            while self.busy.is_none() {
                let Next::Request(id) = self.queue.next(self.now_ns) else { break };
                self.start(id);
            }
            match self.queue.next_work() {
                None => break,
                Some(DeferredWork::Wake(_)) => panic!("no process sleeps"),
                Some(_) => {}
            }
        }
        match (&self.busy, &self.idle_since) {
            (None, None) => {
                let queued =
                    (0..self.submitters.len()).filter(|&number| self.submitters[number].outstanding > 0).collect();
                self.idle_since = Some((self.now_ns, queued));
            }
            (Some(_), Some((since_ns, queued))) => {
                self.idle.push((*since_ns, self.now_ns, queued.clone()));
                self.idle_since = None;
            }
            (None, Some((since_ns, queued))) => {
                let still =
                    (0..self.submitters.len()).filter(|&number| self.submitters[number].outstanding > 0).collect();
                if *queued != still {
                    self.idle.push((*since_ns, self.now_ns, queued.clone()));
                    self.idle_since = Some((self.now_ns, still));
                }
            }
            (Some(_), None) => {}
        }
    }

    fn start(&mut self, id: RequestId) {
        let notes = &self.queue.sink().0;
        let begun = notes[self.seen_notes..].iter().filter(|(_, note)| matches!(note, Note::SweepBegun { .. })).count();
        (self.sweeps, self.seen_notes) = (self.sweeps + begun as u64, notes.len());
        let request = self.queue.request(id).expect("just issued");
        let (sector, bytes) = (request.sector(), u64::from(request.sectors()) * 512);
        let positioning_ns = if sector == self.head { 0 } else { self.device.position_ns };
        let transfer_ns = bytes * SECOND_NS / self.device.bytes_per_second;
        self.head = request.end();
        let service = Service {
            process: request.token() as usize,
            sector,
            bytes,
            submitted_ns: request.submitted_ns(),
            issued_ns: self.now_ns,
            done_ns: self.now_ns + positioning_ns + transfer_ns,
            sweep: self.sweeps,
        };
        self.busy = Some((id, service));
    }
}
