//! Lists the block devices of this machine with their schedulers.
//!
//! `cargo run -p hoistway-machine --example list_devices`

use hoistway_machine::{Root, devices, queues_below};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Root::machine();
    let all = devices(&root)?;
    for device in &all {
        let scheduler = device.queue.as_ref().and_then(|queue| queue.scheduler.as_deref()).unwrap_or("-");
        let queues: Vec<&str> = queues_below(&root, &all, device).iter().map(|below| below.name.as_str()).collect();
        println!("{:<12} {:<10} {scheduler:<12} scheduled at {}", device.name, device.kind, queues.join(", "));
    }
    Ok(())
}
