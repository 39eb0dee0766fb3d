//! Results under fio's names, compared with output of fio 3.33 and with sums by hand.

use crate::common::testdata;
use hoistway_fio::results::{
    NO_ETA, Report,
    build::{DepthCounts, DirectionStats, JobStats, LatencyBuckets, LatencySummary, Samples, report},
    histogram::{Histogram, bin_ns},
};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;

/// The paths of all keys; keys that are data are written `*`.
fn keys(value: &Value, path: &str, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            let data = ["job options", "global options", "percentile", "bins"].iter().any(|name| path.ends_with(name));
            for (key, value) in map {
                let path = format!("{path}/{}", if data { "*" } else { key });
                keys(value, &path, out);
                out.insert(path);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| keys(value, &format!("{path}[]"), out)),
        _ => {}
    }
}

fn keys_of(text: &str) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    keys(&serde_json::from_str(text).expect("JSON"), "", &mut out);
    out
}

fn listed(name: &str) -> BTreeSet<String> {
    testdata(name).lines().map(str::to_owned).collect()
}

/// A job with figures in every part.
fn full_job(with_bins: bool) -> JobStats {
    let mut histogram = Histogram::default();
    (1..=100u64).for_each(|i| histogram.record(i * 10_000));
    let bins = histogram.report(&[], true).bins.map(|bins| bins.0.into_iter().collect()).unwrap_or_default();
    let mut latency = LatencySummary::of(&histogram);
    latency.bins = if with_bins { bins } else { Vec::new() };
    let direction = DirectionStats {
        io_bytes: 409_600,
        total_ios: 100,
        runtime_ns: 100_000_000,
        slat: latency.clone(),
        clat: latency.clone(),
        lat: latency.clone(),
        bw_kib_s: Samples::of(&[4000, 4000]),
        iops: Samples::of(&[1000, 1000]),
        bw_agg_percent: 100.0,
    };
    JobStats {
        jobname: "j".into(),
        options: vec![("rw".into(), "randrw".into()), ("stonewall".into(), String::new())],
        read: direction.clone(),
        write: direction,
        sync: latency,
        ..JobStats::default()
    }
}

fn full_report(with_bins: bool) -> Report {
    let globals = [("size".to_owned(), "1m".to_owned())];
    let mut report = report("hoistway", 1_795_199_248_491, &globals, [full_job(with_bins)]);
    report.disk_util = Some(vec![Default::default()]);
    report
}

#[test]
fn the_keys_are_those_that_fio_prints() {
    assert_eq!(keys_of(&full_report(false).to_json()), listed("fio-3.33/json.keys"));
    assert_eq!(keys_of(&full_report(true).to_json()), listed("fio-3.33/json-plus.keys"));
}

#[test]
fn the_key_lists_are_those_of_the_stored_output() {
    assert_eq!(keys_of(&testdata("fio-3.33/results.json")), listed("fio-3.33/json.keys"));
    assert_eq!(keys_of(&testdata("fio-3.33/results-plus.json")), listed("fio-3.33/json-plus.keys"));
}

#[test]
fn output_of_fio_is_read_and_written_again_unchanged() {
    for name in ["fio-3.33/results.json", "fio-3.33/results-plus.json"] {
        let text = testdata(name);
        let report = Report::from_json(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let again: Value = serde_json::from_str(&report.to_json()).expect("JSON");
        let original: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(again, original, "{name}");
    }
}

#[test]
fn options_of_the_file_are_printed_as_fio_printed_them() {
    let file =
        hoistway_fio::load(crate::common::path_of("fio-3.33/results.fio")).unwrap_or_else(|error| panic!("{error}"));
    let printed = Report::from_json(&testdata("fio-3.33/results.json")).expect("fio's JSON");
    let sorted = |options: &[(String, String)]| options.iter().cloned().collect::<BTreeSet<_>>();
    let ours = report(
        "hoistway",
        0,
        &file.global_options,
        file.jobs.iter().map(|job| JobStats {
            jobname: job.name.clone(),
            groupid: job.groupid,
            options: job.options.clone(),
            ..JobStats::default()
        }),
    );
    let globals = |report: &Report| sorted(&report.global_options.clone().unwrap_or_default().0);
    assert_eq!(globals(&ours), globals(&printed));
    assert_eq!(ours.jobs.len(), printed.jobs.len(), "group_reporting makes one of two clones");
    for (ours, printed) in ours.jobs.iter().zip(&printed.jobs) {
        assert_eq!((&ours.jobname, ours.groupid), (&printed.jobname, printed.groupid));
        let options = |job: &hoistway_fio::results::JobReport| sorted(&job.job_options.clone().unwrap_or_default().0);
        assert_eq!(options(ours), options(printed));
    }
}

#[test]
fn bandwidth_is_kib_a_second_and_runtime_milliseconds() {
    let stats = DirectionStats { io_bytes: 1 << 20, total_ios: 256, runtime_ns: 2_000_000_000, ..Default::default() };
    let report = stats.report();
    // 1 MiB in 2 s is 524288 bytes a second, which is 512 KiB; 256 requests in 2 s are 128 a
    // second.
    assert_eq!((report.bw_bytes, report.bw, report.runtime, report.io_kbytes), (524_288, 512, 2_000, 1_024));
    assert_eq!(report.iops, 128.0);
    let idle = DirectionStats::default().report();
    assert_eq!((idle.bw_bytes, idle.iops, idle.runtime), (0, 0.0, 0), "nothing is divided by no time");
    let short = DirectionStats { runtime_ns: 1, io_bytes: u64::MAX, ..Default::default() };
    assert_eq!((short.report().runtime, short.bytes_per_s()), (1, u64::MAX));
}

#[test]
fn a_direction_without_requests_has_no_percentiles() {
    let report = DirectionStats::default().report();
    assert_eq!((report.clat_ns.percentile, report.clat_ns.bins), (None, None));
    assert_eq!(Histogram::default().report(&[50.0], true).percentile, None);
    assert_eq!(Histogram::default().percentile_ns(50.0), 0);
}

#[test]
fn bins_are_those_of_fio() {
    // fio 3.33 printed 6040 ns as bin 6048 and 6524 ns as bin 6496; bins of json+ are middles.
    assert_eq!((bin_ns(6_040), bin_ns(6_524), bin_ns(127), bin_ns(128), bin_ns(129)), (6_048, 6_496, 127, 129, 129));
    let printed = Report::from_json(&testdata("fio-3.33/results-plus.json")).expect("fio's JSON");
    let mut seen = 0;
    for job in &printed.jobs {
        let (read, write) = (job.read.as_ref().expect("reads"), job.write.as_ref().expect("writes"));
        let sync = job.sync.as_ref().expect("syncs");
        for latency in [&read.clat_ns, &write.clat_ns, &read.lat_ns, &sync.lat_ns] {
            for bin in latency.bins.iter().flat_map(|bins| bins.0.keys()) {
                assert_eq!(bin_ns(*bin), *bin, "the middle of a bin stands for itself");
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "{seen} bins are no test");
}

#[test]
fn percentiles_follow_from_the_bins_as_fio_has_them() {
    // The bins that fio printed, counted again, give the percentiles that fio printed beside them.
    let printed = Report::from_json(&testdata("fio-3.33/results-plus.json")).expect("fio's JSON");
    let mut seen = 0;
    for job in &printed.jobs {
        let (read, write) = (job.read.as_ref().expect("reads"), job.write.as_ref().expect("writes"));
        for latency in [&read.clat_ns, &write.clat_ns, &write.lat_ns, &write.slat_ns] {
            let (Some(bins), Some(percentiles)) = (&latency.bins, &latency.percentile) else { continue };
            let mut histogram = Histogram::default();
            for (bin, count) in &bins.0 {
                (0..*count).for_each(|_| histogram.record(*bin));
            }
            for (percentile, ns) in &percentiles.0 {
                assert_eq!(histogram.percentile_ns(*percentile), *ns, "{percentile} of {}", job.jobname);
                seen += 1;
            }
        }
    }
    assert!(seen >= 17, "{seen} percentiles are no test");
}

#[test]
fn a_histogram_sums_up() {
    let mut histogram = Histogram::default();
    [2, 4, 4, 4, 5, 5, 7, 9].into_iter().for_each(|ns| histogram.record(ns));
    let report = histogram.report(&[50.0, 100.0], true);
    assert_eq!((report.min, report.max, report.mean, report.n), (2, 9, 5.0, 8));
    // Squares of the distances: 9 + 1 + 1 + 1 + 0 + 0 + 4 + 16 = 32; 32 / 7 = 4.571.
    assert!((report.stddev - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
    assert_eq!(report.percentile.expect("asked for").0, [(50.0, 4), (100.0, 9)]);
    assert_eq!(
        report.bins.expect("asked for").0.into_iter().collect::<Vec<_>>(),
        [(2, 1), (4, 3), (5, 2), (7, 1), (9, 1)]
    );
}

#[test]
fn latencies_are_counted_below_their_upper_bound() {
    let shares = |ns: u64| {
        let mut buckets = LatencyBuckets::default();
        buckets.record(ns);
        let (ns, us, ms) = buckets.shares();
        let text = serde_json::json!({ "ns": ns, "us": us, "ms": ms });
        let mut found = Vec::new();
        for unit in ["ns", "us", "ms"] {
            for (key, share) in text[unit].as_object().expect("an object") {
                if share.as_f64() != Some(0.0) {
                    found.push(format!("{unit} {key} {share}"));
                }
            }
        }
        found.join(", ")
    };
    for (ns, share) in [
        (0, "ns 2 100.0"),
        (19, "ns 20 100.0"),
        (20, "ns 50 100.0"),
        (999, "ns 1000 100.0"),
        (1_000, "us 2 100.0"),
        (999_999, "us 1000 100.0"),
        (1_000_000, "ms 2 100.0"),
        (999_999_999, "ms 1000 100.0"),
        (1_000_000_000, "ms 2000 100.0"),
        (1_999_999_999, "ms 2000 100.0"),
        (2_000_000_000, "ms >=2000 100.0"),
        (u64::MAX, "ms >=2000 100.0"),
    ] {
        assert_eq!(shares(ns), share, "{ns}");
    }
}

#[test]
fn depths_are_counted_by_powers_of_two() {
    let mut level = DepthCounts::default();
    [1, 2, 3, 4, 7, 63, 64, 1000].into_iter().for_each(|depth| level.record_level(depth));
    let level = level.level();
    assert_eq!((level.d1, level.d2, level.d4, level.d8), (12.5, 25.0, 25.0, 0.0));
    assert_eq!((level.d16, level.d32, level.d64), (0.0, 12.5, 25.0));
    let mut batch = DepthCounts::default();
    [0, 1, 4, 5, 64, 65].into_iter().for_each(|together| batch.record_batch(together));
    let mut twice = batch;
    twice.merge(&batch);
    assert_eq!(twice.batch(), batch.batch(), "shares stay when counts double");
    let batch = batch.batch();
    let sixth = 100.0 / 6.0;
    assert_eq!((batch.n0, batch.n4, batch.n8, batch.n64, batch.more), (sixth, 2.0 * 100.0 / 6.0, sixth, sixth, sixth));
}

#[test]
fn samples_are_summed_up() {
    let samples = Samples::of(&[10, 20, 30]);
    assert_eq!((samples.min, samples.max, samples.mean, samples.stddev, samples.n), (10, 30, 20.0, 10.0, 3));
    assert_eq!(Samples::of(&[]), Samples::default());
    assert_eq!(Samples::of(&[7]).stddev, 0.0);
}

#[test]
fn a_run_has_its_date_and_its_jobs() {
    let report = full_report(false);
    assert_eq!((report.timestamp, report.timestamp_ms), (1_795_199_248, 1_795_199_248_491));
    assert_eq!(report.time, "Fri Nov 20 18:27:28 2026", "as fio 3.33 printed for this second");
    for (ms, time) in [
        (0, "Thu Jan 01 00:00:00 1970"),
        (951_782_400_000, "Tue Feb 29 00:00:00 2000"),
        (1_078_099_199_000, "Sun Feb 29 23:59:59 2004"),
        (4_107_542_400_000, "Mon Mar 01 00:00:00 2100"),
    ] {
        assert_eq!(hoistway_fio::results::build::report("", ms, &[], []).time, time);
    }
    let job = &report.jobs[0];
    assert_eq!(
        (job.eta, job.sync.as_ref().map(|sync| sync.total_ios), job.latency_percentile),
        (NO_ETA, Some(100), 100.0)
    );
    let options = job.job_options.clone().expect("it has options").0;
    assert_eq!(options, [("rw".to_owned(), "randrw".to_owned())], "fio leaves out flags without a value");
    assert!(!report.to_json().contains("hoistway\" :"), "no key of ours unless there is something in it");
}

#[test]
fn values_without_a_name_in_fio_are_under_one_key() {
    let mut report = full_report(false);
    report.jobs[0].hoistway = Some(serde_json::json!({ "merges": 7 }));
    let mut keys = keys_of(&report.to_json());
    assert!(keys.remove("/jobs[]/hoistway") && keys.remove("/jobs[]/hoistway/merges"));
    assert_eq!(keys, listed("fio-3.33/json.keys"));
    assert_eq!(Report::from_json(&report.to_json()).expect("our own JSON"), report);
}

proptest! {
    #[test]
    fn a_bin_is_within_a_128th_of_its_latencies(ns: u64) {
        let bin = bin_ns(ns);
        prop_assert!(bin.abs_diff(ns) <= ns / 128, "{ns} in bin {bin}");
        prop_assert_eq!(bin_ns(bin), bin);
    }

    #[test]
    fn merged_histograms_count_what_one_would_have(
        left in proptest::collection::vec(0u64..10_000_000, 0..40),
        right in proptest::collection::vec(0u64..10_000_000, 0..40),
    ) {
        let of = |values: &[u64]| {
            let mut histogram = Histogram::default();
            values.iter().for_each(|ns| histogram.record(*ns));
            histogram
        };
        let (mut merged, whole) = (of(&left), of(&[left.clone(), right.clone()].concat()));
        merged.merge(&of(&right));
        prop_assert_eq!(merged.report(&[], true).bins, whole.report(&[], true).bins);
        prop_assert_eq!((merged.count(), merged.percentile_ns(90.0)), (whole.count(), whole.percentile_ns(90.0)));
        prop_assert!((merged.mean_ns() - whole.mean_ns()).abs() <= 1e-6 * whole.mean_ns().max(1.0));
        prop_assert!((merged.stddev_ns() - whole.stddev_ns()).abs() <= 1e-6 * whole.stddev_ns().max(1.0));
    }
}
