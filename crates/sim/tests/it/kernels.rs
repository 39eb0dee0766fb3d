//! Hosts of particular kernels: figures that a user of the kernel could measure.

use crate::common::{bytes, request, run, seconds, with_host};
use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_sim::{CompareRequest, DirectIssue, HostConfig, Kernel, Plugging, Run, SliceKind, WriteBack};

const MIB: u64 = 1 << 20;

fn host_of(kernel: Kernel, mib: u64) -> HostConfig {
    HostConfig { page_cache_mib: mib, ..HostConfig::kernel(kernel) }
}

/// Four processes that write more than memory takes, for 20 seconds.
fn four_writers(kernel: Kernel) -> Run {
    with_host("[w]\nrw=write\nsize=200m\nnumjobs=4\nruntime=20\ntime_based\n", host_of(kernel, 256))
}

#[test]
fn dirty_memory_stays_within_the_limit_of_each_kernel() {
    for (kernel, percent) in [(Kernel::V2_6_18, 40), (Kernel::V2_6_24, 10), (Kernel::V3_2, 20), (Kernel::V6_1, 20)] {
        let run = four_writers(kernel);
        let limit = 256 * MIB * percent / 100;
        // Writers are looked at now and then. pdflush's: every 1024 pages at first, 4 MiB each.
        // Those that are paused: at the limit every page or two, but the rate of the device has to
        // become known first.
        let late = if percent == 20 { limit / 50 } else { 4 * 4 * MIB };
        assert!(run.dirty_bytes_max <= limit + late, "{}: {}", kernel.name(), run.dirty_bytes_max);
        assert!(run.dirty_bytes_max > limit / 2, "{}: {}", kernel.name(), run.dirty_bytes_max);
    }
}

#[test]
fn paused_writers_get_equal_shares_and_no_pause_is_longer_than_200_ms() {
    for kernel in [Kernel::V3_2, Kernel::V6_1] {
        let run = four_writers(kernel);
        let rates = run.process_bytes_per_s;
        assert!(rates.max / rates.min < 1.1, "{}: {rates:?}", kernel.name());
        assert!(run.latency_ns.max > 4_000_000, "{}", run.latency_ns.max);
        assert!(run.latency_ns.max < 210_000_000, "{}", run.latency_ns.max);
    }
}

#[test]
fn a_writer_that_writes_back_itself_stalls_longer_than_a_paused_one() {
    let (old, new) = (four_writers(Kernel::V2_6_18), four_writers(Kernel::V3_2));
    assert!(old.latency_ns.max > 2 * new.latency_ns.max, "{} {}", old.latency_ns.max, new.latency_ns.max);
}

#[test]
fn background_write_back_starts_at_the_ratio_of_the_kernel() {
    for (kernel, percent) in [(Kernel::V2_6_18, 10), (Kernel::V2_6_24, 5), (Kernel::V3_2, 10), (Kernel::V6_1, 10)] {
        // Slowly, so that periodic checks run; nothing gets old meanwhile.
        let written = |share: u64| {
            let size = 200 * MIB * percent * share / 10_000;
            let host = HostConfig { dirty_expire_ms: 3_600_000, ..host_of(kernel, 200) };
            with_host(&format!("[w]\nrw=write\nsize={}k\nrate=4m\n", size / 1024), host).drive_bytes
        };
        assert_eq!(written(95), 0, "{}", kernel.name());
        assert!(written(160) > 0, "{}", kernel.name());
    }
}

#[test]
fn old_pages_are_written_within_one_interval_of_their_expiry() {
    for kernel in Kernel::ALL {
        let written = |pause: u32| {
            // 1 MiB, a pause, and one more page that ends the run.
            let jobs = format!("[w]\nrw=write\nsize=1028k\nthinktime={pause}s\nthinktime_blocks=256\n");
            with_host(&jobs, host_of(kernel, 256)).drive_bytes
        };
        assert_eq!(written(29), 0, "{}", kernel.name());
        assert_eq!(written(36), MIB, "{}", kernel.name());
    }
}

#[test]
fn a_sequential_reader_has_the_rate_of_the_drive_under_every_kernel() {
    for kernel in Kernel::ALL {
        let run = with_host("[r]\nsize=64m\n", HostConfig::kernel(kernel));
        let rate = bytes(&run) as f64 / seconds(&run) / 1e6;
        assert!((60.0..65.0).contains(&rate), "{}: {rate}", kernel.name());
        // Read ahead in windows of 128 KiB, not page by page.
        assert!(run.drive_requests < 64 * 1024 / 100, "{}: {}", kernel.name(), run.drive_requests);
    }
}

#[test]
fn random_readers_read_the_requested_pages_only() {
    for kernel in [Kernel::V2_6_24, Kernel::V3_2, Kernel::V6_1] {
        let run = with_host("[r]\nrw=randread\nbs=8k\nsize=1g\nnumber_ios=200\n", HostConfig::kernel(kernel));
        assert!(
            (200 * 8192..200 * 8192 * 11 / 10).contains(&run.drive_bytes),
            "{}: {}",
            kernel.name(),
            run.drive_bytes
        );
    }
}

#[test]
fn what_one_call_submits_is_sorted_as_a_whole_where_the_task_holds_it_back() {
    // Three files that one call syncs in the reverse order of their positions. Without a plug
    // the idle drive takes the first page before the elevator knows the others.
    let jobs = "[lay]\nfilename=a:b:c\nsize=12m\ndirect=1\nbs=4k\nnumber_ios=1\n\
                [w]\nstonewall\nfilename=c:b:a\nsize=12m\nrw=randwrite\nbs=4k\nnumber_ios=12\nend_fsync=1\n";
    let sectors = |plugging| -> Vec<u64> {
        let host = HostConfig { plugging, ..HostConfig::default() };
        let request = CompareRequest { host, record: true, ..request(jobs, &[Kind::Deadline]) };
        run(&request).unwrap().runs.remove(0).head.iter().skip(1).map(|sample| sample.sector).collect()
    };
    let (held, free) = (sectors(Plugging::Task { requests: 16, kib: 0 }), sectors(Plugging::None));
    assert!(held.len() > 8 && held.is_sorted(), "{held:?}");
    assert!(!free.is_sorted() && free[1..].is_sorted(), "{free:?}");
    // A plug of two requests is full before the others come.
    assert!(!sectors(Plugging::Task { requests: 2, kib: 0 }).is_sorted());
}

#[test]
fn cfq_of_3_2_waits_until_a_tick_and_that_of_4_19_to_the_nanosecond() {
    // They think for longer than they are waited for: each wait ends with its time.
    let jobs = "[r]\nrw=randread\nbs=4k\ndirect=1\nsize=64m\nnumber_ios=12\nthinktime=50ms\nnumjobs=2\n";
    let waits = |host: HostConfig| -> Vec<(u64, u64)> {
        let request = CompareRequest { host, record: true, ..request(jobs, &[Kind::Cfq]) };
        let run = run(&request).unwrap().runs.remove(0);
        let idle = run.slices.into_iter().filter(|slice| slice.kind == SliceKind::Idle);
        idle.map(|slice| (slice.start_ns, slice.end_ns)).collect()
    };
    let (ticks, fine) = (waits(HostConfig::kernel(Kernel::V3_2)), waits(HostConfig::default()));
    let tick_ns = 4_000_000;
    assert!(
        ticks.len() > 5 && ticks.iter().filter(|wait| wait.1 % tick_ns == 0).count() * 10 > ticks.len() * 8,
        "{ticks:?}"
    );
    assert!(
        fine.len() > 5 && fine.iter().filter(|wait| wait.1 - wait.0 == 8_000_000).count() * 10 > fine.len() * 8,
        "{fine:?}"
    );
}

#[test]
fn cfq_of_3_2_gives_out_slices_of_time_on_flash_and_leaves_some_of_it_unused() {
    let jobs = "[global]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\nsize=64m\nruntime=2\ntime_based\niodepth=32\nnumjobs=2\n\
                [low]\nprio=6\n[high]\nprio=2\n";
    let rate = |kernel| {
        let profile = Profile::builtin("ssd-fiops").unwrap();
        let host = HostConfig { kernel, ..HostConfig::default() };
        let run = run(&CompareRequest { host, profile, ..request(jobs, &[Kind::Cfq]) }).unwrap().runs.remove(0);
        run.bytes_per_s
    };
    assert!(rate(Some(Kernel::V3_2)) < 0.97 * rate(None));
}

#[test]
fn a_host_without_a_kernel_keeps_its_defaults() {
    let host = HostConfig::default();
    assert_eq!((host.kernel, host.write_back, host.plugging), (None, WriteBack::Waiting, Plugging::Queue));
}

#[test]
fn advice_on_the_access_pattern_changes_what_is_read_ahead() {
    let requests = |kernel: Kernel, options: &str| {
        let run = with_host(&format!("[r]\nsize=32m\nbs=16k\n{options}\n"), HostConfig::kernel(kernel));
        (run.drive_requests, run.drive_bytes)
    };
    for kernel in [Kernel::V2_6_18, Kernel::V2_6_24, Kernel::V6_1] {
        let (silent, _) = requests(kernel, "fadvise_hint=0");
        // fio's default for a sequential job: a window of twice the length.
        let (advised, _) = requests(kernel, "");
        assert_eq!(requests(kernel, "fadvise_hint=sequential").0, advised, "{}", kernel.name());
        assert!(advised * 3 < silent * 2, "{}: {advised} of {silent}", kernel.name());
    }
    // A sequential reader that says that it is random: a read of four pages is one request from
    // 2.6.33 on, and four before.
    let read = |kernel| requests(kernel, "fadvise_hint=random");
    assert_eq!(read(Kernel::V6_1), (32 * 64, 32 * MIB));
    assert_eq!(read(Kernel::V2_6_24), (32 * 256, 32 * MIB));
}

#[test]
fn cfq_shares_the_disk_among_direct_writers_from_2_6_30_on() {
    let jobs = "[w]\nrw=write\ndirect=1\nbs=64k\nsize=1g\nnumjobs=4\noffset_increment=1g\n\
                filename=d\nfilesize=4g\nruntime=20\ntime_based\n";
    for kernel in [Kernel::V3_2, Kernel::V4_19] {
        let request = CompareRequest { host: HostConfig::kernel(kernel), ..request(jobs, &[Kind::Cfq]) };
        let rates = run(&request).unwrap().runs.remove(0).process_bytes_per_s;
        assert!(rates.min > 0.8 * rates.max, "{}: {rates:?}", kernel.name());
    }
}

#[test]
fn a_reader_beside_a_flood_of_writes_is_served_where_write_back_is_throttled() {
    let jobs = "[r]\nfadvise_hint=0\nbs=64k\nsize=1g\nruntime=20\ntime_based\n\
                [w]\nrw=write\nbs=64k\nsize=1g\nnumjobs=2\nruntime=20\ntime_based\n";
    let reader = |throttling: bool| {
        let queued = HostConfig { direct_issue: DirectIssue::Never, ..host_of(Kernel::V6_1, 512) };
        let host = HostConfig { write_back_throttling: throttling, ..queued };
        let request = CompareRequest { host, ..request(jobs, &[Kind::Noop]) };
        run(&request).unwrap().runs.remove(0).processes.remove(0).bytes_per_s
    };
    let (throttled, free) = (reader(true), reader(false));
    assert!(throttled > 3.0 * free, "{throttled} and {free}");
}

/// The rates of the first and the second process under `none`, on a drive whose cache the kernel
/// flushes.
fn rates_under_none(jobs: &str, direct_issue: DirectIssue) -> [f64; 2] {
    let host = HostConfig { direct_issue, write_back_cache: Some(true), ..host_of(Kernel::V6_1, 512) };
    let run = with_host(jobs, host);
    [0, 1].map(|process| run.processes[process].bytes_per_s)
}

#[test]
fn under_none_two_streams_through_the_page_cache_starve_a_direct_reader_until_6_12() {
    let jobs = "[global]\nfilename=d\nfilesize=4g\nruntime=10\ntime_based\n\
                [thinker]\nrw=randread\ndirect=1\nbs=4k\nsize=1g\nthinktime=10ms\n\
                [stream]\nrw=read\nbs=64k\nsize=1g\nnumjobs=2\noffset=1g\noffset_increment=1g\n";
    let [in_order, _] = rates_under_none(jobs, DirectIssue::Never);
    let [starved, _] = rates_under_none(jobs, DirectIssue::Plugged);
    let [direct, _] = rates_under_none(jobs, DirectIssue::Always);
    assert!(starved < 0.05 * in_order && direct > 0.5 * in_order, "{in_order} {starved} {direct}");
    let kernels = [Kernel::V4_19, Kernel::V6_1, Kernel::V6_12].map(|kernel| HostConfig::kernel(kernel).direct_issue);
    assert_eq!(kernels, [DirectIssue::Never, DirectIssue::Plugged, DirectIssue::Always]);
}

/// A stream through the page cache beside a process that appends and calls fsync.
const COMMITS: &str = "[stream]\nrw=read\nbs=64k\nsize=1g\nruntime=10\ntime_based\n\
                       [log]\nrw=write\nbs=4k\nsize=64m\nfsync=1\nhoistway_journal=ext4\nruntime=10\ntime_based\n";

/// A stream through the page cache beside writers whose pages the flusher writes.
const FLOOD: &str = "[stream]\nrw=read\nbs=64k\nsize=2g\nruntime=20\ntime_based\n\
                     [w]\nrw=write\nbs=64k\nsize=1g\nnumjobs=2\nruntime=20\ntime_based\n";

#[test]
fn under_none_a_stream_through_the_page_cache_starves_commits_from_6_12_on_and_write_back() {
    let cases = [(COMMITS, DirectIssue::Always), (FLOOD, DirectIssue::Plugged), (FLOOD, DirectIssue::Always)];
    for (jobs, direct_issue) in cases {
        let in_order = rates_under_none(jobs, DirectIssue::Never);
        let [stream, writer] = rates_under_none(jobs, direct_issue);
        assert!(stream > 2.0 * in_order[0], "{in_order:?}, then {stream}");
        assert!(writer < 0.5 * in_order[1], "{in_order:?}, then {writer}");
    }
}

#[test]
fn under_none_of_6_1_a_commit_block_follows_its_flush() {
    let in_order = rates_under_none(COMMITS, DirectIssue::Never);
    let first = rates_under_none(COMMITS, DirectIssue::Plugged);
    // The commit block is no barrier, so that it waits for less than all that waits before it.
    assert!(first[1] > in_order[1], "{in_order:?} and {first:?}");
    assert!(first[0] > 0.7 * in_order[0], "{in_order:?} and {first:?}");
}

#[test]
fn transport_adds_its_time_to_each_request() {
    let mean_ns = |transport_ns: u64, transport_sigma_milli: u32| {
        let host = HostConfig { transport_ns, transport_sigma_milli, ..HostConfig::kernel(Kernel::V6_1) };
        let jobs = "[r]\nrw=randread\ndirect=1\nbs=4k\nsize=1g\nnumber_ios=2000\n";
        let null = Profile::builtin("null").expect("it is built in");
        let request = CompareRequest { host, profile: null, ..request(jobs, &[Kind::Noop]) };
        run(&request).unwrap().runs.remove(0).latency_ns.mean
    };
    let (near, far, spread) = (mean_ns(0, 0), mean_ns(400_000, 0), mean_ns(400_000, 500));
    assert!((far - near - 400_000.0).abs() < 10.0, "{near} {far}");
    // The mean of a lognormal time is above its median.
    let expected = 400_000.0 * f64::exp(0.125);
    assert!((spread - near - expected).abs() < 0.05 * expected, "{near} {spread}");
}

#[test]
fn seeky_readers_keep_the_disk_under_cfq_if_the_driver_chooses_ahead() {
    let jobs = "[global]\nfilename=d\ndirect=1\ntime_based\nruntime=10\n\
                [r]\nrw=randread\nbs=4k\nsize=2g\nnumjobs=2\n\
                [w]\nrw=write\nbs=64k\noffset=2g\nsize=1g\nnumjobs=2\noffset_increment=1g\n";
    let rates = |driver_chooses_ahead: bool, elevator: Kind| {
        let host = HostConfig { driver_chooses_ahead, ..HostConfig::kernel(Kernel::V3_2) };
        let run = run(&CompareRequest { host, ..request(jobs, &[elevator]) }).unwrap().runs.remove(0);
        let of = |name: &str| -> f64 {
            run.processes.iter().filter(|process| process.name == name).map(|process| process.bytes_per_s).sum()
        };
        (of("r"), of("w"))
    };
    // In a guest of 4.4 the readers had 2.05 times what they have under noop, the writers 0.26
    // times.
    let (noop, ahead, later) = (rates(true, Kind::Noop), rates(true, Kind::Cfq), rates(false, Kind::Cfq));
    assert!(ahead.0 > 1.7 * noop.0 && ahead.1 < 0.4 * noop.1, "{ahead:?} and {noop:?}");
    assert!(later.0 < 0.3 * noop.0, "{later:?} and {noop:?}");
}

#[test]
fn deadline_has_nothing_to_sort_among_four_readers_if_the_driver_chooses_ahead() {
    let jobs = "[r]\nrw=randread\nfilename=d\ndirect=1\nbs=4k\nsize=2g\nnumjobs=4\nnumber_ios=100\n";
    let order = |driver_chooses_ahead: bool, elevator: Kind| -> Vec<u64> {
        let host = HostConfig { driver_chooses_ahead, ..HostConfig::kernel(Kernel::V3_2) };
        let request = CompareRequest { host, record: true, ..request(jobs, &[elevator]) };
        run(&request).unwrap().runs.remove(0).head.iter().map(|sample| sample.sector).collect()
    };
    // One request is in the drive and one chosen. Of the two that wait, one is the successor of the
    // other or the older one.
    assert_eq!(order(true, Kind::Deadline), order(true, Kind::Noop));
    assert_ne!(order(false, Kind::Deadline), order(false, Kind::Noop));
    assert_eq!(order(true, Kind::Noop), order(false, Kind::Noop), "the order of arrival is the same");
}

#[test]
fn processes_that_start_together_begin_in_the_time_and_the_order_that_the_seed_gives() {
    let begins = |start_spread_ns: u64, seed: u64| -> Vec<(u64, u32)> {
        let host = HostConfig { start_spread_ns, ..HostConfig::kernel(Kernel::V6_1) };
        let jobs = "[r]\nrw=randread\ndirect=1\nbs=4k\nsize=16m\nnumjobs=8\nnumber_ios=1\n";
        let null = Profile::builtin("null").expect("it is built in");
        let request = CompareRequest { host, seed, profile: null, record: true, ..request(jobs, &[Kind::Noop]) };
        run(&request).unwrap().runs.remove(0).head.iter().map(|sample| (sample.at_ns, sample.pid)).collect()
    };
    let pids = |begins: &[(u64, u32)]| -> Vec<u32> { begins.iter().map(|(_, pid)| *pid).collect() };
    let (together, one, other) = (begins(0, 1), begins(4_000_000, 1), begins(4_000_000, 2));
    assert!(pids(&together).is_sorted() && together.len() == 8, "{together:?}");
    assert!(!pids(&one).is_sorted() && pids(&one) != pids(&other), "{one:?} {other:?}");
    let latest = one.iter().map(|(at_ns, _)| *at_ns).max();
    assert!(latest.is_some_and(|at_ns| at_ns > 1_000_000 && at_ns < 5_000_000), "{one:?}");
}
