//! Compares the emulated drive with the simulator on the same requests: both host the same queue
//! and the same drive model, and their results must agree.

use hoistway_qos::DiskQueueConfig;
use std::sync::atomic::AtomicBool;

use hoistway_config::DeviceConfig;
use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_qos::CLOCK;
use hoistway_sim::{CompareRequest, CpuCosts, HostConfig, Plugging, compare};

use crate::testbed::*;

const READERS: u64 = 8;
const APART_BYTES: u64 = 20 << 30;
const SPAN_BYTES: u64 = 128 << 20;
/// The time from a completion to the next request.
const TURNAROUND_NS: u64 = 50_000;
/// The seconds at the beginning that are not counted. bfq takes new readers for interactive ones,
/// and raises their weights for 3 to 25 s, longer for a drive that it estimates as slower. Eight
/// such readers take turns request by request. The end of that phase depends on very small
/// differences.
fn ramp_seconds(kind: Kind) -> u64 {
    if kind == Kind::Bfq { 26 } else { 2 }
}

/// The seconds that are counted. A budget of bfq takes nearly half a second: several rounds of
/// eight.
fn seconds(kind: Kind) -> u64 {
    if kind == Kind::Bfq { 40 } else { 10 }
}

fn disk() -> Profile {
    Profile::builtin("sata-7200-2006").expect("a built-in profile")
}

/// Returns the bytes a second that each reader gets from the device.
fn served(kind: Kind) -> Vec<f64> {
    let config = DeviceConfig {
        queue: DiskQueueConfig { elevator: Some(kind), ..config("disk").queue },
        drive: Some(disk()),
        backend: hoistway_config::BackendConfig::Null { bytes: READERS * APART_BYTES },
    };
    let mut testbed = Testbed::new(&config);
    for reader in 0..READERS {
        let client = Client { sequential: true, pause_ns: TURNAROUND_NS, ..Client::reads(1, 4096) };
        testbed.add(None, client.at(reader * APART_BYTES, SPAN_BYTES));
    }
    testbed.run_until(ramp_seconds(kind) * SECOND);
    testbed.reset_counts();
    testbed.run_until((ramp_seconds(kind) + seconds(kind)) * SECOND);
    testbed.clients.iter().map(|client| client.served_bytes as f64 / seconds(kind) as f64).collect()
}

/// Returns the bytes a second that the simulator predicts for each reader.
fn predicted(kind: Kind) -> Vec<f64> {
    let mut text = String::new();
    for reader in 0..READERS {
        text += &format!(
            "[reader{reader}]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\nrw=read\nbs=4k\noffset={}\nsize={SPAN_BYTES}\n\
             time_based\nruntime={}s\nramp_time={}s\n",
            reader * APART_BYTES,
            seconds(kind),
            ramp_seconds(kind)
        );
    }
    let nothing = |path: &str, _: &str| Err(std::io::Error::other(path.to_owned()));
    let jobs = hoistway_fio::parse(&text, "readers", &|_| None, &nothing).expect("a good job file");
    let costs = CpuCosts { completion_ns: TURNAROUND_NS, ..CpuCosts::NONE };
    let mut host = HostConfig {
        cpus: READERS as u32,
        plugging: Plugging::None,
        costs,
        spindle_tolerance_ppm: 0,
        ..HostConfig::default()
    };
    host.queue.clock = CLOCK;
    host.queue.nr_requests = None;
    let request = CompareRequest {
        jobs,
        profile: disk(),
        host,
        elevators: vec![kind],
        settings: Vec::new(),
        seed: 1,
        record: false,
    };
    let comparison = compare(&request, &|_| {}, &AtomicBool::new(false)).expect("a good request");
    comparison.runs[0].processes.iter().map(|process| process.bytes_per_s).collect()
}

#[test]
fn the_simulator_predicts_throughput_and_shares_of_an_emulated_drive() {
    for kind in [Kind::Noop, Kind::Deadline, Kind::Anticipatory, Kind::CfqV3, Kind::Cfq, Kind::Bfq] {
        let (served, predicted) = (served(kind), predicted(kind));
        let sum = |figures: &[f64]| figures.iter().sum::<f64>();
        let off = sum(&served) / sum(&predicted) - 1.0;
        let name = kind.info().name;
        assert!(off.abs() <= 0.01, "{name}: {:.0} B/s served, {:.0} predicted", sum(&served), sum(&predicted));
        for (reader, (got, wanted)) in served.iter().zip(&predicted).enumerate() {
            let share_off = (got / sum(&served)) / (wanted / sum(&predicted)) - 1.0;
            assert!(share_off.abs() <= 0.05, "{name}: reader {reader}'s share is off by {share_off:+.3}");
        }
        eprintln!("{name}: {:.2} MB/s served, {:+.2} % off", sum(&served) / 1e6, off * 100.0);
    }
}
