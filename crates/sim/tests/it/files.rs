//! Trees of files: the costs of opens and walks.

use crate::common::{bytes, noop, request, run, seconds, with_host};
use hoistway_core::Kind;
use hoistway_sim::{FileSystemConfig, HostConfig, SimError};

/// A tenth of the Linux sources.
const TREE: &str = "hoistway_tree=files=2250,dirs=140";

fn walk(order: &str, more: &str) -> hoistway_sim::Run {
    noop(&format!("[a]\n{TREE}{more}\nhoistway_walk={order}\nbs=128k\n"))
}

#[test]
fn opening_a_small_file_reads_each_block_of_its_path() {
    // 300 names take an index and two blocks or more: the directory's inode, its index, one of the
    // blocks, the file's inode, its data.
    let one = "[a]\nhoistway_tree=files=300,dirs=1,median=300,mean=300,fs=ext3\nhoistway_walk=random\nnumber_ios=1\n";
    let indexed = noop(one);
    assert_eq!((indexed.drive_requests, bytes(&indexed)), (5, 300));
    // Without an index, all blocks up to the one with the name come in one read: one read less.
    let system = FileSystemConfig { directory_index: false, ..FileSystemConfig::ext3() };
    let host = HostConfig { file_system: system, ..HostConfig::default() };
    assert_eq!(with_host(&one.replace(",fs=ext3", ""), host).drive_requests, 4);
    // A hundred names are one block.
    assert_eq!(noop(&one.replace("files=300", "files=100")).drive_requests, 4);
}

#[test]
fn a_second_open_needs_no_read() {
    let twice = "[a]\nhoistway_tree=files=1,dirs=1,median=300,mean=300\nhoistway_walk=random\nloops=2\n";
    let (dropped, kept) = (noop(twice), noop(&format!("{twice}invalidate=0\n")));
    // The block with both inodes, the directory, the data.
    assert_eq!((dropped.drive_requests, kept.drive_requests), (6, 3));
    assert_eq!((bytes(&dropped), bytes(&kept)), (600, 600));
}

#[test]
fn inodes_of_ext4_come_with_their_neighbours() {
    let requests = |system: &str| {
        let jobs =
            format!("[a]\nhoistway_tree=files=2000,dirs=1,median=300,mean=300,fs={system}\nhoistway_walk=inode\n");
        noop(&jobs).drive_requests
    };
    // 2000 inodes of 128 bytes take 63 blocks, read one by one; of 256 bytes in 126, read 32
    // together: about 4 reads.
    let fewer = requests("ext3") - requests("ext4");
    assert!((50..=70).contains(&fewer), "{fewer}");
}

#[test]
fn the_thirteenth_block_of_an_ext3_file_costs_another_read() {
    let requests = |bytes: u64| {
        let tree = format!("hoistway_tree=files=1,dirs=1,median={bytes},mean={bytes},fs=ext3");
        let host = HostConfig { read_ahead_kib: 0, ..HostConfig::default() };
        with_host(&format!("[a]\n{tree}\nbs=64k\n"), host).drive_requests
    };
    // The block with both inodes, the directory; 12 pages or 13 one by one, and the block of
    // numbers.
    assert_eq!((requests(12 * 4096), requests(13 * 4096)), (2 + 12, 2 + 1 + 13));
}

#[test]
fn find_reads_all_directories_before_the_first_file() {
    let (find, readdir) = (walk("find", ""), walk("readdir", ""));
    assert_eq!((bytes(&find), find.drive_bytes), (bytes(&readdir), readdir.drive_bytes));
    assert_ne!(find.drive_ns.seek, readdir.drive_ns.seek);
    // The names of one directory are in one block, and each file needs its inode and its data.
    let first = "[a]\nhoistway_tree=files=400,dirs=40,median=300,mean=300,fs=ext3\nhoistway_walk=find\nnumber_ios=1\n";
    assert!(noop(first).drive_requests > 40, "{}", noop(first).drive_requests);
    assert!(noop(&first.replace("find", "readdir")).drive_requests < 40);
}

#[test]
fn each_clone_may_have_a_tree_of_its_own() {
    let moved =
        |own: &str| noop(&format!("[a]\nhoistway_tree=files=300,dirs=20{own}\nnumjobs=3\nbs=128k\n")).drive_bytes;
    let (shared, own) = (moved(""), moved(",own"));
    assert!((2 * shared..4 * shared).contains(&own), "{own} {shared}");
}

#[test]
fn every_walk_moves_all_bytes_and_orders_closer_to_the_disk_are_faster() {
    for age in ["", ",age=3"] {
        let order = ["readdir", "block", "sweep"].map(|order| walk(order, age));
        assert_eq!(bytes(&order[0]), bytes(&order[1]));
        assert_eq!(bytes(&order[0]), bytes(&walk("single", age)));
        assert!(seconds(&order[0]) > 3.0 * seconds(&order[1]), "{age}");
        // A sweep moves whole blocks; the pass over directories and inodes is the same.
        assert!(seconds(&order[1]) > 0.9 * seconds(&order[2]), "{age}");
        assert!((0..2250 * 4096).contains(&(bytes(&order[2]) - bytes(&order[0]))));
    }
}

#[test]
fn an_aged_file_system_is_slower_in_every_order() {
    for order in ["readdir", "inode", "block", "sweep"] {
        assert!(seconds(&walk(order, ",age=3")) > 1.1 * seconds(&walk(order, "")), "{order}");
    }
    // One file in one piece is as fast as it was.
    assert!((seconds(&walk("single", ",age=3")) / seconds(&walk("single", "")) - 1.0).abs() < 0.2);
}

#[test]
fn a_scheduler_has_no_effect_on_a_single_sequential_walk() {
    let jobs = format!("[a]\n{TREE}\nbs=10k\n");
    let comparison = run(&request(&jobs, &[Kind::Noop, Kind::Deadline, Kind::CfqV3])).expect("a run");
    let times: Vec<f64> = comparison.runs.iter().map(seconds).collect();
    assert!(times.iter().all(|time| (time / times[0] - 1.0).abs() < 0.03), "{times:?}");
}

/// The page of the example `archive`, with a tenth of its files.
#[test]
fn the_five_orders_of_the_example_rank_as_on_its_page() {
    let jobs = include_str!("../../../../examples/archive.fio");
    let times = |age: &str| {
        let jobs = jobs.replace("hoistway_tree=linux\n", &format!("{TREE}{age}\n"));
        let run = noop(&jobs);
        run.processes.iter().map(|process| process.runtime_ns as f64 / 1e9).collect::<Vec<f64>>()
    };
    let (fresh, used) = (times(""), times(",age=3"));
    // tar, inodes, qtar, sweep, single.
    assert!(fresh[0] > 6.0 * fresh[2] && fresh[2] >= fresh[4], "{fresh:?}");
    assert!((fresh[1] / fresh[2] - 1.0).abs() < 0.1, "{fresh:?}");
    // A sweep in disk order gains nothing over the order of first blocks: the drive reads on.
    assert!(used[0] > used[1] && used[1] > used[2] && used[2].min(used[3]) > used[4], "{used:?}");
    assert!((used[3] / used[2] - 1.0).abs() < 0.2, "{used:?}");
    assert!(used[1] > 0.5 * used[0] && used[2] < 0.3 * used[0], "{used:?}");
}

#[test]
fn jobs_that_describe_the_same_tree_read_the_same_files() {
    let two =
        noop(&format!("[a]\n{TREE}\nhoistway_walk=name\n[b]\n{TREE}\nhoistway_walk=name\nstonewall\ninvalidate=0\n"));
    // The second finds all of it in memory.
    let (first, second) = (&two.processes[0], &two.processes[1]);
    assert_eq!(first.bytes, second.bytes);
    assert!(second.runtime_ns * 10 < first.runtime_ns, "{} and {}", first.runtime_ns, second.runtime_ns);
}

#[test]
fn a_walk_respects_rate_runtime_thinktime_and_number_ios() {
    let time = |more: &str| seconds(&noop(&format!("[a]\n{TREE}\nbs=10k\n{more}")));
    assert!((time("rate_iops=100\nnumber_ios=200\n") - 2.0).abs() < 0.1);
    assert!((time("runtime=1\ntime_based\n") - 1.0).abs() < 0.05);
    assert!(time("thinktime=10000\nnumber_ios=100\n") > 1.0);
}

#[test]
fn files_of_jobs_share_the_file_system_of_the_tree() {
    let jobs = format!("[a]\n{TREE}\nrate_iops=100\nnumber_ios=50\n[b]\nsize=64m\nhoistway_reserve=1m\n");
    assert_eq!(noop(&jobs).processes[1].bytes, 64 << 20);
}

#[test]
fn trees_of_two_file_systems_and_one_that_does_not_fit_are_errors() {
    let error = |jobs: &str| match run(&request(jobs, &[Kind::Noop])) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{jobs}: taken"),
    };
    let two = error("[a]\nhoistway_tree=files=10,dirs=1,fs=ext3\n[b]\nhoistway_tree=files=10,dirs=1,fs=ext4\n");
    assert!(two.contains("test.fio:3") && two.contains("another file system than that of line 1"), "{two}");
    let large = error("[a]\nhoistway_tree=files=1000,dirs=1,median=1g,mean=1g\n");
    assert!(large.contains("test.fio:1") && large.contains("`the tree` smaller"), "{large}");
}

#[test]
fn an_invalid_file_system_is_an_error() {
    let system = FileSystemConfig { inode_bytes: 100, ..FileSystemConfig::ext3() };
    let host = HostConfig { file_system: system, ..HostConfig::default() };
    let error: SimError = host.check().unwrap_err();
    assert_eq!(error.to_string(), "host setting inode_bytes is 100: it takes 128 or 256");
}
