//! The cost of syncs on a file system with a journal; each expected sum is derived beside it.

use crate::common::{noop, request, run, with_host};
use hoistway_core::Kind;
use hoistway_sim::{CompareRequest, CpuCosts, HostConfig, Kernel, Run, elevator_of_name};

/// Requests of the drive, and blocks that it was asked for.
fn asked(run: &Run) -> (u64, u64) {
    (run.drive_requests, run.drive_bytes / 4096)
}

fn writer(more: &str) -> (u64, u64) {
    asked(&noop(&format!("[a]\nrw=write\nsize=16k\n{more}")))
}

/// The host of a drive whose cache is flushed.
fn cached(host: HostConfig) -> HostConfig {
    HostConfig { write_back_cache: Some(true), ..host }
}

/// A writer on a drive with a volatile cache.
fn cached_writer(more: &str) -> (u64, u64) {
    asked(&with_host(&format!("[a]\nrw=write\nsize=16k\n{more}"), cached(HostConfig::default())))
}

/// A writer of a file that was there before, on a drive with a volatile cache.
fn overwriter(more: &str) -> (u64, u64) {
    let (read_requests, read) = asked(&noop("[r]\nfilename=x\nsize=16k\nbs=16k\n"));
    let jobs = format!("[r]\nfilename=x\nsize=16k\nbs=16k\n[w]\nfilename=x\nrw=write\nsize=16k\nstonewall\n{more}");
    let (requests, blocks) = asked(&with_host(&jobs, cached(HostConfig::default())));
    (requests - read_requests, blocks - read)
}

#[test]
fn a_sync_of_a_growing_file_writes_data_log_and_commit_block() {
    assert_eq!(writer("fsync=1\nend_fsync=1\n"), (4, 4));
    // Four times: a block of data; descriptor, inode, bitmap and group descriptor in one write; the
    // commit block.
    assert_eq!(writer("fsync=1\nend_fsync=1\nhoistway_journal=ext3\n"), (4 * 3, 4 * (1 + 4 + 1)));
    assert_eq!(cached_writer("fsync=1\nend_fsync=1\nhoistway_journal=ext3\n"), (4 * 3, 4 * (1 + 4 + 1)));
    // With barriers, the drive's cache is flushed before and after the commit block.
    assert_eq!(cached_writer("fsync=1\nend_fsync=1\nhoistway_journal=ext4\n"), (4 * 5, 4 * (1 + 4 + 1)));
    // A drive that writes through has no cache to flush.
    assert_eq!(writer("fsync=1\nend_fsync=1\nhoistway_journal=ext4\n"), (4 * 3, 4 * (1 + 4 + 1)));
}

/// Requests and blocks of jobs under the elevators of 6.12.
fn asked_on_6_12(jobs: &str) -> Vec<(u64, u64)> {
    let kinds = ["none", "mq-deadline", "kyber", "bfq"].map(|name| elevator_of_name(name).expect("it is built in"));
    let request = CompareRequest { host: cached(HostConfig::kernel(Kernel::V6_12)), ..request(jobs, &kinds) };
    run(&request).expect("no world is stuck").runs.iter().map(asked).collect()
}

#[test]
fn a_flush_that_passes_the_queue_is_a_request_of_its_own() {
    let jobs = "[a]\nrw=write\nsize=16k\nfsync=1\nend_fsync=1\nhoistway_journal=ext4\n";
    assert_eq!(asked_on_6_12(jobs), [(4 * 5, 4 * (1 + 4 + 1)); 4]);
}

#[test]
fn syncs_of_several_processes_end_beside_a_reader() {
    let jobs =
        "[a]\nrw=write\nbs=4k\nsize=1m\nfsync=1\nnumjobs=3\nhoistway_journal=ext4\n[r]\nrw=read\nbs=64k\nsize=16m\n";
    for (requests, blocks) in asked_on_6_12(jobs) {
        // Each of the 768 writes is synced by a transaction that it shares with two others at most.
        assert!(blocks >= 768 + 4096 + 256 * 5 && requests > 768 + 256 * 4, "{requests} {blocks}");
    }
}

#[test]
fn a_file_of_constant_size_logs_its_inode_only() {
    assert_eq!(overwriter("fsync=1\nend_fsync=1\nhoistway_journal=ext3\n"), (4 * 3, 4 * (1 + 2 + 1)));
    // Its times alone are nothing to fdatasync; but ext4 flushes the drive's cache.
    // The last of the four writes is not synced.
    assert_eq!(overwriter("fdatasync=1\nhoistway_journal=ext3\n"), (3, 3));
    assert_eq!(overwriter("fdatasync=1\nhoistway_journal=ext4\n"), (3 * 2, 3));
}

#[test]
fn a_synchronous_direct_write_waits_for_the_journal() {
    for direct in [0, 1] {
        let jobs = format!("sync=1\ndirect={direct}\n");
        assert_eq!(writer(&jobs), (4, 4), "direct={direct}");
        assert_eq!(cached_writer(&jobs), (4 * 2, 4), "direct={direct}: a flush after each");
        let journalled = writer(&format!("{jobs}hoistway_journal=ext3\n"));
        assert_eq!(journalled, (4 * 3, 4 * (1 + 4 + 1)), "direct={direct}");
    }
}

#[test]
fn without_a_sync_a_transaction_is_committed_after_five_seconds() {
    // Ten blocks a second for 12 s: transactions from 0 to 5 s and from 5.1 to 10.1 s, each with
    // its 50 or 51 blocks of data in one write.
    let jobs = "rw=write\nsize=4m\nrate_iops=10\nruntime=12\n";
    let none = noop(&format!("[a]\n{jobs}"));
    assert_eq!(asked(&none), (0, 0));
    let (requests, blocks) = asked(&noop(&format!("[a]\n{jobs}hoistway_journal=ext3\n")));
    assert_eq!(requests, 2 * 3);
    assert!((100..=104).contains(&(blocks - 2 * 5)), "{blocks}");
}

#[test]
fn ext3_orders_the_data_of_all_files_and_ext4_that_of_grown_files() {
    // `a` overwrites a megabyte that it does not sync; `b` grows by a block and syncs it.
    let jobs = |system: &str| {
        let text = format!(
            "[global]\nhoistway_journal={system}\n[r]\nfilename=x\nsize=1m\nbs=1m\n[a]\nfilename=x\nrw=write\nsize=1m\nbs=1m\nstonewall\n\
             [b]\nrw=write\nsize=4k\nend_fsync=1\nstonewall\n"
        );
        noop(&text).drive_bytes / 4096
    };
    // 256 blocks read; ext3 writes them before the commit that `b` waits for. One of data, 1 + 1 +
    // 3 of log, one of commit.
    assert_eq!((jobs("ext3"), jobs("ext4")), (256 + 256 + 7, 256 + 7));
}

#[test]
fn bios_of_a_commit_take_the_time_of_the_journals_thread() {
    // `a` makes 64 blocks dirty that are not adjacent, and the commit that `b` waits for writes
    // them first. A bio takes a processor 20 ms, the disk 9 ms.
    let jobs = "[global]\nhoistway_journal=ext3\nbs=4k\n[a]\nrw=write:4k\nsize=512k\n\
                [b]\nrw=write\nsize=8k\nfsync=1\nstonewall\n";
    let sync_ms = |bio_ns: u64| {
        let costs = CpuCosts { bio_ns, ..HostConfig::default().costs };
        let run = with_host(jobs, HostConfig { costs, cpus: 2, ..HostConfig::default() });
        run.processes[1].sync.mean / 1e6
    };
    let (free, costly) = (sync_ms(0), sync_ms(20_000_000));
    assert!(costly >= 64.0 * 20.0 && free < 64.0 * 20.0, "{free} ms and {costly} ms");
}

#[test]
fn old_metadata_is_written_to_its_final_place() {
    // A transaction at 5 s makes three blocks dirty, which are old 30 s later.
    let jobs =
        "[a]\nrw=write\nsize=4k\nhoistway_journal=ext3\n[clock]\nrw=read\nsize=64k\nthinktime=45000000\nnumber_ios=2\n";
    let blocks = asked(&noop(jobs)).1;
    let read = asked(&noop("[clock]\nrw=read\nsize=64k\nthinktime=45000000\nnumber_ios=2\n")).1;
    assert_eq!(blocks - read, 1 + 4 + 1 + 3);
}

#[test]
fn every_elevator_completes_a_commit() {
    let elevators = Kind::ALL;
    let jobs = "[a]\nrw=write\nsize=64k\nfsync=4\nhoistway_journal=ext4\nnumjobs=2\n[b]\nsize=1m\ndirect=1\n";
    let comparison = run(&request(jobs, elevators)).expect("a run");
    for run in comparison.runs {
        assert_eq!(run.processes[0].bytes, 64 << 10, "{}", run.elevator);
    }
}

#[test]
fn jobs_with_two_journals_are_an_error() {
    let jobs = "[a]\nsize=1m\nhoistway_journal=ext3\n[b]\nsize=1m\nhoistway_journal=ext4\n";
    let error = run(&request(jobs, &[Kind::Noop])).expect_err("two journals").to_string();
    assert!(error.contains("test.fio:4") && error.contains("not that of job `a` of line 1"), "{error}");
}
