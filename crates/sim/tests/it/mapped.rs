//! Mapped files: reads and costs of page faults.

use crate::common::{noop, with_host};
use hoistway_sim::{CpuCosts, HostConfig, Run};

fn mapped(more: &str) -> Run {
    noop(&format!("[a]\nioengine=mmap\nsize=64m\n{more}"))
}

/// Pages that the drive served.
fn pages_read(run: &Run) -> u64 {
    run.drive_bytes / 4096
}

#[test]
fn a_fault_reads_by_the_advice_of_the_process() {
    let random = |hint: u32| mapped(&format!("rw=randread\nnumber_ios=20\nfadvise_hint={hint}\n"));
    // With random advice, each page alone. Without advice, 128 KiB around the page, without cached
    // pages and pages beyond the file.
    assert_eq!(pages_read(&random(1)), 20);
    assert!((20 * 24..=20 * 32).contains(&pages_read(&random(0))), "{}", pages_read(&random(0)));
    // A random read of 16 KiB is four faults; a call would have asked for four pages at once.
    let large = |engine: &str| {
        let jobs = format!("[a]\nioengine={engine}\nsize=64m\nrw=randread\nbs=16k\nnumber_ios=20\n");
        noop(&jobs).drive_requests
    };
    assert_eq!((large("mmap"), large("psync\nfadvise_hint=0")), (80, 20));
}

#[test]
fn a_sequentially_read_mapped_file_is_read_ahead() {
    let (advised, silent) = (mapped(""), mapped("fadvise_hint=0\n"));
    let psync = noop("[a]\nsize=64m\nfadvise_hint=0\n");
    assert!(advised.drive_requests <= psync.drive_requests + 2);
    // Windows around missing pages are adjacent: half of each is cached already, so there are twice
    // as many.
    assert_eq!((pages_read(&silent), pages_read(&advised)), (16384, 16384));
    assert!(silent.drive_requests >= 2 * psync.drive_requests, "{}", silent.drive_requests);
}

#[test]
fn writing_a_whole_mapped_page_reads_it_first() {
    let writes = |engine: &str| {
        let jobs = format!("[a]\nioengine={engine}\nsize=4m\nrw=randwrite\nend_fsync=1\n");
        noop(&jobs).drive_bytes >> 20
    };
    assert_eq!((writes("psync"), writes("mmap")), (4, 8));
}

#[test]
fn a_mapped_page_becomes_dirty_without_a_call_and_is_synced_by_one() {
    let costs = CpuCosts { system_call_ns: 1000, ..CpuCosts::NONE };
    let cpu = |costs: CpuCosts, more: &str| {
        let host = HostConfig { costs, ..HostConfig::default() };
        let run = with_host(&format!("[a]\nioengine=mmap\nsize=1m\nrw=write\n{more}"), host);
        (run.processes[0].cpu_ns, run.processes[0].write.bytes)
    };
    assert_eq!(cpu(costs, ""), (0, 1 << 20));
    // 256 pages, an msync after each 64 but the last.
    assert_eq!(cpu(costs, "fsync=64\n"), (3000, 1 << 20));
    // A fault for each of 256 pages. In a second pass they are mapped and dirty; after an msync
    // they are clean, and fault again.
    let faults = CpuCosts { system_call_ns: 0, fault_ns: 1000, ..costs };
    assert_eq!(cpu(faults, "").0, 256_000);
    assert_eq!(cpu(faults, "loops=2\ninvalidate=0\n").0, 256_000);
    assert_eq!(cpu(faults, "loops=2\ninvalidate=0\nfsync=256\n").0, 512_000);
}

#[test]
fn o_sync_does_not_write_a_mapped_page_through() {
    let requests = |engine: &str| {
        let jobs = format!("[a]\nioengine={engine}\nsize=64k\nrw=write\nsync=1\n");
        noop(&jobs).drive_requests
    };
    // Sixteen writes through; none, but the pages are read.
    assert_eq!(requests("psync"), 16);
    assert!(requests("mmap") <= 4, "{}", requests("mmap"));
}
