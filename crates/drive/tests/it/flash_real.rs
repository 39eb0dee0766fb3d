//! Flash drives against latencies of real ones: `testdata/real_flash_latency.tsv`.

use crate::small_flash::{percentile, random_reads};
use hoistway_drive::{Drive, Profile, closed_loop};

/// The percentiles of a row as (share, us).
fn measured(row: &str) -> Vec<(f64, f64)> {
    let text = include_str!("../../testdata/real_flash_latency.tsv");
    let mut lines = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t'));
    let header: Vec<&str> = lines.next().expect("a header").collect();
    let fields: Vec<&str> = lines.map(Iterator::collect::<Vec<_>>).find(|fields| fields[0] == row).expect("the row");
    let part = |name: &str| name[1..].parse::<f64>().expect("a percentile") / 100.0;
    header.iter().zip(fields).skip(1).map(|(name, us)| (part(name), us.parse().expect("a number"))).collect()
}

#[test]
fn single_random_reads_have_the_measured_percentiles_within_15_percent() {
    for (profile, row) in
        [("ssd-nvme-tlc-mixed", "micron_7300_pro_3.84TB_read"), ("ssd-sata-consumer", "samsung_850_evo_250GB_read")]
    {
        let mut drive = Drive::new(&Profile::builtin(profile).expect("built in"));
        let reads = random_reads(1, drive.capacity_sectors() / 8, 30_000);
        let mut latencies = Vec::new();
        let each = |_: u64, completion: &hoistway_drive::Completion| {
            latencies.push((completion.tag, completion.service.phases.total_ns()));
        };
        closed_loop(&mut drive, 0, 1, reads, each).expect("within the drive");
        for (part, real_us) in measured(row).into_iter().filter(|(part, _)| (0.5..=0.99).contains(part)) {
            let found_us = percentile(&latencies, part) as f64 / 1000.0;
            let error = found_us / real_us - 1.0;
            println!("{profile} p{}: {found_us:.1} us, measured {real_us}: {:+.1} %", part * 100.0, error * 100.0);
            assert!(error.abs() < 0.15, "{profile} p{}: {found_us} us, measured {real_us}", part * 100.0);
        }
    }
}
