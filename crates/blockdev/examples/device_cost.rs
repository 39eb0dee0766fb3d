//! What a device costs a request, in ns of the processor: `cargo run --release -p hoistway-blockdev
//! --example device_cost -- [ELEVATOR]...`.
//!
//! One client, and two tenants with one client each, keep 16 reads of 4 KiB under way on a null
//! backend: all that is measured is the way through limits, queue, elevator, depth and accounts.

use hoistway_qos::DiskQueueConfig;
use std::os::fd::OwnedFd;
use std::time::Instant;

use hoistway_blockdev::{Device, Work};
use hoistway_config::{BackendConfig, DeviceConfig};
use hoistway_core::Kind;
use hoistway_qos::Terms;
use hoistway_qos::{Hints, RequestOp};
use hoistway_reactor::Buffer;
use hoistway_reactor::{ConnId, Engine, Event, FileId, Io, ListenerId, Message};

/// An engine that has nothing to do.
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
    fn turn(&mut self, _: Option<u64>, _: &mut Vec<Event>) -> std::io::Result<()> {
        Ok(())
    }
}

const REQUESTS: u64 = 500_000;

fn main() {
    println!("{:<14} {:>12} {:>12}   ns a request", "elevator", "one client", "two tenants");
    let asked: Vec<Kind> = std::env::args().skip(1).filter_map(|name| Kind::from_name(&name)).collect();
    for &kind in if asked.is_empty() { Kind::ALL } else { &asked } {
        let [one, two] = [1, 2].map(|clients| (0..5).map(|_| cost(kind, clients)).fold(f64::MAX, f64::min));
        println!("{:<14} {one:>12.0} {two:>12.0}", kind.info().name);
    }
}

fn cost(kind: Kind, clients: u64) -> f64 {
    let config = DeviceConfig {
        queue: DiskQueueConfig {
            name: "null".to_owned(),
            elevator: Some(kind),
            depth: None,
            tunables: Vec::new(),
            merge: true,
            request_bytes_max: 1 << 20,
            bandwidth: None,
            position_ns: None,
        },
        backend: BackendConfig::Null { bytes: 1 << 40 },
        drive: None,
    };
    let mut engine = Nothing;
    let Ok(mut device) = Device::new(0, &config, &mut engine, 0) else { return f64::NAN };
    let members: Vec<_> = (0..clients)
        .filter_map(|client| {
            let name = format!("tenant{client}");
            device.scheduler_mut().set_tenant(&name, &Terms::default(), 0).ok()?;
            device.scheduler_mut().join(Some(&name), None, 0).ok()
        })
        .collect();
    let mut done = Vec::new();
    let (mut answered, mut place, mut now_ns) = (0, 0x9e37_79b9u64, 1_000_000_000);
    let start = Instant::now();
    let mut ask = |device: &mut Device, ticket: u64, now_ns: u64| {
        place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let work = Work {
            ticket,
            op: RequestOp::Read,
            offset: place >> 30 << 12 & ((1 << 39) - 1),
            length: 4096,
            durable: false,
            data: None,
            hints: Hints::default(),
        };
        if let Some(&member) = members.get(ticket as usize % members.len().max(1)) {
            device.submit(member, work, now_ns);
        }
    };
    for ticket in 0..16 * clients {
        ask(&mut device, ticket, now_ns);
    }
    while answered < REQUESTS {
        device.run(&mut engine, now_ns, &mut done);
        if done.is_empty() {
            // The elevator keeps the device waiting: on to where it goes on.
            now_ns = device.next_wake_ns().unwrap_or(now_ns + 1_000).max(now_ns + 1_000);
        }
        now_ns += 4_000 * done.len() as u64;
        for done in done.drain(..) {
            answered += 1;
            ask(&mut device, done.ticket, now_ns);
        }
    }
    start.elapsed().as_nanos() as f64 / answered as f64
}
