//! All options of fio 3.33 with hoistway's support for each, and hoistway's own options, which fio
//! rejects.
//!
//! Names and aliases are those of `fio --cmdhelp=all`, of `fio --enghelp` for each engine, and of
//! the manual.

/// The support for an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// The option is applied to the job.
    Supported,
    /// The option cannot affect a simulation: it is accepted, and listed once.
    Ignored,
    /// The option matters and is not simulated, for the reason of the second part. The values of
    /// the first part are accepted: they describe the behaviour that there is.
    Refused(&'static [&'static str], &'static str),
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
        .flat_map(|known| std::iter::once(known.name).chain(known.aliases.iter().copied()))
        .map(|candidate| (strsim::damerau_levenshtein(&lower, candidate), candidate))
        .filter(|(distance, candidate)| distance * 2 < candidate.len().max(name.chars().count()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

const fn yes(name: &'static str, aliases: &'static [&'static str]) -> KnownOption {
    KnownOption { name, aliases, support: Support::Supported }
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
    yes("name", &[]),
    yes("wait_for", &[]),
    yes("filename", &[]),
    yes("directory", &[]),
    yes("filename_format", &[]),
    yes("rw", &["readwrite"]),
    yes("bs", &["blocksize"]),
    yes("bsrange", &["blocksize_range"]),
    yes("bssplit", &[]),
    yes("randseed", &[]),
    yes("norandommap", &[]),
    yes("rw_sequencer", &[]),
    yes("ioengine", &[]),
    yes("iodepth", &[]),
    yes("size", &[]),
    yes("io_size", &["io_limit"]),
    yes("filesize", &[]),
    yes("offset", &["fileoffset"]),
    yes("offset_increment", &[]),
    yes("offset_align", &[]),
    yes("number_ios", &[]),
    yes("random_distribution", &[]),
    yes("percentage_random", &[]),
    yes("nrfiles", &["nr_files"]),
    yes("fsync", &[]),
    yes("fdatasync", &[]),
    yes("end_fsync", &[]),
    yes("direct", &[]),
    yes("buffered", &[]),
    yes("invalidate", &[]),
    yes("fadvise_hint", &[]),
    yes("loops", &[]),
    yes("numjobs", &[]),
    yes("startdelay", &["start_delay"]),
    yes("runtime", &["timeout"]),
    yes("time_based", &[]),
    yes("ramp_time", &[]),
    yes("rwmixread", &[]),
    yes("rwmixwrite", &[]),
    yes("nice", &[]),
    yes("prio", &[]),
    yes("prioclass", &[]),
    yes("thinktime", &[]),
    yes("thinktime_spin", &[]),
    yes("thinktime_blocks", &[]),
    yes("rate", &[]),
    yes("rate_process", &[]),
    yes("rate_iops", &[]),
    yes("sync", &[]),
    yes("stonewall", &["wait_for_previous"]),
    yes("new_group", &[]),
    yes("write_bw_log", &[]),
    yes("bwavgtime", &[]),
    yes("iopsavgtime", &[]),
    yes("log_avg_msec", &[]),
    yes("log_offset", &[]),
    yes("log_prio", &[]),
    yes("group_reporting", &[]),
    yes("unified_rw_reporting", &[]),
    yes("cgroup", &[]),
    yes("cgroup_weight", &[]),
    yes("hoistway_reserve", &[]),
    yes("hoistway_journal", &[]),
    yes("hoistway_tree", &[]),
    yes("hoistway_walk", &[]),
    yes("kb_base", &[]),
    yes("ba", &["blockalign"]),
    yes("bs_unaligned", &["blocksize_unaligned"]),
    yes("bs_is_seq_rand", &[]),
    yes("file_service_type", &[]),
    yes("openfiles", &[]),
    yes("unlink", &[]),
    yes("unlink_each_loop", &[]),
    yes("create_only", &[]),
    yes("zonemode", &[]),
    yes("zonesize", &[]),
    yes("zonerange", &[]),
    yes("zoneskip", &[]),
    yes("zonecapacity", &[]),
    yes("max_open_zones", &[]),
    yes("job_max_open_zones", &[]),
    yes("read_beyond_wp", &[]),
    yes("pre_read", &[]),
    yes("fill_device", &["fill_fs"]),
    yes("io_submit_mode", &[]),
    yes("iodepth_batch", &["iodepth_batch_submit"]),
    yes("iodepth_batch_complete_min", &["iodepth_batch_complete"]),
    yes("iodepth_batch_complete_max", &[]),
    yes("iodepth_low", &[]),
    yes("cmdprio_percentage", &[]),
    yes("cmdprio_class", &[]),
    yes("cmdprio", &[]),
    yes("cmdprio_bssplit", &[]),
    yes("writefua", &[]),
    yes("verify", &[]),
    yes("do_verify", &[]),
    yes("verify_only", &[]),
    yes("verify_backlog", &[]),
    yes("verify_backlog_batch", &[]),
    yes("fsync_on_close", &[]),
    yes("thinktime_blocks_type", &[]),
    yes("thinktime_iotime", &[]),
    yes("rate_ignore_thinktime", &[]),
    yes("rate_min", &["ratemin"]),
    yes("rate_iops_min", &[]),
    yes("rate_cycle", &["ratecycle"]),
    yes("max_latency", &[]),
    yes("latency_target", &[]),
    yes("latency_window", &[]),
    yes("latency_percentile", &[]),
    yes("latency_run", &[]),
    yes("steadystate", &["ss"]),
    yes("steadystate_duration", &["ss_dur"]),
    yes("steadystate_ramp_time", &["ss_ramp"]),
    yes("flow", &[]),
    yes("flow_id", &[]),
    yes("flow_sleep", &[]),
    yes("exitall", &[]),
    yes("exit_what", &[]),
    idle("description", &[]),
    idle("unique_filename", &[]),
    idle("randrepeat", &[]),
    idle("allrandrepeat", &[]),
    idle("ignore_error", &[]),
    idle("random_generator", &[]),
    idle("fallocate", &[]),
    idle("overwrite", &[]),
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
