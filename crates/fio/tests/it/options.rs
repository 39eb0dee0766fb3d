//! Every option that is supported, one by one. Values were checked against the manual of fio 3.33
//! and by running it.

use crate::common::{job, parse_text};
use hoistway_fio::{
    BlockSize, Direction, Directions, Distribution, FileSystemKind, Ioengine, RateProcess, Rw, Sequencer, Size,
    SplitEntry, Walk, Zone, units::KbBase,
};

const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

fn split(entries: &[(u64, u8)]) -> BlockSize {
    BlockSize::Split(entries.iter().map(|&(bytes, percent)| SplitEntry { bytes, percent }).collect())
}

/// The values for reads and writes.
fn pair<T>(directions: Directions<T>) -> (T, T) {
    (directions.read, directions.write)
}

#[test]
fn a_job_without_options_has_the_defaults_of_fio() {
    let job = job("");
    assert_eq!((job.requests.rw, job.submission.ioengine, job.cache.direct), (Rw::Read, Ioengine::Psync, false));
    assert_eq!((job.submission.iodepth, job.start.numjobs, job.files.nrfiles, job.amount.loops), (1, 1, 1, 1));
    assert_eq!(job.blocks.bs, Directions::both(BlockSize::Fixed(4096)));
    assert_eq!((job.requests.rwmixread, job.pauses.thinktime_blocks, job.reporting.bwavgtime_ms), (50, 1, 500));
    assert_eq!((job.priority.prio, job.priority.prioclass, job.priority.nice), (None, None, None));
    assert_eq!(job.start.startdelay_ns, 0..=0);
}

#[test]
fn rw_takes_every_pattern_and_both_names() {
    let patterns = [
        ("read", Rw::Read),
        ("write", Rw::Write),
        ("randread", Rw::Randread),
        ("randwrite", Rw::Randwrite),
        ("rw", Rw::Readwrite),
        ("readwrite", Rw::Readwrite),
        ("randrw", Rw::Randrw),
    ];
    for (name, rw) in patterns {
        assert_eq!(job(&format!("rw={name}")).requests.rw, rw);
        assert_eq!(job(&format!("readwrite={name}")).requests.rw, rw);
    }
    assert!(Rw::Randrw.reads() && Rw::Randrw.writes() && Rw::Randrw.is_random());
    for (name, rw, writes) in [
        ("trim", Rw::Trim, false),
        ("randtrim", Rw::Randtrim, false),
        ("trimwrite", Rw::Trimwrite, true),
        ("randtrimwrite", Rw::Randtrimwrite, true),
    ] {
        assert_eq!((job(&format!("rw={name}")).requests.rw, rw.to_string().as_str()), (rw, name));
        assert!(rw.trims() && !rw.reads() && rw.writes() == writes && rw.trims_before_writes() == writes);
    }
    assert!(!Rw::Write.reads() && !Rw::Read.writes() && !Rw::Readwrite.is_random());
}

#[test]
fn rw_takes_a_number_after_a_colon() {
    assert_eq!(job("rw=randread:8").requests.rw_modifier, Some(8));
    assert_eq!(job("rw=write:4k").requests.rw_modifier, Some(4096));
    assert_eq!(job("rw=read:-8k").requests.rw_modifier, Some(-8192), "backwards");
    assert_eq!(job("rw=read").requests.rw_modifier, None);
    assert_eq!(job("rw_sequencer=identical").requests.rw_sequencer, Sequencer::Identical);
}

#[test]
fn bs_gives_reads_and_writes_their_sizes() {
    let fixed = |read, write| (BlockSize::Fixed(read), BlockSize::Fixed(write));
    assert_eq!(pair(job("bs=256k").blocks.bs), fixed(262_144, 262_144));
    assert_eq!(pair(job("blocksize=8k,32k").blocks.bs), fixed(8192, 32_768));
    assert_eq!(pair(job("bs=8k,32k,").blocks.bs), fixed(8192, 32_768));
    assert_eq!(pair(job("bs=8k,32k,64k").blocks.bs), fixed(8192, 32_768));
    assert_eq!(pair(job("bs=,8k").blocks.bs), fixed(4096, 8192));
    assert_eq!(pair(job("bs=8k,").blocks.bs), fixed(8192, 4096));
    assert_eq!(pair(job("bs=64k\nbs=,8k").blocks.bs), fixed(65_536, 8192), "a blank leaves what was set before");
}

#[test]
fn bsrange_accepts_its_ends_in_any_order() {
    let range = |min, max| BlockSize::Range { min, max };
    assert_eq!(job("bsrange=1k-4k").blocks.bs, Directions::both(range(1024, 4096)));
    assert_eq!(job("bsrange=4k:1k").blocks.bs, Directions::both(range(1024, 4096)));
    assert_eq!(job("blocksize_range=1k-4k,8k-16k").blocks.bs.write, range(8192, 16_384));
    assert_eq!(job("bsrange=1k-4k/8k-32k").blocks.bs.write, range(8192, 32_768), "the older delimiter");
    assert_eq!((range(1024, 4096).min(), range(1024, 4096).max()), (1024, 4096));
}

#[test]
fn bssplit_blanks_share_the_rest() {
    assert_eq!(job("bssplit=4k/10:64k/50:32k/40").blocks.bs.read, split(&[(4096, 10), (65_536, 50), (32_768, 40)]));
    assert_eq!(job("bssplit=4k/50:1k/:32k/").blocks.bs.read, split(&[(4096, 50), (1024, 25), (32_768, 25)]));
    assert_eq!(job("bssplit=4k/50:8k/30:64k").blocks.bs.read, split(&[(4096, 50), (8192, 30), (65_536, 20)]));
    // 100 / 3 = 33, 1 left over: 34 + 33 + 33 = 100.
    assert_eq!(job("bssplit=4k/:8k/:16k/").blocks.bs.read, split(&[(4096, 34), (8192, 33), (16_384, 33)]));
    let both = job("bssplit=2k/50:4k/50,4k/90:8k/10").blocks.bs;
    assert_eq!(both.read, split(&[(2048, 50), (4096, 50)]));
    assert_eq!(both.write, split(&[(4096, 90), (8192, 10)]));
    assert_eq!((both.write.min(), both.write.max()), (4096, 8192));
}

#[test]
fn sizes_are_bytes_or_percentages() {
    assert_eq!(job("size=128m").region.size_or_all(), Size::Bytes(128 << 20));
    assert_eq!(job("size=20%").region.size_or_all(), Size::Percent(20));
    assert_eq!(job("io_size=2m").amount.io_size, Some(Size::Bytes(2 << 20)));
    assert_eq!(job("io_limit=50%").amount.io_size, Some(Size::Percent(50)));
    assert_eq!(job("offset=8k").region.offset, Size::Bytes(8192));
    assert_eq!(job("fileoffset=25%").region.offset, Size::Percent(25));
    assert_eq!(job("offset_increment=1g").region.offset_increment, Size::Bytes(1 << 30));
    assert_eq!(job("offset_align=4k").region.offset_align, 4096);
    assert_eq!(Size::Percent(33).of(1_000), 330);
    assert_eq!(Size::Percent(99).of(u64::MAX), 18_262_276_632_972_456_098, "no overflow");
    assert_eq!(Size::Percent(33).to_string(), "33%");
    assert_eq!(Size::Bytes(8192).to_string(), "8k");
}

#[test]
fn a_device_needs_no_size_and_is_used_whole() {
    let file = crate::common::parse_text("[j]\nfilename=/dev/sda:/dev/sdb\n").expect("devices know their size");
    assert_eq!((file.jobs[0].region.size, file.jobs[0].region.size_or_all()), (None, Size::Percent(100)));
}

#[test]
fn filesize_may_be_a_range_and_stands_for_size() {
    assert_eq!(job("filesize=4k-8k").region.filesize, Some(4096..=8192));
    assert_eq!(job("filesize=8k:4k").region.filesize, Some(4096..=8192));
    let file = crate::common::parse_text("[j]\nfilesize=64k\n").expect("filesize is a size");
    assert_eq!(file.jobs[0].region.filesize, Some(65_536..=65_536));
}

#[test]
fn kb_base_holds_for_values_above_it_too() {
    let job = job("size=40k\nbs=1kib\nkb_base=1000\n");
    assert_eq!((job.region.size_or_all(), job.kb_base), (Size::Bytes(40_000), KbBase::Standard));
    assert_eq!(job.blocks.bs.read, BlockSize::Fixed(1024));
}

#[test]
fn filenames_are_separated_by_colons_and_may_hold_escaped_ones() {
    assert_eq!(job("filename=/dev/sda:/dev/sdb").files.filename, ["/dev/sda", "/dev/sdb"]);
    assert_eq!(job(r"filename=/dev/dsk/foo@3,0\:c").files.filename, ["/dev/dsk/foo@3,0:c"]);
    assert_eq!(job("directory=/a:/b").files.directory, ["/a", "/b"]);
}

#[test]
fn generated_file_names_are_those_of_fio() {
    let job1 = job("nrfiles=2\nnumjobs=2");
    assert_eq!(job1.files_of_clone(0), ["j.0.0", "j.0.1"]);
    assert_eq!(job1.files_of_clone(1), ["j.1.0", "j.1.1"]);
    let job2 = job("directory=/a/:/b\nfilename_format=$jobname-$jobnum/$filenum.dat");
    assert_eq!(job2.files_of_clone(0), ["/a/j-0/0.dat"]);
    assert_eq!(job2.files_of_clone(1), ["/b/j-1/0.dat"]);
    let job3 = job("directory=/a:/b\nfilename=x:y\nnr_files=7");
    assert_eq!(job3.files_of_clone(1), ["/a/x", "/a/y"], "a given name is shared by all clones");
}

#[test]
fn counts_are_taken() {
    let job = job("numjobs=8\niodepth=32\nloops=3\nnumber_ios=1k\nfsync=32\nfdatasync=16\nnrfiles=4");
    assert_eq!((job.start.numjobs, job.submission.iodepth, job.amount.loops, job.files.nrfiles), (8, 32, 3, 4));
    assert_eq!((job.amount.number_ios, job.syncs.fsync, job.syncs.fdatasync), (Some(1024), 32, 16));
    assert_eq!(crate::common::job("number_ios=0").amount.number_ios, None);
}

#[test]
fn engines_are_synchronous_or_asynchronous() {
    let engines = [
        ("sync", Ioengine::Sync, true),
        ("psync", Ioengine::Psync, true),
        ("vsync", Ioengine::Vsync, true),
        ("pvsync", Ioengine::Pvsync, true),
        ("pvsync2", Ioengine::Pvsync2, true),
        ("mmap", Ioengine::Mmap, true),
        ("null", Ioengine::Null, true),
        ("libaio", Ioengine::Libaio, false),
        ("io_uring", Ioengine::IoUring, false),
        ("posixaio", Ioengine::PosixAio, false),
    ];
    assert_eq!(engines.len(), Ioengine::ALL.len());
    for (name, engine, synchronous) in engines {
        let job = job(&format!("ioengine={name}\niodepth=8"));
        assert_eq!(
            (job.submission.ioengine, job.submission.ioengine.is_synchronous()),
            (engine, synchronous),
            "{name}"
        );
        assert_eq!(job.submission.effective_iodepth(), if synchronous { 1 } else { 8 }, "{name}");
        assert_eq!(engine.to_string(), name);
    }
}

#[test]
fn buffered_is_the_opposite_of_direct_and_the_later_stands() {
    assert!(job("direct=1").cache.direct);
    assert!(job("buffered=0").cache.direct);
    assert!(!job("direct=1\nbuffered=1").cache.direct);
    assert!(job("buffered=1\ndirect=1").cache.direct);
}

#[test]
fn times_without_a_unit_are_seconds_but_thinktime_is_microseconds() {
    assert_eq!(job("runtime=30").end.runtime_ns, Some(30 * S));
    assert_eq!(job("timeout=500ms").end.runtime_ns, Some(500 * MS));
    assert_eq!(job("runtime=0").end.runtime_ns, None, "no limit");
    assert_eq!(job("ramp_time=2").start.ramp_time_ns, 2 * S);
    assert_eq!(job("startdelay=5").start.startdelay_ns, 5 * S..=5 * S);
    assert_eq!(job("startdelay=100ms-50ms").start.startdelay_ns, 50 * MS..=100 * MS);
    assert_eq!(job("thinktime=5").pauses.thinktime_ns, 5_000);
    assert_eq!(job("thinktime=5ms\nthinktime_spin=20").pauses.thinktime_spin_ns, 20_000);
    assert_eq!(job("thinktime=1\nthinktime_blocks=4").pauses.thinktime_blocks, 4);
    assert!(job("time_based\nruntime=1").end.time_based);
    assert!(!job("time_based=0").end.time_based);
}

#[test]
fn rates_cap_one_direction_or_both() {
    let caps = |read, write| (read, write);
    assert_eq!(pair(job("rate=1m").rates.rate), caps(Some(1 << 20), Some(1 << 20)));
    assert_eq!(pair(job("rate=1m,500k").rates.rate), caps(Some(1 << 20), Some(512_000)));
    assert_eq!(pair(job("rate=,500k").rates.rate), caps(None, Some(512_000)));
    assert_eq!(pair(job("rate=500k,").rates.rate), caps(Some(512_000), None));
    assert_eq!(pair(job("rate=1m\nrate=0").rates.rate), caps(None, None), "zero lifts the cap");
    assert_eq!(pair(job("rate_iops=100,200").rates.rate_iops), caps(Some(100), Some(200)));
    assert_eq!(job("rate_process=poisson").rates.rate_process, RateProcess::Poisson);
    assert_eq!(job("rate_process=linear").rates.rate_process, RateProcess::Linear);
}

#[test]
fn the_mix_is_set_from_either_side() {
    assert_eq!(job("rwmixread=70").requests.rwmixread, 70);
    assert_eq!(job("rwmixwrite=10").requests.rwmixread, 90);
    assert_eq!(job("rwmixread=30\nrwmixwrite=50").requests.rwmixread, 50, "the latter overrides");
    assert_eq!(pair(job("percentage_random=80,20").requests.percentage_random), (80, 20));
}

#[test]
fn random_offsets_are_described() {
    assert_eq!(job("randseed=0x89").requests.randseed, Some(0x89));
    assert!(job("norandommap").requests.norandommap);
    assert_eq!(job("random_distribution=random").requests.random_distribution, Distribution::Random);
    assert_eq!(job("random_distribution=zipf:1.2").requests.random_distribution, Distribution::Zipf(1.2));
    assert_eq!(job("random_distribution=pareto:0.9").requests.random_distribution, Distribution::Pareto(0.9));
    assert_eq!(job("random_distribution=normal:20").requests.random_distribution, Distribution::Normal(20.0));
    let zone = |access_percent, span_percent| Zone { access_percent, span_percent };
    assert_eq!(
        job("random_distribution=zoned:60/10:30/20:8/30:2/40").requests.random_distribution,
        Distribution::Zoned(vec![zone(60, 10), zone(30, 20), zone(8, 30), zone(2, 40)])
    );
}

#[test]
fn writes_are_synchronous_by_any_of_the_words() {
    use hoistway_fio::WriteSync::{Dsync, None, Sync};
    for (value, sync) in [("none", None), ("0", None), ("sync", Sync), ("1", Sync), ("dsync", Dsync)] {
        assert_eq!(job(&format!("sync={value}")).syncs.sync, sync, "{value}");
    }
    assert!(job("end_fsync=1").syncs.end_fsync);
}

#[test]
fn standing_is_taken() {
    let job = job("prio=7\nprioclass=3\nnice=-20\ncgroup=web\ncgroup_weight=500\nname=other");
    assert_eq!((job.priority.prio, job.priority.prioclass, job.priority.nice), (Some(7), Some(3), Some(-20)));
    assert_eq!((job.cgroup.path.as_deref(), &job.cgroup.weights[..]), (Some("web"), &[500][..]));
    assert_eq!(job.name, "other");
}

#[test]
fn nested_groups_are_listed_from_the_top() {
    let text = "[global]\nsize=1m\ncgroup_weight=70\n[a]\ncgroup=users/alice\ncgroup_weight=300/50\n[b]\ncgroup=users/bob\n\
                [c]\ncgroup=users\ncgroup_weight=300\n[d]\ncgroup=system/log/old\n[e]\n";
    let file = crate::common::parse_text(text).expect("each group has one weight");
    let groups: Vec<(String, Option<u32>)> =
        file.cgroups().into_iter().map(|group| (group.path, group.weight)).collect();
    // A group without a weight option has no weight; the weight of all jobs is that of each one's
    // own group.
    let expected = [
        ("users", Some(300)),
        ("users/alice", Some(50)),
        ("users/bob", Some(70)),
        ("system", None),
        ("system/log", None),
        ("system/log/old", Some(70)),
    ];
    assert_eq!(groups, expected.map(|(path, weight)| (path.to_owned(), weight)));
    assert_eq!(file.jobs[0].cgroup.way(), [("users", Some(300)), ("users/alice", Some(50))]);
    assert_eq!(file.jobs[4].cgroup.way(), []);
}

#[test]
fn a_reservation_is_a_rate() {
    assert_eq!(job("hoistway_reserve=10m").hoistway.reserve, Some(10 << 20));
    assert_eq!(job("").hoistway.reserve, None);
}

#[test]
fn a_tree_is_described_in_parts_and_linux_sets_the_defaults() {
    let tree = |value: &str| job(&format!("hoistway_tree={value}")).hoistway.tree.expect("a tree");
    let linux = tree("linux");
    assert_eq!((linux.files, linux.directories, linux.rounds, linux.full_percent), (22_500, 1_400, 0, 0));
    let own = tree("files=1k,dirs=50,median=300,mean=300,age=3,fs=ext3");
    assert_eq!((own.files, own.median_bytes, own.mean_bytes, own.full_percent), (1024, 300, 300, 80));
    assert_eq!(own.kind, Some(FileSystemKind::Ext3));
    assert_eq!(job("hoistway_tree=linux\nhoistway_walk=block").hoistway.walk, Walk::Block);
}

#[test]
fn wait_for_names_a_job_above() {
    let file = crate::common::parse_text("[global]\nsize=1m\n[a]\n[b]\nwait_for=a\n").expect("a stands above b");
    assert_eq!(file.jobs[1].start.wait_for.as_deref(), Some("a"));
}

#[test]
fn a_bandwidth_log_takes_the_name_of_the_job() {
    assert_eq!(job("write_bw_log=foo").log.write_bw_log.as_deref(), Some("foo"));
    assert_eq!(job("write_bw_log\nname=late").log.write_bw_log.as_deref(), Some("late"));
    assert_eq!(job("").log.write_bw_log, None);
    let logged = job("log_avg_msec=500\nlog_offset=1\nlog_prio=1\nbwavgtime=250\niopsavgtime=100");
    assert_eq!((logged.log.log_avg_msec, logged.log.log_offset, logged.log.log_prio), (500, true, true));
    assert_eq!((logged.reporting.bwavgtime_ms, logged.reporting.iopsavgtime_ms), (250, 100));
}

#[test]
fn flags_are_bare_or_zero_or_one() {
    for flag in ["stonewall", "wait_for_previous", "new_group", "group_reporting", "norandommap"] {
        for (text, on) in [(flag.to_owned(), true), (format!("{flag}=1"), true), (format!("{flag}=0"), false)] {
            let job = job(&text);
            let taken =
                [job.start.stonewall, job.reporting.new_group, job.reporting.group_reporting, job.requests.norandommap]
                    .contains(&true);
            assert_eq!(taken, on, "{text}");
        }
    }
}

#[test]
fn blanks_around_names_and_values_do_not_count() {
    assert_eq!(job("   iodepth   =   4   ").submission.iodepth, 4);
    assert_eq!(job("\tiodepth=4\r").submission.iodepth, 4);
}

#[test]
fn comments_end_a_line_from_any_column() {
    assert_eq!(job("; iodepth=4\n  # iodepth=5\n").submission.iodepth, 1);
    assert_eq!(job("iodepth=4 ; not 5").submission.iodepth, 4);
    assert_eq!(job("filename=a#b").files.filename, ["a"], "as fio 3.33 has it");
}

#[test]
fn options_are_kept_under_canonical_names_with_the_later_value() {
    let job = job("readwrite=write\nblocksize=8k\nstonewall\nsize=2m");
    let expected = [("size", "2m"), ("rw", "write"), ("bs", "8k"), ("stonewall", "")];
    assert_eq!(job.options, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn block_sizes_print_as_a_job_file_has_them() {
    for text in ["4k", "1k-4k", "4k/50:8k/30:64k/20"] {
        let option = if text.contains('/') {
            "bssplit"
        } else if text.contains('-') {
            "bsrange"
        } else {
            "bs"
        };
        assert_eq!(job(&format!("{option}={text}")).blocks.bs.get(Direction::Write).to_string(), text);
    }
}

#[test]
fn files_of_a_job_that_only_creates_them_have_its_size_in_other_jobs() {
    let text = "[lay]\ncreate_only=1\nfilename=a:b\nsize=8m\nstonewall\n[run]\nfilename=a\nrw=randread\n";
    let file = parse_text(text).expect("jobs");
    let [run] = file.jobs.as_slice() else { panic!("{:?}", file.jobs) };
    assert_eq!((run.region.filesize.clone(), run.start.stonewall), (Some(4 << 20..=4 << 20), true));
    let [lay] = file.differences.as_slice() else { panic!("{:?}", file.differences) };
    assert_eq!(lay, "job.fio:1: job `lay` is left out: `create_only`: it creates its files and ends");
}

#[test]
fn devices_are_not_removed() {
    let removes = |options: &str| {
        let job = job(options);
        (job.files.unlink, job.files.unlink_each_loop)
    };
    assert_eq!(removes("unlink=1\nunlink_each_loop=1"), (true, true));
    assert_eq!(removes("unlink=1\nunlink_each_loop=1\nfilename=/dev/sda"), (false, false));
}
