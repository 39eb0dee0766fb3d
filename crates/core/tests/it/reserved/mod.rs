//! A small world for reserved bandwidth: processes that are greedy or keep a pace, and a device
//! that takes X bytes a second and a fixed time for each request that does not follow on the one
//! before.

use hoistway_core::{
    Bio, Capacity, ClockConfig, ContextId, DeferredWork, ElevatorStorage, Event, GroupWeights, Kick, Kind, Next, Note,
    Op, Owned, Priority, QueueConfig, RequestId, RequestQueue, Reservation, ReservationSummary, ReserveError, Sink,
    Storage, Submitted,
};

pub const SECOND_NS: u64 = 1_000_000_000;
const CAPACITY: Capacity = Capacity { requests: 4096, contexts: 32, merged_bios: 0, groups: 8 };

/// Keeps the notes.
#[derive(Default)]
pub struct Notes(pub Vec<(u64, Note)>);

impl Sink for Notes {
    fn record(&mut self, now_ns: u64, event: Event) {
        if let Event::Note(note) = event {
            self.0.push((now_ns, note));
        }
    }
}

/// What a device can do.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    pub bytes_per_second: u64,
    pub position_ns: u64,
}

/// How a process asks.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// It always has so many requests outstanding.
    Greedy(u64),
    /// One request each so many ns, whatever has become of those before.
    Every(u64),
    /// One after the other, each so many ns after the one before was done.
    Thinks(u64),
}

#[derive(Clone, Copy, Debug)]
pub struct Process {
    pub pace: Pace,
    pub sectors: u32,
    pub first_sector: u64,
    /// Requests lie anywhere in a region of 2^22 sectors, and not one behind the other.
    pub random: bool,
    pub from_ns: u64,
}

/// A request's service.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    pub process: usize,
    pub sector: u64,
    pub bytes: u64,
    pub submitted_ns: u64,
    pub issued_ns: u64,
    pub done_ns: u64,
    /// How many sweeps had begun when it was issued.
    pub sweep: u64,
}

struct Asking {
    process: Process,
    context: ContextId,
    next_sector: u64,
    due_ns: Option<u64>,
    outstanding: u64,
    random: u64,
}

pub struct World {
    pub queue: RequestQueue<Owned<Notes>>,
    pub device: Device,
    pub now_ns: u64,
    pub services: Vec<Service>,
    /// Times for which the device was idle, and the processes that had requests queued then.
    pub idle: Vec<(u64, u64, Vec<usize>)>,
    asking: Vec<Asking>,
    busy: Option<(RequestId, Service)>,
    head: u64,
    idle_since: Option<(u64, Vec<usize>)>,
    sweeps: u64,
    seen_notes: usize,
}

impl World {
    /// With reservations over cfq-v3.
    pub fn new(device: Device) -> World {
        World::over(Kind::CfqBw, device)
    }

    /// With reservations over an elevator, in the block layer that it worked in.
    pub fn over(kind: Kind, device: Device) -> World {
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
        World {
            queue,
            device,
            now_ns: 0,
            services: Vec::new(),
            idle: Vec::new(),
            asking: Vec::new(),
            busy: None,
            head: 0,
            idle_since: None,
            sweeps: 0,
            seen_notes: 0,
        }
    }

    pub fn add(&mut self, process: Process) -> usize {
        let number = self.asking.len();
        let context = self.queue.create_context(number as u32, Priority::UNSET, 0).expect("few processes");
        let (next_sector, due_ns) = (process.first_sector, Some(process.from_ns));
        let random = 0x9E37_79B9_7F4A_7C15 ^ (number as u64) << 7;
        self.asking.push(Asking { process, context, next_sector, due_ns, outstanding: 0, random });
        number
    }

    pub fn reserve(&mut self, process: usize, reservation: Reservation) -> Result<Reservation, ReserveError> {
        let context = self.asking[process].context;
        let kick = self.queue.reserve(context, reservation, self.now_ns)?;
        assert_eq!(kick, Kick::Quiet, "nothing waits yet");
        Ok(self.queue.reservation(context).expect("just reserved"))
    }

    /// Puts these processes into a group of their own and reserves for all of them together.
    pub fn reserve_group(
        &mut self,
        processes: &[usize],
        reservation: Reservation,
    ) -> Result<Reservation, ReserveError> {
        let group = self.queue.create_group(self.queue.root_group(), GroupWeights::default(), self.now_ns);
        let group = group.expect("few groups");
        for &process in processes {
            let moved = self.queue.move_context(self.asking[process].context, group, self.now_ns);
            assert!(moved.is_ok(), "a new process can be moved");
        }
        let kick = self.queue.reserve_group(group, reservation, self.now_ns)?;
        assert_eq!(kick, Kick::Quiet, "nothing waits yet");
        Ok(self.queue.group_reservation(group).expect("just reserved"))
    }

    /// Does not keep the disk idle, in elevators that do.
    pub fn never_idle(&mut self) {
        for name in ["slice_idle", "group_idle", "antic_expire"] {
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
            self.ask();
            self.offer();
        }
        self.now_ns = until_ns;
    }

    /// Bytes that a process was served between two times, by completion.
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
        let due = self.asking.iter().filter_map(|asking| asking.due_ns);
        device.into_iter().chain(self.queue.next_timer()).chain(due).map(|at_ns| at_ns.max(self.now_ns)).min()
    }

    fn complete(&mut self) {
        let (id, service) = self.busy.take().expect("the device has a request");
        let _ = self.queue.complete(id, self.now_ns, |_| ()).expect("it was issued");
        self.services.push(service);
        let asking = &mut self.asking[service.process];
        asking.outstanding -= 1;
        match asking.process.pace {
            Pace::Greedy(_) => asking.due_ns = Some(self.now_ns),
            Pace::Thinks(ns) => asking.due_ns = Some(self.now_ns + ns),
            Pace::Every(_) => {}
        }
    }

    fn ask(&mut self) {
        for number in 0..self.asking.len() {
            while self.asking[number].due_ns.is_some_and(|due_ns| due_ns <= self.now_ns) {
                self.submit(number);
                let asking = &mut self.asking[number];
                asking.due_ns = match asking.process.pace {
                    Pace::Greedy(most) if asking.outstanding < most => Some(self.now_ns),
                    Pace::Greedy(_) | Pace::Thinks(_) => None,
                    Pace::Every(ns) => asking.due_ns.map(|due_ns| due_ns + ns),
                };
            }
        }
    }

    fn submit(&mut self, number: usize) {
        let asking = &mut self.asking[number];
        let Process { sectors, first_sector, random, .. } = asking.process;
        if random {
            // Marsaglia's xorshift (2003).
            asking.random ^= asking.random << 13;
            asking.random ^= asking.random >> 7;
            asking.random ^= asking.random << 17;
            asking.next_sector = first_sector + asking.random % (1 << 22);
        }
        let bio = Bio::new(number as u64, asking.context, Op::Read, asking.next_sector, sectors);
        asking.next_sector += u64::from(sectors);
        asking.outstanding += 1;
        let (submitted, _) = self.queue.submit(bio, self.now_ns).expect("room enough");
        assert!(matches!(submitted, Submitted::Queued(_)));
    }

    fn offer(&mut self) {
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
                let queued = (0..self.asking.len()).filter(|&number| self.asking[number].outstanding > 0).collect();
                self.idle_since = Some((self.now_ns, queued));
            }
            (Some(_), Some((since_ns, queued))) => {
                self.idle.push((*since_ns, self.now_ns, queued.clone()));
                self.idle_since = None;
            }
            (None, Some((since_ns, queued))) => {
                let still = (0..self.asking.len()).filter(|&number| self.asking[number].outstanding > 0).collect();
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
