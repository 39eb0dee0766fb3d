//! Applies the options of a section to a job, one by one.

use crate::{
    advice::FadviseHint,
    apply_pace::{set_choice, set_pace, set_submission, zone_mode},
    engine::{Engine, EngineSupport},
    job::{Job, RateProcess, Sequencer, Size, UnifiedReporting},
    tree_values::{journal, tree, walk},
    units::{KbBase, TimeUnit},
    values::{
        Fault, SizeUnits, block_range, block_size, block_split, boolean, cgroup, cgroup_weights, count, count_u32,
        directions, distribution, flag, ioengine, names, one_of, overlay, percent, range, rw, size, time_ns,
    },
    write_sync::WriteSync,
};

/// Applies one supported option, given by its canonical name, to a job.
pub(crate) fn apply(job: &mut Job, name: &str, value: Option<&str>) -> Result<(), Fault> {
    if set_flag(job, name, value)? {
        return Ok(());
    }
    if name == "write_bw_log" {
        // Without a value the log is named after the job, whose name is known when all options are.
        job.write_bw_log = Some(value.unwrap_or_default().into());
        return Ok(());
    }
    let Some(value) = value else {
        return Err(Fault::with_help("the option needs a value", format!("write {name}=VALUE")));
    };
    if value.is_empty() {
        return Err(Fault::with_help("the value is empty", format!("write {name}=VALUE, or leave the option out")));
    }
    let done = set_request(job, name, value)?
        || set_amount(job, name, value)?
        || set_timing(job, name, value)?
        || set_standing(job, name, value)?
        || set_measuring(job, name, value)?
        || set_choice(job, name, value)?
        || set_submission(job, name, value)?
        || set_pace(job, name, value)?;
    debug_assert!(done, "{name} is listed as supported, and nothing takes it");
    Ok(())
}

/// Flags that need no value.
fn set_flag(job: &mut Job, name: &str, value: Option<&str>) -> Result<bool, Fault> {
    let field = match name {
        "time_based" => &mut job.time_based,
        "stonewall" => &mut job.stonewall,
        "new_group" => &mut job.new_group,
        "group_reporting" => &mut job.group_reporting,
        "norandommap" => &mut job.norandommap,
        "exitall" => &mut job.exitall,
        "verify_only" => &mut job.verify_only,
        _ => return Ok(false),
    };
    *field = flag(value)?;
    Ok(true)
}

/// Options on the kind and target of requests.
fn set_request(job: &mut Job, name: &str, value: &str) -> Result<bool, Fault> {
    let base = job.kb_base;
    match name {
        "rw" => (job.rw, job.rw_modifier) = rw(value, base)?,
        "rw_sequencer" => {
            job.rw_sequencer = match value {
                "sequential" => Sequencer::Sequential,
                "identical" => Sequencer::Identical,
                other => return Err(one_of(other, &["sequential", "identical"])),
            }
        }
        "bs" => overlay(&mut job.bs, directions(value, |part| block_size(part, base))?),
        "bsrange" => {
            // The older form has a slash between reads and writes.
            let value = value.replace('/', ",");
            overlay(&mut job.bs, directions(&value, |part| block_range(part, base))?);
        }
        "bssplit" => overlay(&mut job.bs, directions(value, |part| block_split(part, base))?),
        "rwmixread" => job.rwmixread = percent(value)?,
        "rwmixwrite" => job.rwmixread = 100 - percent(value)?,
        "percentage_random" => overlay(&mut job.percentage_random, directions(value, percent)?),
        "randseed" => job.randseed = Some(count(value, base, 0..=u64::MAX)?),
        "random_distribution" => job.random_distribution = distribution(value, base)?,
        "ioengine" => set_engine(job, ioengine(value)?),
        "iodepth" => job.iodepth = count_u32(value, base, 1)?,
        "direct" => job.direct = boolean(value)?,
        "buffered" => job.direct = !boolean(value)?,
        "invalidate" => job.invalidate = boolean(value)?,
        "fadvise_hint" => job.fadvise_hint = advice(value)?,
        "fsync" => job.fsync = count_u32(value, base, 0)?,
        "fdatasync" => job.fdatasync = count_u32(value, base, 0)?,
        "end_fsync" => job.end_fsync = boolean(value)?,
        // A file is closed at the end of its job.
        "fsync_on_close" => job.end_fsync |= boolean(value)?,
        "do_verify" => job.do_verify = boolean(value)?,
        "unified_rw_reporting" => {
            job.unified_reporting = match value {
                "none" | "0" => UnifiedReporting::Separate,
                "mixed" | "1" => UnifiedReporting::Mixed,
                "both" | "2" => UnifiedReporting::Both,
                other => return Err(one_of(other, &["none", "0", "mixed", "1", "both", "2"])),
            }
        }
        "sync" => {
            job.sync = match value {
                "none" | "0" => WriteSync::None,
                "dsync" => WriteSync::Dsync,
                "sync" | "1" => WriteSync::Sync,
                other => return Err(one_of(other, &["none", "0", "sync", "1", "dsync"])),
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn set_engine(job: &mut Job, engine: &'static Engine) {
    job.stands_for = Some(engine);
    match engine.support {
        EngineSupport::Simulated(simulated) => (job.ioengine, job.stands_for) = (simulated, None),
        EngineSupport::Direct(like, _) | EngineSupport::Like(like, _) => job.ioengine = like,
        EngineSupport::NoData(_) | EngineSupport::Refused(_) => {}
    }
}

/// Options on the amount of data and on files.
fn set_amount(job: &mut Job, name: &str, value: &str) -> Result<bool, Fault> {
    let base = job.kb_base;
    match name {
        // Zero is fio's default and means that nothing was given.
        "size" => {
            let given = size(value, SizeUnits::of(job), true)?;
            job.size_given = given != Size::Bytes(0);
            job.size = if job.size_given { given } else { Size::Percent(100) };
        }
        "io_size" => job.io_size = Some(size(value, SizeUnits::of(job), true)?).filter(|size| *size != Size::Bytes(0)),
        "filesize" => job.filesize = Some(range(value, |part| count(part, base, 1..=u64::MAX))?),
        "offset" => job.offset = size(value, SizeUnits::of(job), true)?,
        "offset_increment" => job.offset_increment = size(value, SizeUnits::of(job), true)?,
        "offset_align" => job.offset_align = count(value, base, 0..=u64::MAX)?,
        // As in fio, names are added to those of the sections above.
        "filename" => job.filename.extend(names(value)?),
        "filename_format" => job.filename_format = value.into(),
        "directory" => job.directory = names(value)?,
        "nrfiles" => job.nrfiles = count_u32(value, base, 0)?.max(1),
        "hoistway_journal" => job.hoistway_journal = Some(journal(value)?),
        "hoistway_tree" => job.hoistway_tree = Some(tree(value, base)?),
        "hoistway_walk" => job.hoistway_walk = walk(value)?,
        "numjobs" => job.numjobs = count_u32(value, base, 1)?,
        "loops" => job.loops = count_u32(value, base, 0)?.max(1),
        // Zero is fio's default and means no limit.
        "number_ios" => job.number_ios = Some(count(value, base, 0..=u64::MAX)?).filter(|ios| *ios > 0),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Options on the timing of requests.
fn set_timing(job: &mut Job, name: &str, value: &str) -> Result<bool, Fault> {
    let base = job.kb_base;
    let uncapped = |cap: u64| Some(cap).filter(|cap| *cap > 0);
    match name {
        // Zero is fio's default and means no limit.
        "runtime" => job.runtime_ns = Some(time_ns(value, TimeUnit::Seconds)?).filter(|ns| *ns > 0),
        "ramp_time" => job.ramp_time_ns = time_ns(value, TimeUnit::Seconds)?,
        "startdelay" => job.startdelay_ns = range(value, |part| time_ns(part, TimeUnit::Seconds))?,
        "thinktime" => job.thinktime_ns = time_ns(value, TimeUnit::Microseconds)?,
        "thinktime_spin" => job.thinktime_spin_ns = time_ns(value, TimeUnit::Microseconds)?,
        "thinktime_blocks" => job.thinktime_blocks = count_u32(value, base, 0)?.max(1),
        "rate" => {
            overlay(&mut job.rate, directions(value, |part| Ok(uncapped(count(part, base, 0..=u64::MAX)?)))?);
        }
        "rate_iops" => {
            overlay(&mut job.rate_iops, directions(value, |part| Ok(uncapped(count(part, base, 0..=u64::MAX)?)))?);
        }
        "rate_process" => {
            job.rate_process = match value {
                "linear" => RateProcess::Linear,
                "poisson" => RateProcess::Poisson,
                other => return Err(one_of(other, &["linear", "poisson"])),
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Options on identity, priority and control groups.
fn set_standing(job: &mut Job, name: &str, value: &str) -> Result<bool, Fault> {
    let base = job.kb_base;
    match name {
        "name" => job.name = value.into(),
        "wait_for" => job.wait_for = Some(value.into()),
        "prio" => job.prio = Some(small(value, base, 0, 7)?),
        "prioclass" => {
            let class = small(value, base, 0, 3).map_err(|fault| Fault {
                help: Some("0 for none, 1 for real time, 2 for best effort, 3 for idle".into()),
                ..fault
            })?;
            job.prioclass = Some(class).filter(|class| *class > 0);
        }
        "nice" => job.nice = Some(nice(value)?),
        "cgroup" => job.cgroup = Some(cgroup(value)?),
        "cgroup_weight" => job.cgroup_weight = cgroup_weights(value, base)?,
        "hoistway_reserve" => job.hoistway_reserve = Some(count(value, base, 1..=u64::MAX)?),
        "kb_base" => job.kb_base = kb_base(value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Options on measurements and logs.
fn set_measuring(job: &mut Job, name: &str, value: &str) -> Result<bool, Fault> {
    let base = job.kb_base;
    match name {
        "log_avg_msec" => job.log_avg_msec = count(value, base, 0..=u64::MAX)?,
        "bwavgtime" => job.bwavgtime_ms = count(value, base, 1..=u64::MAX)?,
        "iopsavgtime" => job.iopsavgtime_ms = count(value, base, 1..=u64::MAX)?,
        "log_offset" => job.log_offset = boolean(value)?,
        "log_prio" => job.log_prio = boolean(value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Parses the base of prefixes; the option applies to all others, in any position.
pub(crate) fn kb_base(value: &str) -> Result<KbBase, Fault> {
    match value {
        "1024" => Ok(KbBase::Compatible),
        "1000" => Ok(KbBase::Standard),
        other => Err(one_of(other, &["1000", "1024"])),
    }
}

/// Sets what a number of zones (`4z`) in any other option means. `value_of` returns the last value
/// of an option by its canonical name; the errors of these values are found where they are applied.
pub(crate) fn set_zone_units<'a>(job: &mut Job, value_of: impl Fn(&str) -> Option<&'a str>) {
    if let Some(Ok(mode)) = value_of("zonemode").map(zone_mode) {
        job.zones.mode = mode;
    }
    if let Some(Ok(bytes)) = value_of("zonesize").map(|value| count(value, job.kb_base, 0..=u64::MAX)) {
        job.zones.size = bytes;
    }
}

/// Parses the advice on access patterns for the kernel: by what the job does (1), none (0), or a
/// given one.
fn advice(value: &str) -> Result<FadviseHint, Fault> {
    match value {
        "sequential" => Ok(FadviseHint::Sequential),
        "random" => Ok(FadviseHint::Random),
        _ => match boolean(value) {
            Ok(true) => Ok(FadviseHint::Pattern),
            Ok(false) => Ok(FadviseHint::None),
            Err(_) => Err(Fault::with_help(
                format!("`{value}` is not an advice on the access pattern"),
                "0 for none, 1 for that of rw, sequential or random",
            )),
        },
    }
}

fn small(value: &str, base: KbBase, least: u8, most: u8) -> Result<u8, Fault> {
    let number = count(value, base, u64::from(least)..=u64::from(most))?;
    Ok(u8::try_from(number).unwrap_or(most))
}

fn nice(value: &str) -> Result<i8, Fault> {
    match value.parse::<i8>() {
        Ok(nice) if (-20..=19).contains(&nice) => Ok(nice),
        _ => Err(Fault::with_help(format!("`{value}` is not a nice value"), "from -20 to 19")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::{Description, KnownOption, OPTIONS, Support};

    /// A value other than the default for every supported option.
    const VALUES: &[(&str, &str)] = &[
        ("name", "other"),
        ("wait_for", "a"),
        ("filename", "f"),
        ("directory", "d"),
        ("filename_format", "f"),
        ("rw", "write"),
        ("bs", "8k"),
        ("bsrange", "1k-2k"),
        ("bssplit", "1k/50:2k/50"),
        ("randseed", "1"),
        ("norandommap", "1"),
        ("rw_sequencer", "identical"),
        ("ioengine", "sync"),
        ("iodepth", "2"),
        ("size", "1m"),
        ("io_size", "1m"),
        ("filesize", "1m"),
        ("offset", "1m"),
        ("offset_increment", "1m"),
        ("offset_align", "4k"),
        ("number_ios", "1"),
        ("random_distribution", "zipf:1.2"),
        ("percentage_random", "50"),
        ("nrfiles", "2"),
        ("fsync", "1"),
        ("fdatasync", "1"),
        ("end_fsync", "1"),
        ("direct", "1"),
        ("buffered", "0"),
        ("invalidate", "0"),
        ("fadvise_hint", "0"),
        ("loops", "2"),
        ("numjobs", "2"),
        ("startdelay", "1"),
        ("runtime", "1"),
        ("time_based", "1"),
        ("ramp_time", "1"),
        ("rwmixread", "1"),
        ("rwmixwrite", "1"),
        ("nice", "1"),
        ("prio", "1"),
        ("prioclass", "1"),
        ("thinktime", "1"),
        ("thinktime_spin", "1"),
        ("thinktime_blocks", "2"),
        ("rate", "1"),
        ("rate_process", "poisson"),
        ("rate_iops", "1"),
        ("sync", "1"),
        ("stonewall", "1"),
        ("new_group", "1"),
        ("write_bw_log", "f"),
        ("bwavgtime", "1"),
        ("iopsavgtime", "1"),
        ("log_avg_msec", "1"),
        ("log_offset", "1"),
        ("log_prio", "1"),
        ("group_reporting", "1"),
        ("unified_rw_reporting", "both"),
        ("cgroup", "g"),
        ("cgroup_weight", "100"),
        ("hoistway_reserve", "1m"),
        ("hoistway_journal", "ext4"),
        ("hoistway_tree", "linux"),
        ("hoistway_walk", "inode"),
        ("kb_base", "1000"),
        ("ba", "8k"),
        ("bs_unaligned", "1"),
        ("bs_is_seq_rand", "1"),
        ("file_service_type", "random:2"),
        ("openfiles", "2"),
        ("unlink", "1"),
        ("overwrite", "1"),
        ("unlink_each_loop", "1"),
        ("create_only", "1"),
        ("zonemode", "strided"),
        ("zonesize", "1m"),
        ("zonerange", "1m"),
        ("zoneskip", "1m"),
        ("zonecapacity", "1m"),
        ("max_open_zones", "2"),
        ("job_max_open_zones", "2"),
        ("read_beyond_wp", "1"),
        ("pre_read", "1"),
        ("fill_device", "1"),
        ("io_submit_mode", "offload"),
        ("iodepth_batch", "2"),
        ("iodepth_batch_complete_min", "2"),
        ("iodepth_batch_complete_max", "2"),
        ("iodepth_low", "2"),
        ("cmdprio_percentage", "20"),
        ("cmdprio_class", "2"),
        ("cmdprio", "3"),
        ("cmdprio_bssplit", "4k/50"),
        ("writefua", "1"),
        ("verify", "crc32c"),
        ("do_verify", "0"),
        ("verify_only", "1"),
        ("verify_backlog", "8"),
        ("verify_backlog_batch", "4"),
        ("fsync_on_close", "1"),
        ("thinktime_blocks_type", "issue"),
        ("thinktime_iotime", "1"),
        ("rate_ignore_thinktime", "1"),
        ("rate_min", "1m"),
        ("rate_iops_min", "100"),
        ("rate_cycle", "500"),
        ("max_latency", "100"),
        ("latency_target", "100"),
        ("latency_window", "100"),
        ("latency_percentile", "99.9"),
        ("latency_run", "1"),
        ("steadystate", "iops:2%"),
        ("steadystate_duration", "10"),
        ("steadystate_ramp_time", "5"),
        ("flow", "2"),
        ("flow_id", "3"),
        ("flow_sleep", "100"),
        ("exitall", "1"),
        ("exit_what", "all"),
    ];

    fn supported() -> impl Iterator<Item = (&'static KnownOption, Description)> {
        OPTIONS.iter().filter_map(|known| match known.support {
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
            let Some(value) = quoted.filter(|value| crate::known::find(value).is_none()) else { continue };
            let mut job = Job::default();
            apply(&mut job, known.name, Some(value))
                .unwrap_or_else(|fault| panic!("{}: {}", known.name, fault.message));
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
                apply(&mut Job::default(), known.name, Some(value))
                    .unwrap_or_else(|fault| panic!("{}={value}: {}", known.name, fault.message));
            }
        }
    }

    #[test]
    fn every_supported_option_changes_a_job() {
        for known in supported().map(|(known, _)| known) {
            let value = VALUES.iter().find(|(name, _)| *name == known.name).map(|(_, value)| *value);
            let mut job = Job::default();
            apply(&mut job, known.name, Some(value.unwrap_or_else(|| panic!("{} has no test", known.name))))
                .unwrap_or_else(|fault| panic!("{}: {}", known.name, fault.message));
            assert_ne!(job, Job::default(), "{} does nothing", known.name);
        }
    }
}
