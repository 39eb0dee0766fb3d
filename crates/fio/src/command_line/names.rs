//! Names of the options of fio's command line, and their abbreviations.
//!
//! fio 3.33 prints all names with a prefix if the prefix is no unique abbreviation:
//! `fio --name=x --d`.

use crate::{
    job::option::KnownOption,
    options::{find, options},
};

/// Options of fio that are no options of jobs and change nothing in a simulation, and whether they
/// have a value.
pub const WITHOUT_EFFECT: &[(&str, bool)] = &[
    ("output", true),
    ("output-format", true),
    ("minimal", false),
    ("append-terse", false),
    ("terse-version", true),
    ("bandwidth-log", false),
    ("eta", true),
    ("eta-interval", true),
    ("eta-newline", true),
    ("status-interval", true),
    ("readonly", false),
    ("alloc-size", true),
    ("warnings-fatal", false),
    ("max-jobs", true),
    ("debug", true),
    ("idle-prof", true),
    ("aux-path", true),
];

/// Options of fio with which it does something else than to run jobs here.
pub const REFUSED: &[&str] = &[
    "client",
    "cmdhelp",
    "cpuclock-test",
    "crctest",
    "daemonize",
    "enghelp",
    "help",
    "inflate-log",
    "memcpytest",
    "merge-blktrace-only",
    "parse-only",
    "remote-config",
    "server",
    "showcmd",
    "trigger",
    "trigger-file",
    "trigger-remote",
    "trigger-timeout",
    "version",
];

/// Options of jobs that fio takes without a value.
pub const FLAGS: &[&str] = &[
    "blocksize_unaligned",
    "bs_unaligned",
    "exitall",
    "exitall_on_error",
    "fixedbufs",
    "group_reporting",
    "hipri",
    "new_group",
    "norandommap",
    "refill_buffers",
    "registerfiles",
    "sqthread_poll",
    "stonewall",
    "thread",
    "time_based",
    "userspace_reap",
    "verify_only",
    "wait_for_previous",
    "zero_buffers",
];

/// Names that make abbreviations ambiguous in fio, and that are not known here: those of its
/// profiles, and those that it has no help for.
const OTHERS: &[&str] = &[
    "block",
    "device-names",
    "dir",
    "large-block-op-kbytes",
    "latency-log",
    "load",
    "numruns",
    "percentage_sequential",
    "prep",
    "read-req-num-512-blocks",
    "rwmixcycle",
    "section",
    "test-duration",
    "threads-per-queue",
    "verifysort",
    "verifysort_nr",
];

/// Options of engines. They make no abbreviation ambiguous: fio knows them behind `--ioengine`
/// only.
#[rustfmt::skip]
const OF_ENGINES: &[&str] = &[
    "arguments", "bindname", "brick", "busy_poll", "chunk_size", "clientname", "clustername", "cmd_type", "cmdprio",
    "cmdprio_bssplit", "cmdprio_class", "cmdprio_percentage", "cpuchunks", "cpuload", "cpumode", "cuda_io",
    "donorname", "exit_on_io_done", "fixedbufs", "force_async", "gpu_dev_ids", "grace_time", "hdfsdirectory", "hipri",
    "hipri_percentage", "hostname", "http_host", "http_mode", "https", "inplace", "interface", "listen", "mss",
    "namenode", "nodelay", "nonvectored", "nowait", "pingpong", "pool", "port", "program", "protocol", "rbdname",
    "readfua", "registerfiles", "sg_write_mode", "skip_bad", "sqthread_poll", "sqthread_poll_cpu", "start_delay",
    "stat_type", "std_redirect", "stream_id", "thp", "ttl", "uncached", "uri", "userspace_reap", "verb",
    "verify_pattern_interval", "volume", "window_size", "writefua",
];

/// Returns the name that a name or an abbreviation stands for; an unknown name stands for itself.
/// fio also refuses the abbreviations of `profile` and `size`, which its list has twice.
///
/// # Errors
/// The possible names of an ambiguous abbreviation.
pub fn complete(name: &str) -> Result<&str, Vec<&'static str>> {
    if find(name).is_some() || all().any(|known| known == name) {
        return Ok(name);
    }
    let of_engines = OF_ENGINES.iter().copied().filter(|known| known.starts_with(name));
    let mut possible: Vec<&str> = all().filter(|known| known.starts_with(name)).collect();
    if possible.is_empty() {
        possible = of_engines.collect();
    }
    possible.sort_unstable();
    match possible.as_slice() {
        [] => Ok(name),
        [only] => Ok(only),
        _ => Err(possible),
    }
}

/// The names that fio compares abbreviations with.
fn all() -> impl Iterator<Item = &'static str> {
    let of_jobs = options().flat_map(KnownOption::names);
    of_jobs
        .filter(|name| !name.starts_with("hoistway_") && !OF_ENGINES.contains(name))
        .chain(WITHOUT_EFFECT.iter().map(|(name, _)| *name))
        .chain(REFUSED.iter().copied())
        .chain(OTHERS.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abbreviation_stands_for_the_only_name_that_begins_with_it() {
        let pairs = [
            ("nam", "name"),
            ("kb", "kb_base"),
            ("directo", "directory"),
            ("eta-i", "eta-interval"),
            ("sqthread_poll_c", "sqthread_poll_cpu"),
            ("blocksize", "blocksize"),
            ("sise", "sise"),
        ];
        for (written, meant) in pairs {
            assert_eq!(complete(written), Ok(meant), "{written}");
        }
        // fio: option '--et=never' is ambiguous; possibilities: '--eta' '--eta-interval' ...
        assert_eq!(complete("et"), Err(vec!["eta", "eta-interval", "eta-newline"]));
        assert_eq!(complete("blocks"), Err(vec!["blocksize", "blocksize_range", "blocksize_unaligned"]));
        assert_eq!(complete("n").expect_err("names").len(), 11);
    }

    #[test]
    fn the_names_are_those_that_fio_3_33_lists() {
        let mut names: Vec<&str> = all().collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        assert_eq!(names.len(), 296);
        for name in OF_ENGINES {
            assert!(find(name).is_some(), "{name}");
        }
    }
}
