//! Writes that wait for the medium: each kind of sync, on drives with and without a volatile cache.
//!
//! A disk of 7200 rpm that writes one block after the other makes 120 a second at most: the next
//! block has just passed when the host knows of the last one. Blocks at random places of a short
//! stretch wait for half a revolution in the mean, and for a seek: less than 240 a second.

use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_sim::{CompareRequest, Flushes, HostConfig, JournalConfig, Kernel, Run};

use crate::common::{request, run};

/// Revolutions a second of a disk of 7200 rpm: 120, with half a percent for the tolerance of the
/// spindle and for the first write, which does not wait for the one before it.
const REVOLUTIONS_PER_S: f64 = 120.0 * 1.005;

/// 4 KiB writes at random places of the first GiB of a disk and of a file, each with a sync.
const RAW: &str = include_str!("../../testdata/syncs/raw.fio");
const REDIS: &str = include_str!("../../testdata/syncs/redis-fsync.fio");

/// Runs jobs on a drive under one elevator.
fn on_drive(drive: &str, jobs: &str, kind: Kind, host: HostConfig) -> Run {
    let profile = Profile::builtin(drive).expect("a built-in profile");
    let request = CompareRequest { profile, host, ..request(jobs, &[kind]) };
    run(&request).expect("a run").runs.remove(0)
}

fn on_6_12(drive: &str, jobs: &str) -> Run {
    on_drive(drive, jobs, Kind::MqDeadline, HostConfig::kernel(Kernel::V6_12))
}

/// Writes a second of all processes.
fn writes_per_s(run: &Run) -> f64 {
    let writes: u64 = run.processes.iter().map(|process| process.write.ios).sum();
    writes as f64 / (run.runtime_ns as f64 / 1e9)
}

/// The sections of a job file with one more line in each.
fn with_line(jobs: &str, line: &str) -> String {
    jobs.lines().filter(|other| !other.starts_with("fsync")).flat_map(|other| [other, "\n"]).collect::<String>() + line
}

#[test]
fn a_synced_write_takes_a_revolution_under_every_elevator() {
    // Random blocks of 1 GiB, one block after the other, and random blocks of the whole disk.
    for (jobs, most_per_revolution) in [
        (RAW.to_owned(), 2.0),
        (REDIS.to_owned(), 2.0),
        (RAW.replace("rw=randwrite", "rw=write"), 1.0),
        (REDIS.replace("rw=randwrite", "rw=write"), 1.0),
        (RAW.replace("size=1g", "size=100%"), 1.0),
    ] {
        for kind in Kind::ALL {
            let run = on_drive("cmr-8tb", &jobs, *kind, HostConfig::default());
            let (rate, name) = (writes_per_s(&run), &run.elevator);
            let range = 40.0..=most_per_revolution * REVOLUTIONS_PER_S;
            assert!(range.contains(&rate), "{name}: {rate:.1} a second\n{jobs}");
        }
    }
}

#[test]
fn a_synced_write_takes_a_revolution_under_every_kernel() {
    let jobs = &REDIS.replace("rw=randwrite", "rw=write");
    for kernel in Kernel::ALL {
        let kinds: &[Kind] = match kernel {
            Kernel::V6_1 | Kernel::V6_3 | Kernel::V6_12 => &[Kind::Noop, Kind::MqDeadline, Kind::Kyber, Kind::Bfq],
            _ => &[Kind::Noop, Kind::Deadline, Kind::Cfq],
        };
        for kind in kinds {
            let run = on_drive("cmr-8tb", jobs, *kind, HostConfig::kernel(kernel));
            let rate = writes_per_s(&run);
            let name = kernel.name();
            assert!((40.0..=REVOLUTIONS_PER_S).contains(&rate), "{name}, {}: {rate:.1} a second", run.elevator);
        }
    }
}

/// A job that waits for a flush leaves the drive nothing but flushes.
#[test]
fn a_flash_drive_that_empties_its_buffer_is_not_idle() {
    let run = on_6_12("ssd-sata-consumer", RAW);
    let idle = run.drive_ns.idle as f64 / run.runtime_ns as f64;
    assert!(idle < 0.1, "{idle}");
}

#[test]
fn each_kind_of_sync_flushes_the_cache() {
    let jobs = "[a]\nrw=write\nbs=4k\nsize=1g\nnumber_ios=100\n";
    // A synchronous direct write is followed by two flushes without FUA: one that stands for FUA,
    // and that of the system call.
    for (lines, flushes) in [
        ("direct=1\nfsync=1\nend_fsync=1\n", 100),
        ("direct=1\nfdatasync=1\nend_fsync=1\n", 100),
        ("direct=1\nsync=dsync\n", 200),
        ("direct=1\nsync=sync\n", 200),
        ("direct=1\nsync=sync\nioengine=libaio\niodepth=1\n", 200),
        ("direct=1\nend_fsync=1\n", 1),
        ("fsync=1\nend_fsync=1\n", 100),
        ("fdatasync=1\nend_fsync=1\n", 100),
        ("sync=dsync\n", 100),
        ("ioengine=mmap\nfsync=1\nend_fsync=1\n", 100),
    ] {
        let run = on_6_12("cmr-8tb", &format!("{jobs}{lines}"));
        let reads = run.drive_requests - 100 - flushes;
        // Only a mapped page is read before it is written.
        let is_mapped = lines.contains("mmap");
        assert!(if is_mapped { reads > 0 } else { reads == 0 }, "{lines}: {} requests", run.drive_requests);
        if flushes >= 100 {
            assert!(writes_per_s(&run) < 1.01 * REVOLUTIONS_PER_S, "{lines}: {} a second", writes_per_s(&run));
        }
    }
}

#[test]
fn a_drive_with_fua_gets_forced_writes() {
    let jobs = "[a]\nrw=write\nbs=4k\nsize=1g\nnumber_ios=100\ndirect=1\nsync=dsync\n";
    let fua = HostConfig { fua: Some(true), ..HostConfig::kernel(Kernel::V6_12) };
    let run = on_drive("cmr-8tb", jobs, Kind::MqDeadline, fua);
    assert_eq!(run.drive_requests, 2 * 100, "a forced write and the flush of the call");
    assert!(writes_per_s(&run) < 1.01 * REVOLUTIONS_PER_S, "{} a second", writes_per_s(&run));
}

#[test]
fn a_drive_without_a_volatile_cache_gets_no_flush() {
    let jobs = "[a]\nrw=randwrite\nbs=4k\nsize=1g\nnumber_ios=50\ndirect=1\nfsync=1\n";
    assert_eq!(on_6_12("sata-7200-2006", jobs).drive_requests, 50);
    // The controller's battery keeps its cache.
    assert_eq!(on_6_12("array-8x15k", jobs).drive_requests, 50);
    let through = HostConfig { write_back_cache: Some(false), ..HostConfig::kernel(Kernel::V6_12) };
    assert_eq!(on_drive("cmr-8tb", jobs, Kind::MqDeadline, through).drive_requests, 50);
    let without_sync = with_line(jobs, "");
    assert_eq!(on_6_12("cmr-8tb", &without_sync).drive_requests, 50);
}

#[test]
fn a_flush_costs_what_the_protection_of_the_drive_allows() {
    let jobs = "[a]\nrw=randwrite\nbs=4k\nsize=1g\nnumber_ios=2000\ndirect=1\n";
    let rates = |drive: &str| {
        let [plain, synced] = ["", "fdatasync=1\n"].map(|line| writes_per_s(&on_6_12(drive, &format!("{jobs}{line}"))));
        (plain, synced)
    };
    for drive in ["ssd-sata-enterprise", "ssd-nvme-tlc"] {
        let (plain, synced) = rates(drive);
        assert!(synced > 0.3 * plain && synced > 5_000.0, "{drive}: {plain:.0}, synced {synced:.0}");
    }
    for (drive, most) in [("ssd-sata-consumer", 320.0), ("samsung-980-pro", 1000.0)] {
        let (plain, synced) = rates(drive);
        assert!(synced < most && plain > 20.0 * synced, "{drive}: {plain:.0}, synced {synced:.0}");
    }
}

#[test]
fn writers_that_sync_together_share_flushes() {
    let jobs = "[a]\nrw=write\nbs=4k\nsize=1m\nnumjobs=4\nfdatasync=1\nend_fsync=1\n";
    let run = on_6_12("cmr-8tb", jobs);
    let writes = 4 * 256;
    let flushes = run.drive_requests - writes;
    // In a guest of 6.12 four buffered writers sent 0.57 flushes a write: two pairs in turn.
    assert!((writes / 4..=writes * 6 / 10).contains(&flushes), "{flushes} flushes for {writes} writes");
    // Barriers do not share: each drains the queue for itself.
    let barriers = HostConfig { flushes: Flushes::Barriers, ..HostConfig::kernel(Kernel::V3_2) };
    let run = on_drive("cmr-8tb", jobs, Kind::Deadline, barriers);
    assert_eq!(run.drive_requests - writes, writes);
}

#[test]
fn a_commit_flushes_before_and_after_its_block() {
    let jobs = "[a]\nrw=write\nbs=4k\nsize=16k\nfsync=1\nend_fsync=1\nhoistway_journal=ext4\n";
    for kernel in [Kernel::V2_6_24, Kernel::V3_2, Kernel::V4_19, Kernel::V6_1, Kernel::V6_12] {
        let kind = if kernel.name().starts_with('6') { Kind::Bfq } else { Kind::Deadline };
        let host = HostConfig::kernel(kernel);
        // Data, log and commit block, with two flushes; with FUA the block needs none after it.
        for (fua, requests) in [(false, 5), (true, 4)] {
            let host = HostConfig { fua: Some(fua), ..host.clone() };
            let run = on_drive("cmr-8tb", jobs, kind, host);
            assert_eq!(run.drive_requests, 4 * requests, "{}, fua={fua}", kernel.name());
        }
        let through = HostConfig { write_back_cache: Some(false), ..host };
        assert_eq!(on_drive("cmr-8tb", jobs, kind, through).drive_requests, 4 * 3, "{}", kernel.name());
    }
}

#[test]
fn a_write_to_written_blocks_commits_only_if_its_times_have_to_be_safe() {
    // As guests of 6.1 and 6.12 sent to ext4 (docs/guest.md): a write and a flush, or the five
    // requests of a commit.
    let jobs = "[a]\nrw=write\nbs=4k\nsize=64k\noverwrite=1\nhoistway_journal=ext4\n";
    // `fsync` and `fdatasync` leave out the last write.
    for (line, writes, requests) in [
        ("fdatasync=1\n", 15, 2),
        ("sync=dsync\n", 16, 2),
        ("direct=1\nsync=dsync\n", 16, 2),
        ("direct=1\nsync=dsync\nioengine=libaio\niodepth=1\n", 16, 2),
        ("fsync=1\n", 15, 5),
        ("sync=sync\n", 16, 5),
        ("direct=1\nsync=sync\n", 16, 5),
    ] {
        assert_eq!(on_6_12("cmr-8tb", &format!("{jobs}{line}")).drive_requests, writes * requests, "{line}");
    }
    // New blocks are metadata that reading the data needs.
    let jobs = jobs.replace("overwrite=1\n", "sync=dsync\n");
    assert_eq!(on_6_12("cmr-8tb", &jobs).drive_requests, 16 * 5);
}

#[test]
fn writers_of_a_journal_share_a_commit_by_two() {
    // In guests of 6.1 and 6.12 four writers sent two WRITEs and one FLUSH for each write: a commit
    // with its two flushes serves two of them (docs/guest.md).
    let jobs = "[log]\nrw=write\nbs=4k\nsize=1m\nnumjobs=4\nfsync=1\nhoistway_journal=ext4\n";
    let requests_per_write = |kernel| {
        let run = on_drive("cmr-8tb", jobs, Kind::Noop, HostConfig { fua: Some(false), ..HostConfig::kernel(kernel) });
        run.drive_requests as f64 / (4.0 * 256.0)
    };
    for kernel in [Kernel::V6_1, Kernel::V6_12] {
        let rate = requests_per_write(kernel);
        assert!((2.8..=3.2).contains(&rate), "{}: {rate:.2} requests a write", kernel.name());
    }
    // Before 5.6 the blocks are in the transaction before the data, and all four share it.
    let rate = requests_per_write(Kernel::V4_19);
    assert!((1.9..2.6).contains(&rate), "{rate:.2} requests a write");
}

#[test]
fn a_disk_beside_a_journal_flushes_its_cache() {
    // ext3 has no barriers, but a sync of the disk itself flushes it.
    let host = HostConfig { journal: Some(JournalConfig::ext3()), ..HostConfig::kernel(Kernel::V6_12) };
    let jobs = "[a]\nfilename=/dev/sda\nrw=write\nbs=4k\nsize=16k\nfsync=1\nend_fsync=1\ndirect=1\n";
    assert_eq!(on_drive("cmr-8tb", jobs, Kind::MqDeadline, host).drive_requests, 4 * 2);
}

#[test]
fn asynchronous_synchronous_writes_wait_for_the_journal() {
    let jobs =
        "[a]\nrw=write\nbs=4k\nsize=64k\ndirect=1\nsync=sync\nioengine=libaio\niodepth=4\nhoistway_journal=ext4\n";
    let run = on_6_12("cmr-8tb", jobs);
    assert_eq!(run.processes[0].bytes, 64 << 10);
    // Sixteen writes, each with a share of a commit: at least four commits of four more requests.
    assert!(run.drive_requests >= 16 + 4 * 4, "{}", run.drive_requests);
    assert!(run.processes[0].write.clat_ns.min > 8_000_000, "a commit has two flushes of a disk");
}

/// A job that writes 64 blocks one after the other, with a sync after this many of them.
fn deep_log(engine: &str, depth: u32, fsync: u32) -> String {
    format!("[a]\nfilename=/dev/sda\nrw=write\nbs=4k\nsize=256k\nioengine={engine}\niodepth={depth}\nfsync={fsync}\n")
        + "direct=1\n"
}

/// Numbers of `fsync` calls of fio 3.33 for these jobs: `strace` shows that fio takes completed
/// requests from a full queue one at a time, and syncs only after one of a request.
#[test]
fn libaio_syncs_as_often_as_fio_while_requests_are_in_flight() {
    for (depth, fsync, syncs) in [(8, 1, 57), (8, 2, 29), (8, 4, 15), (16, 1, 49), (16, 2, 25), (16, 4, 13)] {
        for drive in ["cmr-8tb", "ssd-nvme-tlc"] {
            let run = on_6_12(drive, &deep_log("libaio", depth, fsync));
            assert_eq!(run.processes[0].sync.n, syncs, "{drive}, iodepth={depth}, fsync={fsync}");
        }
    }
}

/// io_uring and posixaio have syncs in flight, and queue further ones until the first completes:
/// posixaio logs (`write_iolog`) a write, eight syncs, eight writes, eight syncs, and so on.
#[test]
fn an_engine_that_queues_syncs_has_several_in_flight() {
    for engine in ["io_uring", "posixaio"] {
        let run = on_6_12("cmr-8tb", &deep_log(engine, 8, 1));
        let syncs = run.processes[0].sync.n;
        assert!((57..=72).contains(&syncs), "{engine}: {syncs} syncs of 64 writes");
        // Eight writes share a flush; with psync each has its own.
        let alone = on_6_12("cmr-8tb", &deep_log("psync", 1, 1));
        let gain = alone.runtime_ns as f64 / run.runtime_ns as f64;
        assert!((3.0..=9.0).contains(&gain), "{engine}: {gain:.1} times as fast");
    }
}

#[test]
fn a_disk_of_7200_rpm_fails_the_rule_of_etcd() {
    // "the 99th percentile of fdatasync should be less than 10 ms" (etcd's documentation on disks):
    // small sequential writes, each with fdatasync.
    let jobs = "[wal]\nrw=write\nbs=2300\nsize=2m\nfdatasync=1\nhoistway_journal=ext4\n";
    let p99_ms = |drive: &str| {
        let run = on_6_12(drive, jobs);
        run.processes[0].sync.p99 as f64 / 1e6
    };
    let disks = ["cmr-8tb", "cmr-4tb", "cmr-20tb", "st2000dm006", "wd_4tb_7200", "sata-7200-2006", "ata-7200-30"];
    for drive in disks {
        assert!(p99_ms(drive) > 10.0, "{drive}: {} ms", p99_ms(drive));
    }
    for drive in ["ssd-sata-enterprise", "ssd-nvme-tlc"] {
        assert!(p99_ms(drive) < 10.0, "{drive}: {} ms", p99_ms(drive));
    }
}
