//! `hoistway serve --calibrate`: what the devices of a configuration sustain, as keys of that
//! configuration.

use anyhow::Result;
use hoistway_blockdev::calibrate::calibrate;
use hoistway_config::{BackendConfig, Config};
use hoistway_reactor::Engine;

use crate::failure::{Exit, tell};
use crate::output::Out;
use crate::progress::Bar;

/// Steps of the bar.
const STEPS: f64 = 1000.0;

/// Measures each device, one after the other, and prints what stands in a configuration for it.
pub fn run<E: Engine>(config: &Config, engine: &mut E, out: &mut Out) -> Result<Exit> {
    for device in &config.devices {
        if let BackendConfig::File { direct: Some(false), .. } = device.backend {
            tell(&format!(
                "note: `{}` is read through the page cache: what is found is the cache's",
                device.queue.name
            ));
        }
        let bar = Bar::new(STEPS as u64, "calibrating");
        let found = calibrate(device, engine, &mut |share| bar.set((share * STEPS) as u64));
        bar.clear();
        let found = found?;
        let mb_s = |bytes_per_s: u64| bytes_per_s as f64 / 1e6;
        let zones: Vec<String> = found.zones.iter().map(|&(_, rate)| format!("{:.0}", mb_s(rate))).collect();
        out.line(format_args!("# {}: MB/s from the first byte to the last: {}", device.queue.name, zones.join(", ")))?;
        out.line(format_args!(
            "# {} readings of 4 KiB all over: positioning takes {:.3} ms on average, at most {:.3} ms (95 %)",
            found.samples,
            found.position_ns as f64 / 1e6,
            found.position_ns_high as f64 / 1e6
        ))?;
        out.line("[[device]]")?;
        out.line(format_args!("name = {:?}", device.queue.name))?;
        out.line(format_args!("bandwidth = \"{}k\"", found.bytes_per_s / 1024))?;
        out.line(format_args!("position = \"{}us\"", found.position_ns_high.div_ceil(1000)))?;
    }
    Ok(Exit::Success)
}
