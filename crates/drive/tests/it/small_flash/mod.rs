//! A flash drive that is small enough to be overwritten many times in a test.
#![allow(dead_code, reason = "each test file uses a part")]

use hoistway_drive::{Access, Command, Completion, Drive, FlashCounters, Op, Profile, closed_loop};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Four dies with 64 blocks of 512 units each. A spare part has no address, and there is a reserve.
const SMALL: &str = r#"name = "small-flash"
what = "a small flash drive"
source = "none"
[flash]
depth = 1024
capacity_sectors = 3200000
command_us = 1.0
interface_us = 10.0
link_mb_s = 4000.0
channels = 2
channel_mb_s = 1000.0
dies = 4
blocks_per_plane = 400
pages_per_block = 128
page_bytes = 16384
page_read_us = [60.0]
program_us = 500.0
erase_us = 3000.0
spare_factor = 0.07
slice_blocks = 64
precondition = "steady"
buffer_kib = 1024
flush_us = 20.0
power_loss_protection = true
"#;

pub struct SmallFlash {
    pub drive: Drive,
    pub now_ns: u64,
    simulated_units: u64,
}

impl SmallFlash {
    /// The small drive with lines of its profile replaced.
    pub fn new(changes: &[(&str, &str)]) -> SmallFlash {
        let mut text = SMALL.to_string();
        for (from, to) in changes {
            assert!(text.contains(from), "{from} is in the profile");
            text = text.replacen(from, to, 1);
        }
        let profile = Profile::from_toml(&text, "small.toml").unwrap_or_else(|error| panic!("{error}"));
        let flash = hoistway_drive::describe(&profile).flash.expect("a flash drive");
        SmallFlash { drive: Drive::new(&profile), now_ns: 0, simulated_units: flash.simulated_bytes / 4096 }
    }

    pub fn units(&self) -> u64 {
        self.drive.capacity_sectors() / 8
    }

    pub fn simulated_units(&self) -> u64 {
        self.simulated_units
    }

    /// Keeps `depth` commands in flight and returns latencies in ns with their tags, by completion.
    pub fn run(&mut self, depth: u32, commands: impl IntoIterator<Item = Command>) -> Vec<(u32, u64)> {
        let mut latencies = Vec::new();
        let each = |at_ns: u64, completion: &Completion| {
            latencies.push((completion.tag, completion.service.finish_ns - at_ns));
        };
        self.now_ns = closed_loop(&mut self.drive, self.now_ns, depth, commands, each).expect("within the drive");
        latencies
    }
}

pub fn counters(drive: &Drive) -> FlashCounters {
    drive.flash_counters().expect("a flash drive")
}

pub fn random_reads(seed: u64, units: u64, count: u64) -> Vec<Command> {
    random(Op::Read, seed, units, count)
}

pub fn random_writes(seed: u64, units: u64, count: u64) -> Vec<Command> {
    random(Op::Write, seed, units, count)
}

fn random(op: Op, seed: u64, units: u64, count: u64) -> Vec<Command> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    (0..count).map(|_| Access { op, sector: random.random_range(0..units) * 8, sectors: 8 }.into()).collect()
}

/// The latency at the percentile `part` in ns.
pub fn percentile(latencies: &[(u32, u64)], part: f64) -> u64 {
    let mut sorted: Vec<u64> = latencies.iter().map(|(_, latency_ns)| *latency_ns).collect();
    sorted.sort_unstable();
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}
