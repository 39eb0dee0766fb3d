//! Applies the options that choose, balance, watch and end requests: zones, priorities of single
//! requests, batches, verification, shares, targets.

use crate::{
    command_priority::{CommandPriority, SizePriority},
    direction::{Direction, Directions},
    job::{FileService, Job},
    pace::{ExitWhat, SteadyFigure, SteadyState},
    units::{KbBase, TimeUnit},
    values::{
        Fault, SizeUnits, boolean, count, count_u32, directions, distribution, one_of, overlay, percent, size, time_ns,
    },
    zone::ZoneMode,
};

/// Options on the choice of offsets, sizes and files.
pub(crate) fn set_choice(job: &mut Job, name: &str, value: &str) -> Result<bool, Fault> {
    let base = job.kb_base;
    match name {
        "ba" => overlay(&mut job.blockalign, directions(value, |part| count(part, base, 1..=u64::MAX))?),
        "bs_unaligned" => job.bs_unaligned = boolean(value)?,
        "bs_is_seq_rand" => job.bs_is_seq_rand = boolean(value)?,
        "openfiles" => job.openfiles = count_u32(value, base, 0)?,
        "unlink" => job.unlink = boolean(value)?,
        "overwrite" => job.overwrite = boolean(value)?,
        "unlink_each_loop" => job.unlink_each_loop = boolean(value)?,
        "create_only" => job.create_only = boolean(value)?,
        "file_service_type" => job.file_service = file_service(value, base)?,
        "zonemode" => job.zones.mode = zone_mode(value)?,
        "zonesize" => job.zones.size = count(value, base, 0..=u64::MAX)?,
        "zonerange" => job.zones.range = count(value, base, 0..=u64::MAX)?,
        "zoneskip" => job.zones.skip = zone_skip(value, SizeUnits::of(job))?,
        "zonecapacity" => job.zones.capacity = count(value, base, 0..=u64::MAX)?,
        "max_open_zones" | "job_max_open_zones" => {
            let most = count_u32(value, base, 0)?;
            let known = job.zones.open_max;
            job.zones.open_max = if known > 0 && most > 0 { known.min(most) } else { known.max(most) };
        }
        "read_beyond_wp" => job.zones.read_beyond = boolean(value)?,
        "pre_read" => {
            job.pre_read = boolean(value)?;
            job.invalidate &= !job.pre_read;
        }
        "fill_device" => {
            job.fill_device = boolean(value)?;
            job.size_given |= job.fill_device;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Options on the submission of requests, on their priorities, and on verification.
pub(crate) fn set_submission(job: &mut Job, name: &str, value: &str) -> Result<bool, Fault> {
    let base = job.kb_base;
    match name {
        "io_submit_mode" => {
            job.offload = match value {
                "inline" => false,
                "offload" => true,
                other => return Err(one_of(other, &["inline", "offload"])),
            }
        }
        "iodepth_batch" => job.batching.submit = count_u32(value, base, 0)?,
        "iodepth_batch_complete_min" => job.batching.complete_min = count_u32(value, base, 0)?,
        "iodepth_batch_complete_max" => job.batching.complete_max = count_u32(value, base, 0)?,
        "iodepth_low" => job.batching.low = count_u32(value, base, 0)?,
        "cmdprio_percentage" => of_each(&mut job.cmdprio, value, percent, |own, percent| own.percent = percent)?,
        "cmdprio_class" => {
            of_each(&mut job.cmdprio, value, |part| small(part, base, 1..=3), |own, class| own.class = class)?;
        }
        "cmdprio" => {
            of_each(&mut job.cmdprio, value, |part| small(part, base, 0..=7), |own, level| own.level = level)?;
        }
        "cmdprio_bssplit" => {
            of_each(&mut job.cmdprio, value, |part| size_priorities(part, base), |own, split| own.by_size = split)?;
        }
        "writefua" => job.writefua = boolean(value)?,
        "verify" => job.verifies = !matches!(value, "0" | "none"),
        "verify_backlog" => job.verify_backlog = count(value, base, 0..=u64::MAX)?,
        "verify_backlog_batch" => job.verify_backlog_batch = count(value, base, 0..=u64::MAX)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Options on pauses, rates and shares, and on the end of a job.
pub(crate) fn set_pace(job: &mut Job, name: &str, value: &str) -> Result<bool, Fault> {
    let base = job.kb_base;
    let microseconds = |part: &str| time_ns(part, TimeUnit::Microseconds);
    match name {
        "thinktime_blocks_type" => {
            job.thinktime_at_issue = match value {
                "complete" => false,
                "issue" => true,
                other => return Err(one_of(other, &["complete", "issue"])),
            }
        }
        "thinktime_iotime" => job.thinktime_iotime_ns = time_ns(value, TimeUnit::Seconds)?,
        "rate_ignore_thinktime" => job.rate_ignore_thinktime = boolean(value)?,
        "rate_min" => overlay(&mut job.rate_min, directions(value, |part| count(part, base, 0..=u64::MAX))?),
        "rate_iops_min" => overlay(&mut job.rate_iops_min, directions(value, |part| count(part, base, 0..=u64::MAX))?),
        "rate_cycle" => job.rate_cycle_ms = count(value, base, 1..=u64::MAX)?,
        "max_latency" => overlay(&mut job.max_latency_ns, directions(value, microseconds)?),
        "latency_target" => job.latency_target.target_ns = microseconds(value)?,
        "latency_window" => job.latency_target.window_ns = microseconds(value)?,
        "latency_percentile" => job.latency_target.percentile = percentile(value)?,
        "latency_run" => job.latency_target.run = boolean(value)?,
        "steadystate" => job.steadystate = Some(steady_state(value, base)?),
        "steadystate_duration" => job.steadystate_duration_ns = time_ns(value, TimeUnit::Seconds)?,
        "steadystate_ramp_time" => job.steadystate_ramp_ns = time_ns(value, TimeUnit::Seconds)?,
        "flow" => job.flow.weight = count_u32(value, base, 0)?,
        "flow_id" => job.flow.id = count_u32(value, base, 0)?,
        "flow_sleep" => job.flow.sleep_ns = microseconds(value)?,
        "exit_what" => {
            job.exit_what = match value {
                "group" => ExitWhat::Group,
                "stonewall" => ExitWhat::Stonewall,
                "all" => ExitWhat::All,
                other => return Err(one_of(other, &["group", "stonewall", "all"])),
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Sets a part of the priorities of reads and of writes.
fn of_each<T: Clone>(
    onto: &mut Directions<CommandPriority>,
    value: &str,
    parse: impl Fn(&str) -> Result<T, Fault>,
    set: impl Fn(&mut CommandPriority, T),
) -> Result<(), Fault> {
    let given = directions(value, parse)?;
    for direction in [Direction::Read, Direction::Write] {
        if let Some(part) = given.get(direction).clone() {
            set(onto.get_mut(direction), part);
        }
    }
    Ok(())
}

fn small(value: &str, base: KbBase, range: std::ops::RangeInclusive<u64>) -> Result<u8, Fault> {
    Ok(u8::try_from(count(value, base, range)?).unwrap_or(u8::MAX))
}

/// Parses `size/percent` or `size/percent/class/level` parts, separated by colons.
fn size_priorities(value: &str, base: KbBase) -> Result<Vec<SizePriority>, Fault> {
    let part = |part: &str| {
        let fields: Vec<&str> = part.split('/').map(str::trim).collect();
        let priority = match fields[..] {
            [_, _] => None,
            [_, _, class, level] => Some((small(class, base, 1..=3)?, small(level, base, 0..=7)?)),
            _ => {
                let help = "write size/percent, or size/percent/class/level, as in 64k/25/1/1:1024k/0";
                return Err(Fault::with_help(format!("`{part}` is not a size with its percentage"), help));
            }
        };
        Ok(SizePriority { bytes: count(fields[0], base, 1..=u64::MAX)?, percent: percent(fields[1])?, priority })
    };
    value.split(':').map(part).collect()
}

/// Parses the kind of zones.
pub(crate) fn zone_mode(value: &str) -> Result<ZoneMode, Fault> {
    match value {
        "none" => Ok(ZoneMode::None),
        "strided" => Ok(ZoneMode::Strided),
        "zbd" => Ok(ZoneMode::Zbd),
        other => Err(one_of(other, &["none", "strided", "zbd"])),
    }
}

/// Parses bytes between zones.
fn zone_skip(value: &str, units: SizeUnits) -> Result<u64, Fault> {
    match size(value, units, true)? {
        crate::job::Size::Bytes(bytes) => Ok(bytes),
        crate::job::Size::Percent(_) => Err(Fault::with_help(format!("`{value}` is a percentage"), "give bytes")),
    }
}

/// Parses the choice of files: a word with a number of requests, or with the parameter of a
/// distribution.
fn file_service(value: &str, base: KbBase) -> Result<FileService, Fault> {
    let (kind, parameter) = value.split_once(':').map_or((value, None), |(kind, rest)| (kind, Some(rest)));
    let requests = || parameter.map_or(Ok(1), |text| count_u32(text, base, 1));
    match kind {
        "roundrobin" => Ok(FileService::RoundRobin(requests()?)),
        "random" => Ok(FileService::Random(requests()?)),
        "sequential" => Ok(FileService::Sequential),
        "zipf" | "pareto" | "normal" | "gauss" => {
            let (name, default) = match kind {
                "zipf" => ("zipf", "1.1"),
                "pareto" => ("pareto", "0.2"),
                _ => ("normal", "20"),
            };
            distribution(&format!("{name}:{}", parameter.unwrap_or(default)), base).map(FileService::Drawn)
        }
        other => Err(one_of(other, &["roundrobin", "random", "sequential", "zipf", "pareto", "normal", "gauss"])),
    }
}

fn decimal(value: &str) -> Result<f64, Fault> {
    let number: Option<f64> = value.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| Fault::with_help(format!("`{value}` is not a number"), "write it as in 99.9"))
}

fn percentile(value: &str) -> Result<f64, Fault> {
    match decimal(value)? {
        percent if percent <= 100.0 => Ok(percent),
        percent => Err(Fault::with_help(format!("{percent} is more than 100 percent"), "from 0 to 100")),
    }
}

/// Parses a figure with the limit of its deviation, as in `iops_slope:0.3%`.
fn steady_state(value: &str, base: KbBase) -> Result<SteadyState, Fault> {
    let help = "write figure:limit, as in iops:2% or bw_slope:0.3%";
    let Some((name, limit)) = value.split_once(':') else {
        return Err(Fault::with_help(format!("`{value}` has no limit"), help));
    };
    let (figure, slope) = match name {
        "iops" => (SteadyFigure::Iops, false),
        "iops_slope" => (SteadyFigure::Iops, true),
        "bw" => (SteadyFigure::Bandwidth, false),
        "bw_slope" => (SteadyFigure::Bandwidth, true),
        other => return Err(one_of(other, &["iops", "iops_slope", "bw", "bw_slope"])),
    };
    let (limit, percent) = match limit.trim().strip_suffix('%') {
        Some(digits) => (decimal(digits)?, true),
        // A limit of a bandwidth may have a unit.
        None if figure == SteadyFigure::Bandwidth => {
            let bound = decimal(limit).or_else(|_| count(limit, base, 0..=u64::MAX).map(|bytes| bytes as f64));
            (bound?, false)
        }
        None => (decimal(limit)?, false),
    };
    if limit <= 0.0 {
        return Err(Fault::with_help(format!("the limit in `{value}` is 0"), help));
    }
    Ok(SteadyState { figure, slope, limit, percent })
}
