//! `hoistway serve --calibrate`: renders the calibration of each device as keys of its
//! configuration.

use anyhow::Result;
use hoistway_blockdev::calibrate::{calibrate, reads_page_cache};
use hoistway_config::Config;
use hoistway_reactor::Engine;

use crate::failure::{Exit, print_message};
use crate::output::Out;
use crate::progress::Bar;

/// Steps of the progress bar.
const STEPS: f64 = 1000.0;

/// Measures the devices one after the other and prints their configuration keys.
pub fn run<E: Engine>(config: &Config, engine: &mut E, out: &mut Out) -> Result<Exit> {
    for device in &config.devices {
        if reads_page_cache(device) {
            print_message(&format!(
                "note: direct I/O is off for `{}`: the figures are those of the page cache",
                device.queue.name
            ));
        }
        let bar = Bar::new(STEPS as u64, "calibrating");
        let result = calibrate(device, engine, &mut |share| bar.set((share * STEPS) as u64));
        bar.clear();
        let found = result?;
        let zones: Vec<String> =
            found.zones.iter().map(|zone| format!("{:.0}", zone.bytes_per_s as f64 / 1e6)).collect();
        out.line(format_args!("# {}: MB/s from the first byte to the last: {}", found.name, zones.join(", ")))?;
        out.line(format_args!(
            "# {} random reads of 4 KiB: positioning takes {:.3} ms on average, at most {:.3} ms (95 %)",
            found.samples,
            found.position_ns as f64 / 1e6,
            found.position_ns_high as f64 / 1e6
        ))?;
        out.line("[[device]]")?;
        out.line(format_args!("name = {:?}", found.name))?;
        out.line(format_args!("bandwidth = \"{}\"", found.bandwidth()))?;
        out.line(format_args!("position = \"{}\"", found.position()))?;
    }
    Ok(Exit::Success)
}
