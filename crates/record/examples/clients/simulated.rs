//! Runs the clients on a device in virtual time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::PoisonError;

use hoistway_blockdev::{BlockRequest, Device, DeviceDriver, DeviceId};
use hoistway_config::{BackendConfig, DeviceConfig};
use hoistway_drive::Profile;
use hoistway_qos::{DiskQueueConfig, MemberId, Recorder, RequestOp};
use hoistway_reactor::{Buffer, Engine, Virtual};
use hoistway_record::recording::DirectRecorder;

use super::workloads::Client;
use crate::{ClientResult, Request};

/// A running client.
struct RunningClient<'a> {
    client: &'a Client,
    member: MemberId,
    /// The numbers of submitted and of completed requests.
    submitted: u64,
    completed: u64,
    /// The number of ticks of its timer.
    ticks: u64,
    result: ClientResult,
}

struct Testbed<'a> {
    device: Device,
    clients: Vec<RunningClient<'a>>,
    /// The next submissions: time, order, client.
    wakes: BinaryHeap<Reverse<(u64, u64, usize)>>,
    woken: u64,
    /// The submission time of each request in ns, by ticket.
    sent_ns: HashMap<u64, u64>,
    engine: Virtual,
    /// Time in us by which each doubling of the idle time delays a client.
    wake_us: u64,
    /// The last submission or completion, and the idle time before it, in ns.
    active_ns: u64,
    idle_ns: u64,
}

/// The idle time in ns up to which a processor wakes up at once.
const AWAKE_NS: f64 = 100_000.0;

/// Runs the clients for a number of seconds.
pub fn run(clients: &[Client], request: &Request) -> Result<Vec<ClientResult>, String> {
    let profile = Profile::builtin(&request.drive).ok_or_else(|| format!("there is no drive `{}`", request.drive))?;
    let config = DeviceConfig {
        queue: DiskQueueConfig { elevator: Some(request.elevator), ..DiskQueueConfig::new("disk") },
        backend: BackendConfig::Null { bytes: 1 << 40 },
        drive: Some(profile),
    };
    let mut engine = Virtual::default();
    let device = Device::new(DeviceId(0), &config, &mut engine, 0).map_err(|error| error.to_string())?;
    let mut testbed = Testbed {
        device,
        clients: Vec::new(),
        wakes: BinaryHeap::new(),
        woken: 0,
        sent_ns: HashMap::new(),
        engine,
        wake_us: request.wake_us,
        active_ns: 0,
        idle_ns: 0,
    };
    for client in clients {
        testbed.join(client)?;
    }
    // After all have joined: the name of a member would replace the one set here.
    let mut outcome = None;
    if let Some(path) = &request.record {
        let (mut recorder, written) =
            DirectRecorder::start(path).map_err(|error| format!("{}: {error}", path.display()))?;
        for (number, client) in (1..).zip(clients) {
            recorder.name(number, client.name);
        }
        testbed.device.set_recorder(Some(Box::new(recorder)));
        outcome = Some(written);
    }
    testbed.run_until(request.seconds * 1_000_000_000)?;
    testbed.device.set_recorder(None);
    if let Some(outcome) = outcome
        && let Err(error) = &*outcome.lock().unwrap_or_else(PoisonError::into_inner)
    {
        return Err(format!("the recording: {error}"));
    }
    Ok(testbed.clients.into_iter().map(|client| client.result).collect())
}

impl<'a> Testbed<'a> {
    fn join(&mut self, client: &'a Client) -> Result<(), String> {
        let member = self.device.scheduler_mut().join(None, None, 0).map_err(|error| error.to_string())?;
        self.clients.push(RunningClient {
            client,
            member,
            submitted: 0,
            completed: 0,
            ticks: 0,
            result: ClientResult::default(),
        });
        let index = self.clients.len() - 1;
        for _ in 0..client.depth {
            self.wake(0, index);
        }
        Ok(())
    }

    fn wake(&mut self, at_ns: u64, index: usize) {
        self.woken += 1;
        self.wakes.push(Reverse((at_ns, self.woken, index)));
    }

    fn run_until(&mut self, until_ns: u64) -> Result<(), String> {
        let mut done = Vec::new();
        loop {
            while let Some(Reverse((at_ns, _, index))) =
                self.wakes.peek().copied().filter(|Reverse(wake)| wake.0 <= self.engine.now_ns())
            {
                self.wakes.pop();
                self.next_request(index, at_ns);
            }
            self.driver().run(&mut done);
            for done in done.drain(..) {
                self.complete(done.ticket);
            }
            let wake_ns = self.wakes.peek().map(|Reverse((at_ns, ..))| *at_ns);
            match [self.device.next_wake_ns(), wake_ns].into_iter().flatten().min() {
                Some(next_ns) if next_ns <= until_ns => {
                    self.driver().wait(wake_ns).map_err(|error| error.to_string())?;
                }
                _ => return Ok(()),
            }
        }
    }

    fn driver(&mut self) -> DeviceDriver<'_, Virtual> {
        DeviceDriver::new(&mut self.device, &mut self.engine)
    }

    /// Adds an activity of the machine now.
    fn note_activity(&mut self) {
        let now_ns = self.engine.now_ns();
        if now_ns > self.active_ns {
            self.idle_ns = now_ns - self.active_ns;
            self.active_ns = now_ns;
        }
    }

    /// The time in ns that a client takes to wake up after a completion that ended the last idle
    /// time.
    fn wake_up_ns(&self) -> u64 {
        let doublings = (self.idle_ns as f64 / AWAKE_NS).log2().max(0.0);
        (self.wake_us as f64 * 1000.0 * doublings) as u64
    }

    fn next_request(&mut self, index: usize, at_ns: u64) {
        self.note_activity();
        let RunningClient { client, member, submitted, .. } = &mut self.clients[index];
        let next_request = client.next_request(*submitted);
        let ticket = (index as u64) << 40 | *submitted;
        *submitted += 1;
        let data = next_request.writes.then(|| Buffer::alone(next_request.bytes as usize));
        let op = if next_request.writes { RequestOp::Write } else { RequestOp::Read };
        let request = BlockRequest { data, ..BlockRequest::plain(ticket, op, next_request.offset, next_request.bytes) };
        self.sent_ns.insert(ticket, at_ns);
        self.device.submit(*member, request, self.engine.now_ns());
    }

    fn complete(&mut self, ticket: u64) {
        let Some(sent_ns) = self.sent_ns.remove(&ticket) else { return };
        self.note_activity();
        let wake_up_ns = self.wake_up_ns();
        let index = (ticket >> 40) as usize;
        let now_ns = self.engine.now_ns();
        let work = &mut self.clients[index];
        work.completed += 1;
        work.result.bytes += work.client.bytes;
        work.result.latencies_ns.push(now_ns - sent_ns);
        let woken_ns = now_ns + wake_up_ns;
        let wakes = work.client.after(work.completed, work.submitted, &mut work.ticks, woken_ns);
        wakes.for_each(|at_ns| self.wake(at_ns, index));
    }
}
