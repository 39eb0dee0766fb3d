//! Clients and device in virtual time.

use hoistway_qos::DiskQueueConfig;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::os::fd::OwnedFd;
use std::sync::PoisonError;

use hoistway_blockdev::{BlockRequest, Device};
use hoistway_config::{BackendConfig, DeviceConfig};
use hoistway_drive::Profile;
use hoistway_qos::{Hints, MemberId, Recorder, RequestOp};
use hoistway_reactor::Buffer;
use hoistway_reactor::{ConnId, Engine, FileId, Io, ListenerId, Message};
use hoistway_record::recording::Direct;

use super::workloads::Client;
use crate::{Got, Request};

/// An engine that has nothing to do: a null backend answers at once.
struct Nothing;

impl Engine for Nothing {
    fn now_ns(&self) -> u64 {
        0
    }
    fn buffer(&mut self, len: usize) -> Buffer {
        Buffer::alone(len)
    }
    fn listen(&mut self, _: OwnedFd) -> ListenerId {
        ListenerId(0)
    }
    fn unlisten(&mut self, _: ListenerId) {}
    fn adopt(&mut self, _: OwnedFd) -> ConnId {
        ConnId { slot: 0, generation: 0 }
    }
    fn receive(&mut self, _: ConnId) {}
    fn receive_into(&mut self, _: ConnId, _: Buffer, _: usize, _: usize) {}
    fn send(&mut self, _: ConnId, _: Message) {}
    fn close(&mut self, _: ConnId) {}
    fn open(&mut self, _: OwnedFd) -> FileId {
        FileId(0)
    }
    fn start(&mut self, _: u64, _: Io) {}
    fn turn(&mut self, _: Option<u64>, _: &mut Vec<hoistway_reactor::Event>) -> std::io::Result<()> {
        Ok(())
    }
}

/// A client at work.
struct AtWork<'a> {
    client: &'a Client,
    member: MemberId,
    /// Requests made, and answered.
    made: u64,
    over: u64,
    /// Beats of its timer.
    beats: u64,
    got: Got,
}

struct World<'a> {
    device: Device,
    clients: Vec<AtWork<'a>>,
    /// When who makes a request.
    wakes: BinaryHeap<Reverse<(u64, u64, usize)>>,
    woken: u64,
    /// When requests were made, by ticket.
    sent_ns: HashMap<u64, u64>,
    now_ns: u64,
}

/// Lets the clients work for so many seconds.
pub fn run(clients: &[Client], request: &Request) -> Result<Vec<Got>, String> {
    let profile = Profile::builtin(&request.drive).ok_or_else(|| format!("there is no drive `{}`", request.drive))?;
    let config = DeviceConfig {
        queue: DiskQueueConfig {
            name: "disk".into(),
            elevator: Some(request.elevator),
            depth: None,
            tunables: Vec::new(),
            merge: true,
            request_bytes_max: 1 << 20,
            bandwidth: None,
            position_ns: None,
        },
        backend: BackendConfig::Null { bytes: 1 << 40 },
        drive: Some(profile),
    };
    let device = Device::new(0, &config, &mut Nothing, 0).map_err(|error| error.to_string())?;
    let mut world =
        World { device, clients: Vec::new(), wakes: BinaryHeap::new(), woken: 0, sent_ns: HashMap::new(), now_ns: 0 };
    for client in clients {
        world.join(client)?;
    }
    // Once all have joined: a member's own name would take the place of the one here.
    let mut outcome = None;
    if let Some(path) = &request.record {
        let (mut recorder, written) = Direct::start(path).map_err(|error| format!("{}: {error}", path.display()))?;
        for (number, client) in (1..).zip(clients) {
            recorder.name(number, client.name);
        }
        world.device.set_recorder(Some(Box::new(recorder)));
        outcome = Some(written);
    }
    world.run_until(request.seconds * 1_000_000_000);
    world.device.set_recorder(None);
    if let Some(outcome) = outcome
        && let Err(error) = &*outcome.lock().unwrap_or_else(PoisonError::into_inner)
    {
        return Err(format!("the recording: {error}"));
    }
    Ok(world.clients.into_iter().map(|client| client.got).collect())
}

impl<'a> World<'a> {
    fn join(&mut self, client: &'a Client) -> Result<(), String> {
        let member = self.device.scheduler_mut().join(None, None, 0).map_err(|error| error.to_string())?;
        self.clients.push(AtWork { client, member, made: 0, over: 0, beats: 0, got: Got::default() });
        let place = self.clients.len() - 1;
        for _ in 0..client.depth {
            self.wake(0, place);
        }
        Ok(())
    }

    fn wake(&mut self, at_ns: u64, place: usize) {
        self.woken += 1;
        self.wakes.push(Reverse((at_ns, self.woken, place)));
    }

    fn run_until(&mut self, until_ns: u64) {
        let mut done = Vec::new();
        loop {
            while let Some(Reverse((at_ns, _, place))) =
                self.wakes.peek().copied().filter(|Reverse(wake)| wake.0 <= self.now_ns)
            {
                self.wakes.pop();
                self.ask(place, at_ns);
            }
            self.device.run(&mut Nothing, self.now_ns, &mut done);
            for done in done.drain(..) {
                self.answered(done.ticket);
            }
            let wake_ns = self.wakes.peek().map(|Reverse((at_ns, ..))| *at_ns);
            let Some(next_ns) = [self.device.next_wake_ns(), wake_ns].into_iter().flatten().min() else { return };
            if next_ns > until_ns {
                return;
            }
            self.now_ns = next_ns.max(self.now_ns);
        }
    }

    fn ask(&mut self, place: usize, at_ns: u64) {
        let AtWork { client, member, made, .. } = &mut self.clients[place];
        let ask = client.ask(*made);
        let ticket = (place as u64) << 40 | *made;
        *made += 1;
        let data = ask.writes.then(|| Buffer::alone(ask.bytes as usize));
        let op = if ask.writes { RequestOp::Write } else { RequestOp::Read };
        let work = BlockRequest {
            ticket,
            op,
            offset: ask.offset,
            length: ask.bytes,
            durable: false,
            data,
            hints: Hints::default(),
        };
        self.sent_ns.insert(ticket, at_ns);
        self.device.submit(*member, work, self.now_ns);
    }

    fn answered(&mut self, ticket: u64) {
        let Some(sent_ns) = self.sent_ns.remove(&ticket) else { return };
        let place = (ticket >> 40) as usize;
        let now_ns = self.now_ns;
        let work = &mut self.clients[place];
        work.over += 1;
        work.got.bytes += work.client.bytes;
        work.got.latencies_ns.push(now_ns - sent_ns);
        let wakes = work.client.after(work.over, work.made, &mut work.beats, now_ns);
        wakes.for_each(|at_ns| self.wake(at_ns, place));
    }
}
