//! All options of fio 3.33 with hoistway's support for each, and hoistway's own options, which fio
//! rejects.
//!
//! Names and aliases are those of `fio --cmdhelp=all`, of `fio --enghelp` for each engine, and of
//! the manual.

use crate::job::{
    extensions, files,
    option::{KnownOption, Subject, Support},
    pacing, priorities, reporting, requests, start_and_end, submission, verification, zones,
};

/// The options that are simulated.
pub static SUBJECTS: &[Subject] = &[
    requests::SUBJECT,
    files::SUBJECT,
    zones::SUBJECT,
    submission::SUBJECT,
    pacing::SUBJECT,
    start_and_end::SUBJECT,
    priorities::SUBJECT,
    verification::SUBJECT,
    reporting::SUBJECT,
    extensions::SUBJECT,
];

/// All options: first the supported, then the ignored, then the refused ones.
pub fn options() -> impl Iterator<Item = &'static KnownOption> {
    SUBJECTS.iter().flat_map(|subject| subject.options).chain(IGNORED).chain(REFUSED)
}

/// Finds an option by name or alias.
pub(crate) fn find(name: &str) -> Option<&'static KnownOption> {
    options().find(|known| known.name == name || known.aliases.contains(&name))
}

/// The known name nearest to an unknown one, if one is near enough.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    // A name that is less than half right is no help, and the comparison takes time quadratic in
    // the length.
    if name.len() > 64 {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    options()
        .flat_map(KnownOption::names)
        .map(|candidate| (strsim::damerau_levenshtein(&lower, candidate), candidate))
        .filter(|(distance, candidate)| distance * 2 < candidate.len().max(name.chars().count()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// An ignored option: its name, and its aliases.
const fn idle(names: &'static [&'static str]) -> KnownOption {
    let [name, aliases @ ..] = names else { panic!("an option has a name") };
    KnownOption { name, aliases, support: Support::Ignored }
}

const fn not(name: &'static str, harmless: &'static [&'static str], why: &'static str) -> KnownOption {
    KnownOption { name, aliases: &[], support: Support::Refused(harmless, why) }
}

const RECORDING: &str = "`hoistway trace whatif` simulates recorded requests";
const TRIMS: &str = "blocks are not trimmed while they are verified";

#[rustfmt::skip]
static IGNORED: &[KnownOption] = &[
    idle(&["description"]), idle(&["unique_filename"]), idle(&["randrepeat"]), idle(&["allrandrepeat"]),
    idle(&["ignore_error"]), idle(&["random_generator"]), idle(&["fallocate"]), idle(&["clocksource"]),
    idle(&["mem", "iomem"]), idle(&["softrandommap"]), idle(&["verify_interval"]), idle(&["verify_offset"]),
    idle(&["verify_pattern"]), idle(&["verify_pattern_interval"]), idle(&["verify_fatal"]), idle(&["verify_dump"]),
    idle(&["verify_async"]), idle(&["verify_async_cpus"]), idle(&["experimental_verify"]),
    idle(&["verify_state_load"]), idle(&["verify_state_save"]), idle(&["write_iolog"]), idle(&["exec_prerun"]),
    idle(&["exec_postrun"]), idle(&["ioscheduler"]), idle(&["lockmem"]), idle(&["write_hint"]),
    idle(&["create_serialize"]), idle(&["create_fsync"]), idle(&["create_on_open"]), idle(&["allow_file_create"]),
    idle(&["allow_mounted_write"]), idle(&["cpumask"]), idle(&["cpus_allowed"]), idle(&["cpus_allowed_policy"]),
    idle(&["numa_cpu_nodes"]), idle(&["numa_mem_policy"]), idle(&["thread", "threads"]), idle(&["per_job_logs"]),
    idle(&["write_lat_log"]), idle(&["write_iops_log"]), idle(&["log_entries"]), idle(&["log_hist_msec"]),
    idle(&["log_hist_coarseness"]), idle(&["write_hist_log"]), idle(&["log_max_value"]), idle(&["log_compression"]),
    idle(&["log_compression_cpus"]), idle(&["log_store_compressed"]), idle(&["log_unix_epoch"]),
    idle(&["log_alternate_epoch"]), idle(&["log_alternate_epoch_clock_id"]), idle(&["block_error_percentiles"]),
    idle(&["stats"]), idle(&["zero_buffers"]), idle(&["refill_buffers"]), idle(&["scramble_buffers"]),
    idle(&["buffer_pattern"]), idle(&["buffer_compress_percentage"]), idle(&["buffer_compress_chunk"]),
    idle(&["dedupe_percentage"]), idle(&["dedupe_mode"]), idle(&["dedupe_working_set_percentage"]),
    idle(&["dedupe_global"]), idle(&["clat_percentiles"]), idle(&["lat_percentiles"]), idle(&["slat_percentiles"]),
    idle(&["percentile_list"]), idle(&["significant_figures"]), idle(&["disk_util"]), idle(&["gtod_reduce"]),
    idle(&["disable_lat"]), idle(&["disable_clat"]), idle(&["disable_slat"]),
    idle(&["disable_bw_measurement", "disable_bw"]), idle(&["gtod_cpu"]), idle(&["continue_on_error"]),
    idle(&["error_dump"]), idle(&["cgroup_nodelete"]), idle(&["uid"]), idle(&["gid"]), idle(&["unit_base"]),
    idle(&["hugepage-size"]), idle(&["mem_align", "iomem_align"]), idle(&["exitall_on_error"]), idle(&["hipri"]),
    idle(&["hipri_percentage"]), idle(&["userspace_reap"]), idle(&["fixedbufs"]), idle(&["registerfiles"]),
    idle(&["sqthread_poll"]), idle(&["sqthread_poll_cpu"]), idle(&["nonvectored"]), idle(&["force_async"]),
    idle(&["thp"]), idle(&["flow_watermark"]), idle(&["ignore_zone_limits"]), idle(&["uncached"]),
    idle(&["nowait"]), idle(&["readfua"]), idle(&["sg_write_mode"]), idle(&["stream_id"]), idle(&["write_barrier"]),
    idle(&["atomic"]), idle(&["exit_on_io_done"]), idle(&["cpuload"]), idle(&["cpuchunks"]), idle(&["cpumode"]),
    idle(&["cmd_type"]), idle(&["hostname"]), idle(&["port"]), idle(&["protocol"]), idle(&["nodelay"]),
    idle(&["listen"]), idle(&["pingpong"]), idle(&["interface"]), idle(&["ttl"]), idle(&["window_size"]),
    idle(&["mss"]), idle(&["program"]), idle(&["arguments"]), idle(&["grace_time"]), idle(&["std_redirect"]),
    idle(&["uri"]), idle(&["stat_type"]), idle(&["clustername"]), idle(&["rbdname"]), idle(&["pool"]),
    idle(&["clientname"]), idle(&["busy_poll"]), idle(&["donorname"]), idle(&["inplace"]), idle(&["verb"]),
    idle(&["bindname"]), idle(&["namenode"]), idle(&["chunk_size"]), idle(&["skip_bad"]), idle(&["volume"]),
    idle(&["brick"]), idle(&["hdfsdirectory"]), idle(&["http_host"]), idle(&["gpu_dev_ids"]), idle(&["cuda_io"]),
    idle(&["http_mode"]), idle(&["https"]),
];

#[rustfmt::skip]
static REFUSED: &[KnownOption] = &[
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
    use crate::job::{Job, option::Description};
    use std::collections::HashSet;

    /// A value other than the default for every supported option.
    const VALUES: &str = "
        name=other wait_for=a filename=f directory=d filename_format=f rw=write bs=8k bsrange=1k-2k
        bssplit=1k/50:2k/50 randseed=1 norandommap=1 rw_sequencer=identical ioengine=sync iodepth=2 size=1m
        io_size=1m filesize=1m offset=1m offset_increment=1m offset_align=4k number_ios=1
        random_distribution=zipf:1.2 percentage_random=50 nrfiles=2 fsync=1 fdatasync=1 end_fsync=1 direct=1
        buffered=0 invalidate=0 fadvise_hint=0 loops=2 numjobs=2 startdelay=1 runtime=1 time_based=1 ramp_time=1
        rwmixread=1 rwmixwrite=1 nice=1 prio=1 prioclass=1 thinktime=1 thinktime_spin=1 thinktime_blocks=2 rate=1
        rate_process=poisson rate_iops=1 sync=1 stonewall=1 new_group=1 write_bw_log=f bwavgtime=1 iopsavgtime=1
        log_avg_msec=1 log_offset=1 log_prio=1 group_reporting=1 unified_rw_reporting=both cgroup=g
        cgroup_weight=100 hoistway_reserve=1m hoistway_journal=ext4 hoistway_tree=linux hoistway_walk=inode
        kb_base=1000 ba=8k bs_unaligned=1 bs_is_seq_rand=1 file_service_type=random:2 openfiles=2 unlink=1
        overwrite=1 unlink_each_loop=1 create_only=1 zonemode=strided zonesize=1m zonerange=1m zoneskip=1m
        zonecapacity=1m max_open_zones=2 job_max_open_zones=2 read_beyond_wp=1 pre_read=1 fill_device=1
        io_submit_mode=offload iodepth_batch=2 iodepth_batch_complete_min=2 iodepth_batch_complete_max=2
        iodepth_low=2 cmdprio_percentage=20 cmdprio_class=2 cmdprio=3 cmdprio_bssplit=4k/50 writefua=1
        verify=crc32c do_verify=0 verify_only=1 verify_backlog=8 verify_backlog_batch=4 fsync_on_close=1
        thinktime_blocks_type=issue thinktime_iotime=1 rate_ignore_thinktime=1 rate_min=1m rate_iops_min=100
        rate_cycle=500 max_latency=100 latency_target=100 latency_window=100 latency_percentile=99.9 latency_run=1
        steadystate=iops:2% steadystate_duration=10 steadystate_ramp_time=5 flow=2 flow_id=3 flow_sleep=100
        exitall=1 exit_what=all
    ";

    #[test]
    fn every_name_and_alias_is_listed_once() {
        let mut seen = HashSet::new();
        for known in options() {
            for name in known.names() {
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

    fn supported() -> impl Iterator<Item = (&'static KnownOption, Description)> {
        options().filter_map(|known| match known.support {
            Support::Supported(description) => Some((known, description)),
            _ => None,
        })
    }

    #[test]
    fn every_default_of_the_reference_is_that_of_a_job() {
        let mut defaults = 0;
        for (known, description) in supported() {
            let quoted = description.default.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
            // A default may be another option.
            let Some(value) = quoted.filter(|value| find(value).is_none()) else { continue };
            let mut job = Job::default();
            known.set(&mut job, Some(value)).unwrap_or_else(|fault| panic!("{}: {}", known.name, fault.message));
            assert_eq!(job, Job::default(), "{}={value}", known.name);
            defaults += 1;
        }
        assert!(defaults > 60, "{defaults} defaults were tried");
    }

    #[test]
    fn every_value_of_the_reference_is_taken() {
        for (known, description) in supported() {
            // Only what is in back-quotes and has no part to be filled in can be written as it is.
            let words = description.takes.split('`').skip(1).step_by(2);
            for value in words.filter(|word| !word.chars().any(|letter| letter.is_ascii_uppercase() || letter == '.')) {
                known
                    .set(&mut Job::default(), Some(value))
                    .unwrap_or_else(|fault| panic!("{}={value}: {}", known.name, fault.message));
            }
        }
    }

    #[test]
    fn every_supported_option_changes_a_job() {
        for known in supported().map(|(known, _)| known) {
            let mut values = VALUES.split_whitespace().filter_map(|line| line.split_once('='));
            let value = values.find(|(name, _)| *name == known.name).map(|(_, value)| value);
            let mut job = Job::default();
            known
                .set(&mut job, Some(value.unwrap_or_else(|| panic!("{} has no test", known.name))))
                .unwrap_or_else(|fault| panic!("{}: {}", known.name, fault.message));
            assert_ne!(job, Job::default(), "{} does nothing", known.name);
        }
    }
}
