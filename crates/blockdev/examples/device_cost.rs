//! Measures the CPU time of a device per request, in ns: `cargo run --release -p hoistway-blockdev
//! --example device_cost -- [ELEVATOR]...`.
//!
//! One client, and two tenants with one client each, keep 16 reads of 4 KiB in flight on a null
//! backend. The result is the cost of limits, queue, elevator, depth and accounts.

use std::time::Instant;

use hoistway_blockdev::{BlockRequest, Device, DeviceDriver, DeviceId};
use hoistway_config::{BackendConfig, DeviceConfig};
use hoistway_core::Kind;
use hoistway_qos::{DiskQueueConfig, RequestOp, Terms};
use hoistway_reactor::Virtual;

const REQUESTS: u64 = 500_000;

/// The virtual time between the completions of two requests, in ns.
const REQUEST_NS: u64 = 4_000;
/// The longest time until a device that completes nothing is run again, in ns.
const IDLE_NS: u64 = 1_000_000_000;

fn main() -> std::io::Result<()> {
    println!("{:<14} {:>12} {:>12}   ns a request", "elevator", "one client", "two tenants");
    let named: Vec<Kind> = std::env::args().skip(1).filter_map(|name| Kind::from_name(&name)).collect();
    for &kind in if named.is_empty() { Kind::ALL } else { &named } {
        let (mut one, mut two) = (f64::MAX, f64::MAX);
        for _ in 0..5 {
            (one, two) = (one.min(cost(kind, 1)?), two.min(cost(kind, 2)?));
        }
        println!("{:<14} {one:>12.0} {two:>12.0}", kind.info().name);
    }
    Ok(())
}

/// Returns the CPU time of a request under an elevator, in ns; NaN if the device cannot be created.
fn cost(kind: Kind, clients: u64) -> std::io::Result<f64> {
    let config = DeviceConfig {
        queue: DiskQueueConfig { elevator: Some(kind), ..DiskQueueConfig::new("null") },
        backend: BackendConfig::Null { bytes: 1 << 40 },
        drive: None,
    };
    let mut engine = Virtual::default();
    let Ok(mut device) = Device::new(DeviceId(0), &config, &mut engine, 0) else { return Ok(f64::NAN) };
    let members: Vec<_> = (0..clients)
        .filter_map(|client| {
            let name = format!("tenant{client}");
            device.scheduler_mut().set_tenant(&name, &Terms::default(), 0).ok()?;
            device.scheduler_mut().join(Some(&name), None, 0).ok()
        })
        .collect();
    let mut driver = DeviceDriver::new(&mut device, &mut engine);
    let (mut completed, mut state) = (0, 0x9e37_79b9u64);
    let start = Instant::now();
    let mut submit = |driver: &mut DeviceDriver<'_, Virtual>, ticket: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let offset = state >> 30 << 12 & ((1 << 39) - 1);
        if let Some(&member) = members.get(ticket as usize % members.len().max(1)) {
            driver.submit(member, BlockRequest::plain(ticket, RequestOp::Read, offset, 4096));
        }
    };
    for ticket in 0..16 * clients {
        submit(&mut driver, ticket);
    }
    let mut completions = Vec::new();
    while completed < REQUESTS {
        driver.run(&mut completions);
        // Without a completion, the elevator idles until the device's next wake-up.
        let pause_ns = if completions.is_empty() { IDLE_NS } else { REQUEST_NS * completions.len() as u64 };
        driver.wait(Some(driver.now_ns() + pause_ns))?;
        for completion in completions.drain(..) {
            completed += 1;
            submit(&mut driver, completion.ticket);
        }
    }
    Ok(start.elapsed().as_nanos() as f64 / completed as f64)
}
