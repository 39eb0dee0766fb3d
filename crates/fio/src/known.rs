//! All options of fio 3.33 with hoistway's support for each, and hoistway's own options, which fio
//! rejects.
//!
//! Names and aliases are those of `fio --cmdhelp=all`, of `fio --enghelp` for each engine, and of
//! the manual.

/// The support for an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// The option is applied to the job.
    Supported(Description),
    /// The option cannot affect a simulation: it is accepted, and listed once.
    Ignored,
    /// The option matters and is not simulated, for the reason of the second part. The values of
    /// the first part are accepted: they describe the behaviour that there is.
    Refused(&'static [&'static str], &'static str),
}

/// The description of an option that is applied, for the reference in docs/job-files.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The heading of the options on the same subject.
    pub subject: &'static str,
    /// The values that the option takes.
    pub takes: &'static str,
    /// The default; in back-quotes if it could be written in a job file.
    pub default: &'static str,
    /// The meaning of the option.
    pub meaning: &'static str,
}

/// An option of fio, or of hoistway if the name starts with `hoistway_`.
#[derive(Debug)]
pub struct KnownOption {
    /// The canonical name: the one that fio's JSON prints.
    pub name: &'static str,
    /// Aliases of the name.
    pub aliases: &'static [&'static str],
    /// The support for the option.
    pub support: Support,
}

impl KnownOption {
    /// The name of the option and its aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}

/// Finds an option by name or alias.
pub(crate) fn find(name: &str) -> Option<&'static KnownOption> {
    OPTIONS.iter().find(|known| known.name == name || known.aliases.contains(&name))
}

/// The known name nearest to an unknown one, if one is near enough.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    // A name that is less than half right is no help, and the comparison takes time quadratic in
    // the length.
    if name.len() > 64 {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    OPTIONS
        .iter()
        .flat_map(KnownOption::names)
        .map(|candidate| (strsim::damerau_levenshtein(&lower, candidate), candidate))
        .filter(|(distance, candidate)| distance * 2 < candidate.len().max(name.chars().count()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

const fn yes(
    subject: &'static str,
    name: &'static str,
    aliases: &'static [&'static str],
    takes: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> KnownOption {
    KnownOption { name, aliases, support: Support::Supported(Description { subject, takes, default, meaning }) }
}

const fn idle(name: &'static str, aliases: &'static [&'static str]) -> KnownOption {
    KnownOption { name, aliases, support: Support::Ignored }
}

const fn not(name: &'static str, harmless: &'static [&'static str], why: &'static str) -> KnownOption {
    KnownOption { name, aliases: &[], support: Support::Refused(harmless, why) }
}

const RECORDING: &str = "`hoistway trace whatif` simulates recorded requests";
const TRIMS: &str = "blocks are not trimmed while they are verified";

/// All options: first the supported, then the ignored, then the refused ones.
#[rustfmt::skip]
pub static OPTIONS: &[KnownOption] = &[
    yes("Requests", "rw", &["readwrite"], "`read`, `write`, `randread`, `randwrite`, `rw`, `randrw`, `trim`, `randtrim`, `trimwrite`, `randtrimwrite`", "`read`", "The kind of requests. A number after a colon: requests at each random offset (`randread:8`), or bytes added to the offset after each sequential request (`write:4k`, `read:-8k`)."),
    yes("Requests", "rwmixread", &[], "a percentage", "`50`", "The part of a mixed job (`rw`, `randrw`) that is reads."),
    yes("Requests", "rwmixwrite", &[], "a percentage", "`50`", "The part of a mixed job that is writes."),
    yes("Requests", "bs", &["blocksize"], "a size, each", "`4k`", "The size of requests."),
    yes("Requests", "bsrange", &["blocksize_range"], "`LOW-HIGH`, each", "none", "The size of requests, drawn from a range."),
    yes("Requests", "bssplit", &[], "`SIZE/PERCENT:...`, each", "none", "The sizes of requests with their parts; blank percentages share the rest."),
    yes("Requests", "bs_unaligned", &["blocksize_unaligned"], "`0`, `1`", "`0`", "Sizes from a range are any number of bytes, not multiples of the smallest."),
    yes("Requests", "bs_is_seq_rand", &[], "`0`, `1`", "`0`", "`bs` has the size of sequential requests before the comma and that of random ones after it."),
    yes("Requests", "ba", &["blockalign"], "a size, each", "the smallest block size", "Random offsets are multiples of this."),
    yes("Requests", "rw_sequencer", &[], "`sequential`, `identical`", "`sequential`", "The offsets of the requests that follow one random offset (`randread:8`)."),
    yes("Requests", "percentage_random", &[], "a percentage, each", "`100`", "The part of a random job that is random; the rest is sequential."),
    yes("Requests", "random_distribution", &[], "`random`, `zipf:THETA`, `pareto:H`, `normal:DEVIATION`, `zoned:...`, `zoned_abs:...`", "`random`", "The distribution of random offsets. After another colon zipf, pareto and normal take the centre, 0 to 1. `normal` is as wide as fio's: its standard deviation is at least a twelfth of the blocks."),
    yes("Requests", "norandommap", &[], "`0`, `1`", "`0`", "A block may be touched again before all have been touched once."),
    yes("Requests", "randseed", &[], "a number", "from `--seed`", "The seed of the job's random numbers."),
    yes("Files and amounts of data", "size", &[], "a size or a percentage", "all of the files or the device", "The region of the job, and the bytes that it moves unless `io_size` is given."),
    yes("Files and amounts of data", "io_size", &["io_limit"], "a size, or a percentage of the size", "`size`", "The bytes to move. If they are more than the files have, the job begins again at the end of the files."),
    yes("Files and amounts of data", "filesize", &[], "a size or `LOW-HIGH`", "`size` divided among the files", "The size of each file."),
    yes("Files and amounts of data", "offset", &["fileoffset"], "a size or a percentage", "`0`", "The start of the region."),
    yes("Files and amounts of data", "offset_increment", &[], "a size or a percentage", "`0`", "What is added to `offset` for each further clone."),
    yes("Files and amounts of data", "offset_align", &[], "a size", "the smallest block size", "The bytes that an offset in percent is rounded up to."),
    yes("Files and amounts of data", "filename", &[], "names separated by colons", "made from `filename_format`", "The files or devices. Names of a section are added to those of the sections above."),
    yes("Files and amounts of data", "filename_format", &[], "text", "`$jobname.$jobnum.$filenum`", "The pattern of the names of files without `filename`."),
    yes("Files and amounts of data", "directory", &[], "names separated by colons", "none", "The directories of the files; clones take turns."),
    yes("Files and amounts of data", "nrfiles", &["nr_files"], "a number", "`1`", "The number of files of each clone, at least 1 unless files are named."),
    yes("Files and amounts of data", "openfiles", &[], "a number", "all", "The most files that are open at a time."),
    yes("Files and amounts of data", "file_service_type", &[], "`roundrobin`, `random`, `sequential`, `zipf`, `pareto`, `normal`, each with `:NUMBER`", "`roundrobin:1`", "The choice of the next file, and after how many requests it is chosen."),
    yes("Files and amounts of data", "number_ios", &[], "a number", "no limit", "The requests after which the job ends, times `loops`."),
    yes("Files and amounts of data", "loops", &[], "a number", "`1`", "The number of runs of the job."),
    yes("Files and amounts of data", "fill_device", &["fill_fs"], "`0`, `1`", "`0`", "The file is as large as 95 % of the drive, less the other files."),
    yes("Files and amounts of data", "overwrite", &[], "`0`, `1`", "`0`", "The files have written data before the job starts, like files that a job reads. `fdatasync` after an overwrite then has no new blocks to commit to a journal."),
    yes("Files and amounts of data", "unlink", &[], "`0`, `1`", "`0`", "The job ends with the removal of its files."),
    yes("Files and amounts of data", "unlink_each_loop", &[], "`0`, `1`", "`0`", "Each of the `loops` ends with the removal of the files."),
    yes("Files and amounts of data", "create_only", &[], "`0`, `1`", "`0`", "The job is left out: its files exist from the start."),
    yes("Files and amounts of data", "pre_read", &[], "`0`, `1`", "`0`", "The files are in memory before the job starts."),
    yes("Files and amounts of data", "kb_base", &[], "`1000`, `1024`", "`1024`", "The base of the prefixes `k`, `m`, ... of all sizes; with 1000, `ki` is 1024."),
    yes("Zones", "zonemode", &[], "`none`, `strided`, `zbd`", "`none`", "The kind of zones to which requests are restricted."),
    yes("Zones", "zonesize", &[], "a size", "required with `zonemode`", "The bytes moved in a zone (strided), or the size of a zone (zbd: 256 MiB without it)."),
    yes("Zones", "zonerange", &[], "a size", "`zonesize`", "The bytes of a zone (strided)."),
    yes("Zones", "zoneskip", &[], "a size", "`0`", "The bytes between two zones."),
    yes("Zones", "zonecapacity", &[], "a size", "`zonesize`", "The bytes of a zone that can be written (zbd)."),
    yes("Zones", "max_open_zones", &[], "a number", "no limit", "The most zones that are written at once (zbd)."),
    yes("Zones", "job_max_open_zones", &[], "a number", "no limit", "The same for the job; the smaller one counts."),
    yes("Zones", "read_beyond_wp", &[], "`0`, `1`", "`0`", "Reads may go beyond what was written (zbd)."),
    yes("Submission and the page cache", "ioengine", &[], "an engine", "`psync`", "The interface through which requests are submitted; the engines are listed below."),
    yes("Submission and the page cache", "iodepth", &[], "a number", "`1`", "Requests in flight of an asynchronous engine."),
    yes("Submission and the page cache", "iodepth_batch", &["iodepth_batch_submit"], "a number", "`1`", "Requests that are submitted in one call; 0 is `iodepth`."),
    yes("Submission and the page cache", "iodepth_batch_complete_min", &["iodepth_batch_complete"], "a number", "`1`", "Requests for which a full queue waits."),
    yes("Submission and the page cache", "iodepth_batch_complete_max", &[], "a number", "all that are complete", "The most requests that one call reaps."),
    yes("Submission and the page cache", "iodepth_low", &[], "a number", "`iodepth`", "Requests in flight down to which a full queue drains before it is filled again."),
    yes("Submission and the page cache", "io_submit_mode", &[], "`inline`, `offload`", "`inline`", "The thread that submits: the job's own, or one of `iodepth` others."),
    yes("Submission and the page cache", "direct", &[], "`0`, `1`", "`0`", "Requests bypass the page cache."),
    yes("Submission and the page cache", "buffered", &[], "`0`, `1`", "`1`", "The opposite of `direct`."),
    yes("Submission and the page cache", "invalidate", &[], "`0`, `1`", "`1`", "Cached pages of the files are dropped before the job starts, and whenever it begins again."),
    yes("Submission and the page cache", "fadvise_hint", &[], "`0`, `1`, `sequential`, `random`", "`1`", "The advice on the access pattern to the kernel: none, that of `rw`, or a given one."),
    yes("Submission and the page cache", "sync", &[], "`none`, `0`, `sync`, `1`, `dsync`", "`none`", "Writes are synchronous (O_SYNC, O_DSYNC)."),
    yes("Submission and the page cache", "writefua", &[], "`0`, `1`", "`0`", "Writes are forced to the medium."),
    yes("Submission and the page cache", "fsync", &[], "a number", "`0`", "An fsync before a request if the number of writes so far is a multiple of this and what completed last was no sync; 0 is none. So reads between writes are synced, too, and the last write is not. The sync goes to the file whose turn it is. With direct requests, `io_uring` and `posixaio` have syncs in flight beside requests, and queue further ones until the first completes; `libaio` waits for each sync while requests are in flight."),
    yes("Submission and the page cache", "fdatasync", &[], "a number", "`0`", "As `fsync`, with fdatasync."),
    yes("Submission and the page cache", "end_fsync", &[], "`0`, `1`", "`0`", "The job ends with an fsync."),
    yes("Submission and the page cache", "fsync_on_close", &[], "`0`, `1`", "`0`", "An fsync when a file is closed, which is at the end of the job."),
    yes("Pauses and rates", "thinktime", &[], "a time in us", "`0`", "The pause after `thinktime_blocks` requests."),
    yes("Pauses and rates", "thinktime_spin", &[], "a time in us", "`0`", "The part of the pause that is spent computing."),
    yes("Pauses and rates", "thinktime_blocks", &[], "a number", "`1`", "Requests between two pauses."),
    yes("Pauses and rates", "thinktime_blocks_type", &[], "`complete`, `issue`", "`complete`", "What is counted for a pause: completed requests, or submitted ones."),
    yes("Pauses and rates", "thinktime_iotime", &[], "a time in s", "`0`", "The time of requests between two pauses; 0 is none."),
    yes("Pauses and rates", "rate", &[], "a size a second, each", "no limit", "The largest bandwidth."),
    yes("Pauses and rates", "rate_iops", &[], "requests a second, each", "no limit", "The largest rate of requests."),
    yes("Pauses and rates", "rate_process", &[], "`linear`, `poisson`", "`linear`", "The spacing of requests under a limit: even, or random with that mean."),
    yes("Pauses and rates", "rate_ignore_thinktime", &[], "`0`, `1`", "`0`", "A job under a limit does not catch up what it missed in its pauses."),
    yes("Pauses and rates", "rate_min", &["ratemin"], "a size a second, each", "`0`", "The bandwidth below which the job ends with an error."),
    yes("Pauses and rates", "rate_iops_min", &[], "requests a second, each", "`0`", "The rate of requests below which the job ends with an error."),
    yes("Pauses and rates", "rate_cycle", &["ratecycle"], "a time in ms", "`1000`", "The time over which these two are measured."),
    yes("Pauses and rates", "flow", &[], "a number", "`0`", "The weight of the job among those of the same `flow_id`; 0 is outside of any group."),
    yes("Pauses and rates", "flow_id", &[], "a number", "`0`", "The group of jobs that share by `flow`."),
    yes("Pauses and rates", "flow_sleep", &[], "a time in us", "`0`", "The pause of a job that is ahead of its share."),
    yes("Pauses and rates", "latency_target", &[], "a time in us", "`0`", "Search for the largest queue depth within this latency; 0 is no search."),
    yes("Pauses and rates", "latency_window", &[], "a time in us", "required with `latency_target`", "The time for which a depth is tried."),
    yes("Pauses and rates", "latency_percentile", &[], "a percentage", "`100`", "The part of the requests that has to be within the target."),
    yes("Pauses and rates", "latency_run", &[], "`0`, `1`", "`0`", "The job goes on at the depth that was found."),
    yes("Start and end of jobs", "name", &[], "text", "the section's name", "The name of the job."),
    yes("Start and end of jobs", "numjobs", &[], "a number", "`1`", "The number of clones of the job."),
    yes("Start and end of jobs", "startdelay", &["start_delay"], "a time in s, or `LOW-HIGH`", "`0`", "The delay before the job starts; each clone draws from a range."),
    yes("Start and end of jobs", "stonewall", &["wait_for_previous"], "`0`, `1`", "`0`", "The job waits for all jobs above it, and starts a new reporting group."),
    yes("Start and end of jobs", "wait_for", &[], "a job's name", "none", "The job above, for whose end this one waits."),
    yes("Start and end of jobs", "runtime", &["timeout"], "a time in s", "no limit", "The longest runtime."),
    yes("Start and end of jobs", "time_based", &[], "`0`, `1`", "`0`", "The job starts over until `runtime` is reached."),
    yes("Start and end of jobs", "ramp_time", &[], "a time in s", "`0`", "The time at the start that is not measured."),
    yes("Start and end of jobs", "max_latency", &[], "a time in us, each", "`0`", "The latency above which the job ends with an error; 0 is none."),
    yes("Start and end of jobs", "steadystate", &["ss"], "`iops:LIMIT`, `bw:LIMIT`, `iops_slope:LIMIT`, `bw_slope:LIMIT`", "none", "The job ends when this figure is steady; a limit may be in per cent of the mean."),
    yes("Start and end of jobs", "steadystate_duration", &["ss_dur"], "a time in s", "`0`", "The time for which it has to be steady; 0 is no check."),
    yes("Start and end of jobs", "steadystate_ramp_time", &["ss_ramp"], "a time in s", "`0`", "The time before the first check."),
    yes("Start and end of jobs", "exitall", &[], "`0`, `1`", "`0`", "Other jobs end with this one."),
    yes("Start and end of jobs", "exit_what", &[], "`group`, `stonewall`, `all`", "`group`", "The jobs that end with it: of its reporting group, all that run, or all."),
    yes("Priorities and control groups", "prio", &[], "0 to 7", "that of the process", "The level of the I/O priority; 0 is the highest."),
    yes("Priorities and control groups", "prioclass", &[], "0 to 3", "that of the process", "The class: 0 none, 1 real time, 2 best effort, 3 idle."),
    yes("Priorities and control groups", "nice", &[], "-20 to 19", "that of the process", "The nice value."),
    yes("Priorities and control groups", "cmdprio_percentage", &[], "a percentage, for reads and writes", "`0`", "The part of the requests that has a priority of its own (libaio, io_uring)."),
    yes("Priorities and control groups", "cmdprio_class", &[], "1 to 3, for reads and writes", "1", "Their class."),
    yes("Priorities and control groups", "cmdprio", &[], "0 to 7, for reads and writes", "0", "Their level."),
    yes("Priorities and control groups", "cmdprio_bssplit", &[], "`SIZE/PERCENT`, `SIZE/PERCENT/CLASS/LEVEL`, ... separated by colons", "none", "The part with a priority of its own for each size of requests."),
    yes("Priorities and control groups", "cgroup", &[], "a path from the root", "the root", "The control group of the job."),
    yes("Priorities and control groups", "cgroup_weight", &[], "1 to 1000, or one for each name of the path: `200/300`", "100", "The weight of the group, or of the groups on its path."),
    yes("Verification", "verify", &[], "`0`, `none`, `null`, or a checksum", "`0`", "Blocks that were written are read again."),
    yes("Verification", "do_verify", &[], "`0`, `1`", "`1`", "0: blocks are written with a checksum and not read again."),
    yes("Verification", "verify_only", &[], "`0`, `1`", "`0`", "The job only reads what it would write."),
    yes("Verification", "verify_backlog", &[], "a number", "`0`", "Written blocks after which they are verified; 0 is the end of the pass."),
    yes("Verification", "verify_backlog_batch", &[], "a number", "`verify_backlog`", "Blocks that are verified at once."),
    yes("Reports and logs", "group_reporting", &[], "`0`, `1`", "`0`", "The clones of a group are reported as one."),
    yes("Reports and logs", "new_group", &[], "`0`, `1`", "`0`", "A new reporting group starts here."),
    yes("Reports and logs", "unified_rw_reporting", &[], "`none`, `0`, `mixed`, `1`, `both`, `2`", "`none`", "How `--json` reports the directions."),
    yes("Reports and logs", "write_bw_log", &[], "text", "none", "The beginning of the name of the bandwidth log; without a value, the job's name."),
    yes("Reports and logs", "log_avg_msec", &[], "a time in ms", "`0`", "The time over which entries of the log are averaged; 0 logs every request."),
    yes("Reports and logs", "log_offset", &[], "`0`, `1`", "`0`", "Lines of the log have the offset."),
    yes("Reports and logs", "log_prio", &[], "`0`, `1`", "`0`", "Lines of the log have class and level of the priority."),
    yes("Reports and logs", "bwavgtime", &[], "a time in ms", "`500`", "The time over which bandwidth is averaged for its least, most and deviation."),
    yes("Reports and logs", "iopsavgtime", &[], "a time in ms", "`500`", "The same for requests a second."),
    yes("hoistway's own", "hoistway_tree", &[], "`linux`, or parts such as `files=1000,age=3`", "none", "The job walks through a tree of files instead of files of its own."),
    yes("hoistway's own", "hoistway_walk", &[], "`readdir`, `archive`, `name`, `find`, `inode`, `block`, `sweep`, `single`, `random`", "`readdir`", "The order of the walk."),
    yes("hoistway's own", "hoistway_journal", &[], "`ext3`, `ext4`", "none", "The files of all jobs are on a file system that journals its metadata."),
    yes("hoistway's own", "hoistway_reserve", &[], "a size a second", "none", "The bandwidth that each clone reserves, under elevators that take reservations."),
    idle("description", &[]),
    idle("unique_filename", &[]),
    idle("randrepeat", &[]),
    idle("allrandrepeat", &[]),
    idle("ignore_error", &[]),
    idle("random_generator", &[]),
    idle("fallocate", &[]),
    idle("clocksource", &[]),
    idle("mem", &["iomem"]),
    idle("softrandommap", &[]),
    idle("verify_interval", &[]),
    idle("verify_offset", &[]),
    idle("verify_pattern", &[]),
    idle("verify_pattern_interval", &[]),
    idle("verify_fatal", &[]),
    idle("verify_dump", &[]),
    idle("verify_async", &[]),
    idle("verify_async_cpus", &[]),
    idle("experimental_verify", &[]),
    idle("verify_state_load", &[]),
    idle("verify_state_save", &[]),
    idle("write_iolog", &[]),
    idle("exec_prerun", &[]),
    idle("exec_postrun", &[]),
    idle("ioscheduler", &[]),
    idle("lockmem", &[]),
    idle("write_hint", &[]),
    idle("create_serialize", &[]),
    idle("create_fsync", &[]),
    idle("create_on_open", &[]),
    idle("allow_file_create", &[]),
    idle("allow_mounted_write", &[]),
    idle("cpumask", &[]),
    idle("cpus_allowed", &[]),
    idle("cpus_allowed_policy", &[]),
    idle("numa_cpu_nodes", &[]),
    idle("numa_mem_policy", &[]),
    idle("thread", &["threads"]),
    idle("per_job_logs", &[]),
    idle("write_lat_log", &[]),
    idle("write_iops_log", &[]),
    idle("log_entries", &[]),
    idle("log_hist_msec", &[]),
    idle("log_hist_coarseness", &[]),
    idle("write_hist_log", &[]),
    idle("log_max_value", &[]),
    idle("log_compression", &[]),
    idle("log_compression_cpus", &[]),
    idle("log_store_compressed", &[]),
    idle("log_unix_epoch", &[]),
    idle("log_alternate_epoch", &[]),
    idle("log_alternate_epoch_clock_id", &[]),
    idle("block_error_percentiles", &[]),
    idle("stats", &[]),
    idle("zero_buffers", &[]),
    idle("refill_buffers", &[]),
    idle("scramble_buffers", &[]),
    idle("buffer_pattern", &[]),
    idle("buffer_compress_percentage", &[]),
    idle("buffer_compress_chunk", &[]),
    idle("dedupe_percentage", &[]),
    idle("dedupe_mode", &[]),
    idle("dedupe_working_set_percentage", &[]),
    idle("dedupe_global", &[]),
    idle("clat_percentiles", &[]),
    idle("lat_percentiles", &[]),
    idle("slat_percentiles", &[]),
    idle("percentile_list", &[]),
    idle("significant_figures", &[]),
    idle("disk_util", &[]),
    idle("gtod_reduce", &[]),
    idle("disable_lat", &[]),
    idle("disable_clat", &[]),
    idle("disable_slat", &[]),
    idle("disable_bw_measurement", &["disable_bw"]),
    idle("gtod_cpu", &[]),
    idle("continue_on_error", &[]),
    idle("error_dump", &[]),
    idle("cgroup_nodelete", &[]),
    idle("uid", &[]),
    idle("gid", &[]),
    idle("unit_base", &[]),
    idle("hugepage-size", &[]),
    idle("mem_align", &["iomem_align"]),
    idle("exitall_on_error", &[]),
    idle("hipri", &[]),
    idle("hipri_percentage", &[]),
    idle("userspace_reap", &[]),
    idle("fixedbufs", &[]),
    idle("registerfiles", &[]),
    idle("sqthread_poll", &[]),
    idle("sqthread_poll_cpu", &[]),
    idle("nonvectored", &[]),
    idle("force_async", &[]),
    idle("thp", &[]),
    idle("flow_watermark", &[]),
    idle("ignore_zone_limits", &[]),
    idle("uncached", &[]),
    idle("nowait", &[]),
    idle("readfua", &[]),
    idle("sg_write_mode", &[]),
    idle("stream_id", &[]),
    idle("write_barrier", &[]),
    idle("atomic", &[]),
    idle("exit_on_io_done", &[]),
    idle("cpuload", &[]),
    idle("cpuchunks", &[]),
    idle("cpumode", &[]),
    idle("cmd_type", &[]),
    idle("hostname", &[]),
    idle("port", &[]),
    idle("protocol", &[]),
    idle("nodelay", &[]),
    idle("listen", &[]),
    idle("pingpong", &[]),
    idle("interface", &[]),
    idle("ttl", &[]),
    idle("window_size", &[]),
    idle("mss", &[]),
    idle("program", &[]),
    idle("arguments", &[]),
    idle("grace_time", &[]),
    idle("std_redirect", &[]),
    idle("uri", &[]),
    idle("stat_type", &[]),
    idle("clustername", &[]),
    idle("rbdname", &[]),
    idle("pool", &[]),
    idle("clientname", &[]),
    idle("busy_poll", &[]),
    idle("donorname", &[]),
    idle("inplace", &[]),
    idle("verb", &[]),
    idle("bindname", &[]),
    idle("namenode", &[]),
    idle("chunk_size", &[]),
    idle("skip_bad", &[]),
    idle("volume", &[]),
    idle("brick", &[]),
    idle("hdfsdirectory", &[]),
    idle("http_host", &[]),
    idle("gpu_dev_ids", &[]),
    idle("cuda_io", &[]),
    idle("http_mode", &[]),
    idle("https", &[]),
    not("lockfile", &["none"], "jobs do not wait for locks of one another"),
    not("opendir", &[], "there is no directory to look into: name files by filename= or nrfiles="),
    not("serialize_overlap", &["0"], "requests that overlap do not wait for one another"),
    not("file_append", &["0"], "a simulated file has the size that the job file gives it"),
    not("sync_file_range", &[], "parts of a file cannot be written back alone"),
    not("trim_percentage", &["0"], TRIMS),
    not("trim_verify_zero", &["0"], TRIMS),
    not("trim_backlog", &["0"], TRIMS),
    not("trim_backlog_batch", &["0"], TRIMS),
    not("read_iolog", &[], RECORDING),
    not("read_iolog_chunked", &["0"], RECORDING),
    not("replay_no_stall", &["0"], RECORDING),
    not("replay_redirect", &[], RECORDING),
    not("replay_scale", &["1"], RECORDING),
    not("replay_align", &["0"], RECORDING),
    not("replay_time_scale", &["100"], RECORDING),
    not("replay_skip", &[], RECORDING),
    not("merge_blktrace_file", &[], RECORDING),
    not("merge_blktrace_scalars", &[], RECORDING),
    not("merge_blktrace_iters", &[], RECORDING),
    not("zone_reset_threshold", &["0"], "zones are reset when all are full"),
    not("zone_reset_frequency", &["0"], "zones are reset when all are full"),
    not("profile", &[], "the profile is a program of its own: write its options"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_name_and_alias_is_listed_once() {
        let mut seen = HashSet::new();
        for known in OPTIONS {
            for name in std::iter::once(known.name).chain(known.aliases.iter().copied()) {
                assert!(seen.insert(name), "{name} stands twice");
            }
        }
    }

    #[test]
    fn every_option_that_fio_lists_is_known_by_its_canonical_name() {
        for name in include_str!("../testdata/fio-3.33/options.txt").lines() {
            assert_eq!(find(name).map(|known| known.name), Some(name));
        }
    }

    #[test]
    fn the_nearest_name_is_near() {
        assert_eq!(nearest("iodetph"), Some("iodepth"));
        assert_eq!(nearest("block_size"), Some("blocksize"));
        assert_eq!(nearest("qqqqqqqq"), None);
        assert_eq!(nearest(&"iodepth".repeat(1000)), None);
    }
}
