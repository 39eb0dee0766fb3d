//! Position, message and help of every error.

use crate::common::{fault, faults, parse_text};

/// Each invalid option, with parts of the message and of the help.
const WRONG: &[(&str, &str, &str)] = &[
    // Amounts.
    ("size=0", "job `j` has no size", "give size="),
    ("size=150%", "size: 150 is more than 100 percent", "from 0 to 100"),
    ("size", "size: the option needs a value", "size=VALUE"),
    ("size=", "size: the value is empty", "size=VALUE"),
    ("size=4x", "`x` in `4x` is not a unit of size", "k, m, g, t, p"),
    ("size=1i", "`i` in `1i` is not a unit of size", "k, m, g, t, p"),
    ("size=10z", "`10z` is a number of zones, and the job has none", "zonemode=zbd"),
    ("zonemode=zbd\nsize=10z", "`10z` is a number of zones of unknown size", "zonesize="),
    ("size=-4k", "`-4k` is negative", ""),
    ("size=1.5m", "`1.5m` is not a whole number", "1536k for 1.5m"),
    ("size=big", "`big` is not a number", ""),
    ("size=0xg", "`0xg` is not a number", ""),
    ("size=(4k*2)", "`(4k*2)` is an expression", "write the result"),
    ("size=8*$mb_memory", "`8*$mb_memory` is an expression", "write the result"),
    ("size=99999999999999999999", "is too large", ""),
    ("size=999999p", "`999999p` is too large", ""),
    ("size=16k,8k", "`k,8k` in `16k,8k` is not a unit of size", ""),
    ("filesize=0", "filesize: 0 is out of range", "at least 1"),
    ("filesize=4k-", "filesize: the value is empty", ""),
    ("offset=101%", "offset: 101 is more than 100 percent", ""),
    ("numjobs=0", "numjobs: 0 is out of range", "at least 1"),
    ("nrfiles=0", "nrfiles: a job without files makes no requests", "use 1 or more"),
    ("iodepth=0", "iodepth: 0 is out of range", "at least 1"),
    ("numjobs=5000000000", "numjobs: 5000000000 is out of range", "at most 4294967295"),
    ("kb_base=1023", "kb_base: `1023` is not known", "one of 1000, 1024"),
    ("filename=-", "standard input", "name a file"),
    ("filename=:", "filename: the value is empty", ""),
    // Requests.
    ("rw=raed", "rw: `raed` is not known", "one of read, write"),
    ("rw=randread:0", "rw: 0 requests at each offset", "at least 1"),
    ("rw=randread:x", "rw: `x` is not a number", ""),
    ("rw_sequencer=none", "rw_sequencer: `none` is not known", "sequential, identical"),
    ("bs=0", "bs: 0 is out of range", "at least 1"),
    ("bs=4k,8k,16k,32k", "bs: `4k,8k,16k,32k` has 4 values", "at most three"),
    ("bs=,", "bs: the value is empty", ""),
    ("bs=1k-4k", "bs: `1k-4k` is a range", "write bsrange=1k-4k"),
    ("bs=4k/8k", "bs: `4k/8k` is not one size", "bssplit="),
    ("bs=4k,8k,x", "bs: `x` is not a number", ""),
    ("bs=1000\ndirect=1", "direct requests of 1000 bytes are not whole sectors", "multiple of 512"),
    ("bs=256\ndirect=1", "direct requests of 256 bytes are not whole sectors", ""),
    ("bsrange=100-4k\ndirect=1", "direct requests of 100 bytes are not whole sectors", ""),
    ("bssplit=512/50:513/50\ndirect=1", "direct requests of 513 bytes are not whole sectors", ""),
    ("bs=2m", "its size of 1048576 bytes holds not one request of 2097152", "larger size"),
    ("size=100%\nfilesize=1k", "its filesize of 1024 bytes holds not one request of 4096", ""),
    ("bsrange=4k", "bsrange: `4k` is not a range", "bs=4k"),
    ("bsrange=0-4k", "bsrange: 0 is out of range", ""),
    ("bssplit=4k/60:8k/60", "bssplit: the percentages add up to 120", "add up to 100"),
    ("bssplit=4k/50:8k/40", "bssplit: the percentages add up to 90", "add up to 100"),
    ("bssplit=4k/x", "bssplit: `x` is not a number", ""),
    ("bssplit=0/50:4k/", "bssplit: 0 is out of range", ""),
    ("rwmixread=101", "rwmixread: 101 is more than 100 percent", "from 0 to 100"),
    ("rwmixwrite=101", "rwmixwrite: 101 is more than 100 percent", "from 0 to 100"),
    ("percentage_random=50,101", "percentage_random: 101 is more than 100 percent", ""),
    ("direct", "direct: the option needs a value", ""),
    ("direct=2", "direct: `2` is neither 0 nor 1", "write 1 for yes"),
    ("direct=true", "direct: `true` is neither 0 nor 1", ""),
    ("buffered=no", "buffered: `no` is neither 0 nor 1", ""),
    ("norandommap=2", "norandommap: `2` is neither 0 nor 1", ""),
    ("sync=2", "sync: `2` is not known", "dsync"),
    ("fsync=x", "fsync: `x` is not a number", ""),
    ("end_fsync=x", "end_fsync: `x` is neither 0 nor 1", ""),
    ("randseed=x", "randseed: `x` is not a number", ""),
    ("ioengine=libaoi", "ioengine: `libaoi` is not known", "libaio"),
    ("ioengine=rados", "ioengine: engine `rados` talks to an object store", "the engines are"),
    ("ioengine=external:foo.so", "engine `external` is code of its own", ""),
    ("random_distribution=zipf", "the distribution has no parameter", "zipf:1.2"),
    ("random_distribution=zipf:1", "random_distribution: 1 is out of range", "not 1"),
    ("random_distribution=zipf:x", "`x` is not a number", "zipf:1.2"),
    ("random_distribution=zipf:inf", "random_distribution: inf is out of range", ""),
    ("random_distribution=zipf:NaN", "random_distribution: NaN is out of range", ""),
    ("random_distribution=zipf:1.2:1.5", "is no part of the whole", "from 0 to 1"),
    ("random_distribution=pareto:1.5", "random_distribution: 1.5 is out of range", "between 0 and 1"),
    ("random_distribution=normal:100", "random_distribution: 100 is out of range", "below 100"),
    ("random_distribution=random:1", "`random:1` has a parameter", ""),
    ("random_distribution=zoned:50/50", "accesses add up to 50 and the spans to 50", "add up to 100"),
    ("random_distribution=zoned:100", "`100` is not a zone", "60/10"),
    ("random_distribution=zoned_abs:60/20g", "1 zones, whose accesses add up to 60", "adding up to 100"),
    ("random_distribution=zipf:1.2,zipf:1.3", "a distribution for each direction is known to fio", ""),
    ("random_distribution=uniform", "`uniform` is not known", "one of random"),
    // Times.
    ("runtime=1.5s", "runtime: `1.5s` is not a whole number", "1500ms"),
    ("runtime=10x", "`x` in `10x` is not a unit of time", "us, ms, s, m, h and d"),
    ("runtime=100ns", "`ns` in `100ns` is not a unit of time", ""),
    ("runtime=999999999999d", "runtime: `999999999999d` is too large", ""),
    ("ramp_time=x", "ramp_time: `x` is not a number", ""),
    ("startdelay=1-x", "startdelay: `x` is not a number", ""),
    ("startdelay=-1", "startdelay: `-1` is negative", ""),
    ("thinktime=x", "thinktime: `x` is not a number", ""),
    ("thinktime=5\nthinktime_spin=6", "spins for longer than its thinktime", "part of thinktime"),
    ("rate=x", "rate: `x` is not a number", ""),
    ("rate_iops=1,x", "rate_iops: `x` is not a number", ""),
    ("rate=1m\nrate_iops=10", "both rate and rate_iops", "one of the two"),
    ("rate_process=even", "rate_process: `even` is not known", "linear, poisson"),
    // Identity and measurement.
    ("prio=8", "prio: 8 is out of range", "from 0 to 7"),
    ("prioclass=4", "prioclass: 4 is out of range", "3 for idle"),
    ("nice=20", "nice: `20` is not a nice value", "from -20 to 19"),
    ("cgroup=a\ncgroup_weight=0", "cgroup_weight: 0 is out of range", "from 1 to 1000"),
    ("cgroup=a/b\ncgroup_weight=100/1001", "cgroup_weight: 1001 is out of range", "from 1 to 1000"),
    ("cgroup=a/b\ncgroup_weight=100/", "cgroup_weight: the value is empty", ""),
    ("cgroup=a/b\ncgroup_weight=1/2/3", "cgroup_weight: 3 weights for the 2 groups of `a/b`", "one for each"),
    ("cgroup_weight=100", "cgroup_weight: there is no group to weigh", "give cgroup= too"),
    ("cgroup=a//b", "cgroup: `a//b` has an empty name", "cgroup=users/alice"),
    ("cgroup=/a", "cgroup: `/a` has an empty name", "the root's being left out"),
    ("cgroup=a/", "cgroup: `a/` has an empty name", ""),
    ("cgroup=a/../b", "cgroup: `a/../b` has the name `..`", "one slash between them"),
    (
        "cgroup=a\ncgroup_weight=5\n[k]\nsize=1m\ncgroup=a\ncgroup_weight=6",
        "group `a` weighs 6 in job `k` and 5 in job `j`, line ",
        "one weight",
    ),
    (
        "cgroup=a\ncgroup_weight=5\n[k]\nsize=1m\ncgroup=a/b\ncgroup_weight=6/1",
        "group `a` weighs 6 in job `k` and 5 in job `j`",
        "",
    ),
    ("hoistway_reserve=0", "hoistway_reserve: 0 is out of range", "at least 1"),
    ("fadvise_hint=maybe", "fadvise_hint: `maybe` is not an advice on the access pattern", "sequential or random"),
    ("hoistway_tree=lunix", "hoistway_tree: `lunix` is not known", "one of linux, files"),
    ("hoistway_tree=files", "hoistway_tree: `files` has no value", "files=1000"),
    ("hoistway_tree=files=0", "hoistway_tree: files: 0 is out of range", "from 1 to 1000000"),
    (
        "hoistway_tree=files=400000,age=100",
        "hoistway_tree: 400000 files in 100 rounds of ageing are too much to lay out",
        "age=9 at most",
    ),
    ("hoistway_tree=fs=xfs", "hoistway_tree: `xfs` is not known", "one of ext2, ext3, ext4"),
    ("hoistway_tree=mean=4k", "hoistway_tree: the mean of 4096 bytes is below the median of 5000", "give mean= too"),
    ("hoistway_tree=linux\nrw=write", "hoistway_tree: job `j` walks through a tree, and rw is write", "rw=read"),
    ("hoistway_tree=linux\ndirect=1", "walks through a tree, and direct is 1", "page cache"),
    ("hoistway_walk=random", "hoistway_walk: job `j` has no tree", "hoistway_tree=linux"),
    ("hoistway_tree=linux\nhoistway_walk=up", "hoistway_walk: `up` is not known", "one of readdir, archive, name"),
    ("hoistway_reserve=fast", "hoistway_reserve: `fast` is not a number", ""),
    ("wait_for=missing", "wait_for: no job `missing` stands above", "stands above"),
    ("wait_for=j", "wait_for: no job `j` stands above", ""),
    ("log_avg_msec=x", "log_avg_msec: `x` is not a number", ""),
    ("bwavgtime=0", "bwavgtime: 0 is out of range", ""),
    ("iopsavgtime=0", "iopsavgtime: 0 is out of range", ""),
    ("log_prio=2", "log_prio: `2` is neither 0 nor 1", ""),
    // Names.
    ("iodetph=4", "unknown option `iodetph`", "did you mean `iodepth`?"),
    ("SIZE=4k", "unknown option `SIZE`", "did you mean `size`?"),
    ("xyzzyplugh=1", "unknown option `xyzzyplugh`", ""),
    ("=4k", "`=4k` has no option before the equals sign", "option=value"),
    (
        "numjobs=${JOBS}",
        "numjobs: the value is empty",
        "not set in the environment, so nothing was put in for it: JOBS",
    ),
    ("numjobs=${JOBS", "`${JOBS` has no closing brace", "${NAME}"),
    ("include", "include without a file", "include base.fio"),
    ("include ${BASE}", "include without a file", "not set in the environment"),
    ("include base.fio", "cannot read the included file `base.fio`: no base.fio here", "beside the including file"),
    ("[k]x\nsize=1m", "`x` after the name of section [k]", "line of its own"),
    ("[k\n", "`[k` has no closing bracket", "[reader]"),
    ("[]\nsize=1m", "the section has no name", "[reader]"),
    ("[k]\nrw=read", "job `k` has no size", "give size= or filesize="),
    // Zones, priorities, targets, engines.
    ("zonesize=1m", "zonesize: zones without a kind", "zonemode=strided"),
    ("zonemode=strided", "zonemode: zones without a size", "zonesize="),
    (
        "zonemode=zbd\nzonesize=1m\nzonerange=2m",
        "zonerange=2097152 differs from zonesize=1048576",
        "leave zonerange out",
    ),
    ("zonemode=round", "zonemode: `round` is not known", "none, strided, zbd"),
    ("cmdprio_percentage=20", "cmdprio: engine psync has no priorities", "libaio or io_uring"),
    ("ioengine=libaio\ncmdprio_percentage=20\ncmdprio_bssplit=4k/50", "exclude one another", "one of the two"),
    ("cmdprio_bssplit=4k", "cmdprio_bssplit: `4k` is not a size with its percentage", "64k/25/1/1"),
    ("cmdprio_class=4", "cmdprio_class: 4 is out of range", "from 1 to 3"),
    ("latency_target=1ms", "latency_target: there is no time", "latency_window=5s"),
    ("latency_percentile=101", "latency_percentile: 101 is more than 100", ""),
    ("ss=iops", "ss: `iops` has no limit", "iops:2%"),
    ("ss=lat:1%", "ss: `lat` is not known", "iops_slope"),
    ("ss=iops:0", "ss: the limit in `iops:0` is 0", ""),
    ("exit_what=one", "exit_what: `one` is not known", "group, stonewall, all"),
    ("io_submit_mode=async", "io_submit_mode: `async` is not known", "inline, offload"),
    ("file_service_type=fair", "file_service_type: `fair` is not known", "roundrobin"),
    ("direct=1\nba=100", "direct requests of 100 bytes are not whole sectors", ""),
    ("direct=1\nbsrange=1k-4k\nbs_unaligned=1", "are not whole sectors", ""),
    ("create_only=1", "no job moves data: job `j` is left out: `create_only`: it creates its files", "reads or writes"),
    ("ioengine=cpuio", "no job moves data: job `j` is left out: engine `cpuio` burns CPU time", "reads or writes"),
    ("lockfile=exclusive", "option `lockfile` is not simulated: jobs do not wait", "only lockfile=none"),
    ("read_iolog=x", "option `read_iolog` is not simulated: `hoistway trace whatif`", ""),
];

#[test]
fn every_wrong_value_has_its_own_message() {
    for (options, message, help) in WRONG {
        let (said, advised) = fault(options);
        assert!(said.contains(message), "{options}: says `{said}`, not `{message}`");
        assert!(advised.contains(help), "{options}: advises `{advised}`, not `{help}`");
    }
}

#[test]
fn an_error_names_file_line_and_column_of_the_value() {
    let fault = &faults("  iodepth = 0")[0];
    assert_eq!((fault.file.as_str(), fault.line, fault.column), ("job.fio", 3, 13));
    assert_eq!(
        fault.to_string(),
        "job.fio:3:13: error: iodepth: 0 is out of range\n  help: at least 1, at most 4294967295"
    );
}

#[test]
fn a_column_counts_characters() {
    assert_eq!(faults("filename_format=ä iodepth\nbs=0")[0].column, 4);
    assert_eq!(faults("\u{2003}\u{2003}raed=1")[0].column, 3);
}

#[test]
fn a_refused_engine_comes_before_options_that_only_it_has() {
    let text = "[global]\nnfs_url=nfs://127.0.0.1/nfs\nioengine=nfs\n[j]\nsize=1m\n";
    let faults = parse_text(text).expect_err("the engine is refused");
    let first = faults.first().map(ToString::to_string).unwrap_or_default();
    assert!(first.starts_with("job.fio:3:10: error: ioengine: engine `nfs` talks to a remote file system"), "{first}");
    assert_eq!(faults.get(1).map(|fault| fault.message.as_str()), Some("unknown option `nfs_url`"));
}

#[test]
fn all_errors_are_found_in_the_order_of_the_text() {
    let faults = faults("prio=8\nfoo=1\nbs=0\nnumjobs=0");
    let lines: Vec<u32> = faults.iter().map(|fault| fault.line).collect();
    assert_eq!(lines, [3, 4, 5, 6]);
}

#[test]
fn an_error_in_a_global_section_is_reported_once() {
    let text = "[global]\nsize=1m\nprio=9\n[a]\n[b]\n[c]\nfoo=1\n";
    let faults = parse_text(text).expect_err("9 is no priority");
    let lines: Vec<u32> = faults.iter().map(|fault| fault.line).collect();
    assert_eq!(lines, [3, 7]);
}

#[test]
fn an_empty_file_has_no_job() {
    for text in ["", "\n\n", "; nothing\n# at all\n"] {
        let faults = parse_text(text).expect_err("there is no job");
        assert_eq!(faults[0].to_string().lines().next(), Some("job.fio: error: the file has no job"));
        assert_eq!(faults.len(), 1);
    }
}

#[test]
fn a_file_with_only_global_sections_has_no_job() {
    let faults = parse_text("[global]\nsize=1m\n").expect_err("there is no job");
    assert_eq!(faults[0].message, "the file has only [global], no job");
    let faults = parse_text("[global]\nsize=x\n").expect_err("there is no job, and no size");
    assert!(faults[0].message.contains("is not a number"), "its own faults are reported: {faults:?}");
}

#[test]
fn an_option_before_the_first_section_is_outside() {
    let faults = parse_text("size=1m\n[j]\nsize=1m\n").expect_err("outside");
    assert_eq!(faults[0].message, "option `size` stands outside of a section");
}

#[test]
fn a_waited_for_name_must_be_unique() {
    let text = "[global]\nsize=1m\n[a]\n[a]\n[b]\nwait_for=a\n";
    let faults = parse_text(text).expect_err("which a?");
    assert_eq!(faults[0].message, "wait_for: 2 jobs above are called `a`");
    assert_eq!((faults[0].line, faults[0].column), (6, 10));
}

#[test]
fn an_invalid_runtime_is_reported_once() {
    assert_eq!(faults("time_based\nruntime=x").len(), 1);
    assert_eq!(faults("thinktime=x\nthinktime_spin=5").len(), 1);
}

#[test]
fn load_names_the_unreadable_file() {
    let error = hoistway_fio::load("/nonexistent/job.fio").expect_err("there is no such file");
    assert!(error.to_string().starts_with("cannot read the job file /nonexistent/job.fio: "), "{error}");
}
