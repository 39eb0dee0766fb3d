//! Parsers of option values: numbers with units, comma lists, ranges, splits, distributions.

use crate::{
    direction::{Directions, Rw},
    engine::{self, Engine, EngineSupport},
    job::{BlockSize, Distribution, Job, Size, SplitEntry, Zone},
    units::{KbBase, TimeUnit, UnitError, parse_size, parse_time_ns},
    zone::ZoneMode,
};
use std::ops::RangeInclusive;

/// The error in a value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub message: String,
    pub help: Option<String>,
}

impl Fault {
    pub fn new(message: impl Into<String>) -> Self {
        Fault { message: message.into(), help: None }
    }

    pub fn with_help(message: impl Into<String>, help: impl Into<String>) -> Self {
        Fault { message: message.into(), help: Some(help.into()) }
    }
}

impl From<UnitError> for Fault {
    fn from(error: UnitError) -> Self {
        Fault { message: error.to_string(), help: error.help() }
    }
}

/// The units of sizes in a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeUnits {
    /// The base of prefixes.
    pub base: KbBase,
    /// True if the job has the zones of a zoned device (`zonemode=zbd`), whose number may be given.
    pub is_zoned: bool,
    /// Bytes of a zone; 0 if the job does not say.
    pub zone_bytes: u64,
}

impl SizeUnits {
    /// The units of a job.
    pub fn of(job: &Job) -> SizeUnits {
        let is_zoned = job.zones.mode == ZoneMode::Zbd;
        SizeUnits { base: job.kb_base, is_zoned, zone_bytes: job.zones.size }
    }
}

/// Message for options and values that fio has and hoistway does not.
pub(crate) const NOT_SUPPORTED: &str = "known to fio, not supported by hoistway";

const BSSPLIT_MAX: usize = 64;
const ZONES_MAX: usize = 256;
/// Greatest depth of nested control groups.
const CGROUPS_MAX: usize = 32;
/// fio's manual has 100 to 1000; the kernel's schedulers take 1 (BFQ) or 10 (CFQ) to 1000.
const CGROUP_WEIGHTS: RangeInclusive<u64> = 1..=1000;

/// Parses a flag: without a value, 0 or 1.
pub(crate) fn flag(value: Option<&str>) -> Result<bool, Fault> {
    value.map_or(Ok(true), boolean)
}

/// Parses 0 or 1.
pub(crate) fn boolean(value: &str) -> Result<bool, Fault> {
    match value {
        "0" => Ok(false),
        "1" => Ok(true),
        other => Err(Fault::with_help(format!("`{other}` is neither 0 nor 1"), "write 1 for yes, 0 for no")),
    }
}

/// Parses a count and checks its range.
pub(crate) fn count(value: &str, base: KbBase, range: RangeInclusive<u64>) -> Result<u64, Fault> {
    let number = parse_size(value, base)?;
    if range.contains(&number) {
        return Ok(number);
    }
    let (least, most) = (range.start(), range.end());
    let help = if *most >= u64::from(u32::MAX) {
        format!("at least {least}, at most {most}")
    } else {
        format!("from {least} to {most}")
    };
    Err(Fault::with_help(format!("{number} is out of range"), help))
}

/// Parses a count of 32 bits, at least `least`.
pub(crate) fn count_u32(value: &str, base: KbBase, least: u32) -> Result<u32, Fault> {
    let number = count(value, base, u64::from(least)..=u64::from(u32::MAX))?;
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Parses the path of a control group.
pub(crate) fn cgroup(value: &str) -> Result<String, Fault> {
    let help = "names with one slash between them, the root's being left out: cgroup=users/alice";
    if let Some(odd) = value.split('/').find(|name| name.is_empty() || *name == "." || *name == "..") {
        let what = if odd.is_empty() { "an empty name".to_owned() } else { format!("the name `{odd}`") };
        return Err(Fault::with_help(format!("`{value}` has {what}"), help));
    }
    let depth = value.split('/').count();
    if depth > CGROUPS_MAX {
        return Err(Fault::with_help(format!("{depth} groups in one another"), format!("{CGROUPS_MAX} at the most")));
    }
    Ok(value.into())
}

/// Parses the weight of a group, or one weight for each group on its path, separated by slashes.
pub(crate) fn cgroup_weights(value: &str, base: KbBase) -> Result<Vec<u32>, Fault> {
    value
        .split('/')
        .map(|weight| {
            let weight = count(weight, base, CGROUP_WEIGHTS)?;
            Ok(u32::try_from(weight).unwrap_or(u32::MAX))
        })
        .collect()
}

/// Parses a percentage from 0 to 100; the sign is optional.
pub(crate) fn percent(value: &str) -> Result<u8, Fault> {
    let digits = value.strip_suffix('%').unwrap_or(value).trim();
    let number = parse_size(digits, KbBase::Compatible)?;
    match u8::try_from(number) {
        Ok(percent) if percent <= 100 => Ok(percent),
        _ => Err(Fault::with_help(format!("{number} is more than 100 percent"), "from 0 to 100")),
    }
}

/// Parses a number of bytes, a number of zones (`4z`), or a percentage. 0 is an error unless `zero`
/// allows it.
pub(crate) fn size(value: &str, units: SizeUnits, zero: bool) -> Result<Size, Fault> {
    let size = match (value.strip_suffix('%'), value.strip_suffix(['z', 'Z'])) {
        (Some(_), _) => Size::Percent(percent(value)?),
        (None, Some(number)) => Size::Bytes(zones_of(value, number, units)?),
        (None, None) => Size::Bytes(parse_size(value, units.base)?),
    };
    match size {
        Size::Percent(0) | Size::Bytes(0) if !zero => {
            Err(Fault::with_help(format!("`{value}` is nothing"), "give a number of bytes, or from 1% to 100%"))
        }
        Size::Percent(0) => Ok(Size::Bytes(0)),
        size => Ok(size),
    }
}

/// Parses a number of zones, as the bytes that they have.
fn zones_of(value: &str, number: &str, units: SizeUnits) -> Result<u64, Fault> {
    let number = parse_size(number, KbBase::Compatible)?;
    if !units.is_zoned {
        let help = "give zonemode=zbd and zonesize= too, or write the size in bytes";
        return Err(Fault::with_help(format!("`{value}` is a number of zones, and the job has none"), help));
    }
    if units.zone_bytes == 0 {
        let help = "give zonesize=, as in zonesize=256m: a simulation cannot ask the device";
        return Err(Fault::with_help(format!("`{value}` is a number of zones of unknown size"), help));
    }
    let too_large = || UnitError::TooLarge { text: value.into(), most: "18446744073709551615 bytes" }.into();
    number.checked_mul(units.zone_bytes).ok_or_else(too_large)
}

/// Parses a duration, in nanoseconds.
pub(crate) fn time_ns(value: &str, unit: TimeUnit) -> Result<u64, Fault> {
    Ok(parse_time_ns(value, unit)?)
}

/// Parses `a-b`, `a:b` or a single value; swapped ends are exchanged, as the manual promises.
pub(crate) fn range<F>(value: &str, parse: F) -> Result<RangeInclusive<u64>, Fault>
where
    F: Fn(&str) -> Result<u64, Fault>,
{
    match value.split_once(['-', ':']) {
        // A leading minus is a sign, which the number parser reports.
        Some((low, high)) if !low.trim().is_empty() => {
            let (low, high) = (parse(low)?, parse(high)?);
            Ok(low.min(high)..=low.max(high))
        }
        _ => parse(value).map(|one| one..=one),
    }
}

/// Parses a comma list for reads, writes and trims. A value applies to the following types unless a
/// comma ends it; a blank keeps the default.
pub(crate) fn directions<T, F>(value: &str, parse: F) -> Result<Directions<Option<T>>, Fault>
where
    F: Fn(&str) -> Result<T, Fault>,
    T: Clone,
{
    let parts: Vec<&str> = value.split(',').map(str::trim).collect();
    if parts.len() > 3 {
        let message = format!("`{value}` has {} values", parts.len());
        return Err(Fault::with_help(message, "at most three, for reads, writes and trims, with commas between them"));
    }
    if parts.iter().all(|part| part.is_empty()) {
        return Err(Fault::new("the value is empty"));
    }
    let mut parsed = Vec::new();
    for part in parts {
        parsed.push(if part.is_empty() { None } else { Some(parse(part)?) });
    }
    let read = parsed.first().cloned().flatten();
    let write = if parsed.len() > 1 { parsed[1].clone() } else { read.clone() };
    let trim = if parsed.len() > 2 { parsed[2].clone() } else { write.clone() };
    Ok(Directions { read, write, trim })
}

/// Replaces the values that a comma list gave.
pub(crate) fn overlay<T>(onto: &mut Directions<T>, given: Directions<Option<T>>) {
    if let Some(read) = given.read {
        onto.read = read;
    }
    if let Some(write) = given.write {
        onto.write = write;
    }
    if let Some(trim) = given.trim {
        onto.trim = trim;
    }
}

/// Parses a block size: a number, not a range.
pub(crate) fn block_size(value: &str, base: KbBase) -> Result<BlockSize, Fault> {
    if value.contains('-') && !value.starts_with('-') {
        return Err(Fault::with_help(format!("`{value}` is a range"), format!("write bsrange={value}")));
    }
    if value.contains(['/', ':']) {
        let message = format!("`{value}` is not one size");
        return Err(Fault::with_help(
            message,
            "commas stand between reads, writes and trims; a mix of sizes is bssplit=",
        ));
    }
    count(value, base, 1..=u64::MAX).map(BlockSize::Fixed)
}

/// Parses a range of block sizes.
pub(crate) fn block_range(value: &str, base: KbBase) -> Result<BlockSize, Fault> {
    if !value.contains(['-', ':']) {
        return Err(Fault::with_help(format!("`{value}` is not a range"), format!("write bs={value}, or 1k-4k")));
    }
    let range = range(value, |part| count(part, base, 1..=u64::MAX))?;
    Ok(BlockSize::Range { min: *range.start(), max: *range.end() })
}

/// Parses a mix of block sizes, `4k/50:8k/30:64k/`. Blank percentages share the rest; if it does
/// not divide evenly, the earlier ones get one more.
pub(crate) fn block_split(value: &str, base: KbBase) -> Result<BlockSize, Fault> {
    let mut entries: Vec<(u64, Option<u8>)> = Vec::new();
    for part in value.split(':') {
        let (bytes, share) = part.split_once('/').unwrap_or((part, ""));
        let share = if share.trim().is_empty() { None } else { Some(percent(share)?) };
        entries.push((count(bytes, base, 1..=u64::MAX)?, share));
    }
    if entries.len() > BSSPLIT_MAX {
        return Err(Fault::with_help(format!("{} block sizes", entries.len()), format!("at most {BSSPLIT_MAX}")));
    }
    let given: u64 = entries.iter().filter_map(|(_, share)| *share).map(u64::from).sum();
    let blanks = entries.iter().filter(|(_, share)| share.is_none()).count() as u64;
    if given > 100 || (given < 100 && blanks == 0) {
        let message = format!("the percentages add up to {given}");
        return Err(Fault::with_help(message, "they must add up to 100; a blank one, as in 64k/, takes what is left"));
    }
    let shares = with_blanks(&entries.iter().map(|(_, share)| *share).collect::<Vec<_>>());
    let split = entries.iter().zip(shares).map(|((bytes, _), percent)| SplitEntry { bytes: *bytes, percent }).collect();
    Ok(BlockSize::Split(split))
}

/// Parses the value of `rw=`, with the number after its colon.
pub(crate) fn rw(value: &str, base: KbBase) -> Result<(Rw, Option<i64>), Fault> {
    let (kind, modifier) = match value.split_once(':') {
        Some((kind, modifier)) => (kind.trim(), Some(modifier.trim())),
        None => (value, None),
    };
    let rw = match kind {
        "read" => Rw::Read,
        "write" => Rw::Write,
        "randread" => Rw::Randread,
        "randwrite" => Rw::Randwrite,
        "rw" | "readwrite" => Rw::Readwrite,
        "randrw" => Rw::Randrw,
        "trim" => Rw::Trim,
        "randtrim" => Rw::Randtrim,
        "trimwrite" => Rw::Trimwrite,
        "randtrimwrite" => Rw::Randtrimwrite,
        other => {
            const KINDS: [&str; 11] = [
                "read",
                "write",
                "trim",
                "randread",
                "randwrite",
                "randtrim",
                "rw",
                "readwrite",
                "randrw",
                "trimwrite",
                "randtrimwrite",
            ];
            return Err(one_of(other, &KINDS));
        }
    };
    let Some(modifier) = modifier else { return Ok((rw, None)) };
    let (sign, digits) = match modifier.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, modifier),
    };
    let number = parse_size(digits, base)?;
    let number = i64::try_from(number)
        .map_err(|_| UnitError::TooLarge { text: modifier.into(), most: "9223372036854775807" })?
        * sign;
    if rw.is_random() && number < 1 {
        return Err(Fault::with_help(format!("{number} requests at each offset"), "at least 1"));
    }
    Ok((rw, Some(number)))
}

/// Parses the name of an engine.
pub(crate) fn ioengine(value: &str) -> Result<&'static Engine, Fault> {
    let simulated = || {
        let takes = |engine: &&Engine| !matches!(engine.support, EngineSupport::Refused(_) | EngineSupport::NoData(_));
        engine::ENGINES.iter().filter(takes).map(|engine| engine.name).collect::<Vec<_>>()
    };
    match engine::find(value) {
        Some(Engine { name, support: EngineSupport::Refused(why) }) => {
            let help = format!("the engines are {}", simulated().join(", "));
            Err(Fault::with_help(format!("engine `{name}` {why}"), help))
        }
        Some(engine) => Ok(engine),
        None => Err(one_of(value, &simulated())),
    }
}

/// Parses a distribution with its parameter.
pub(crate) fn distribution(value: &str, base: KbBase) -> Result<Distribution, Fault> {
    if value.contains(',') {
        let message = format!("a distribution for each direction is {NOT_SUPPORTED}");
        return Err(Fault::with_help(message, "give one for all"));
    }
    let (kind, parameter) = value.split_once(':').map_or((value, None), |(kind, rest)| (kind, Some(rest)));
    let centred = parameter.and_then(|text| text.split_once(':')).filter(|_| !kind.starts_with("zoned"));
    if let Some((parameter, centre)) = centred {
        let law = distribution(&format!("{kind}:{parameter}"), base)?;
        let centre: Option<f64> = centre.trim().parse().ok().filter(|centre| (0.0..=1.0).contains(centre));
        return match (centre, &law) {
            (_, Distribution::Random) => {
                Err(Fault::with_help(format!("`{value}` has a parameter"), "random takes none"))
            }
            (Some(centre), _) => Ok(Distribution::Centred(Box::new(law), centre)),
            (None, _) => {
                Err(Fault::with_help(format!("the centre in `{value}` is no part of the whole"), "from 0 to 1"))
            }
        };
    }
    match kind {
        "random" if parameter.is_none() => Ok(Distribution::Random),
        "random" => Err(Fault::with_help(format!("`{value}` has a parameter"), "random takes none")),
        "zipf" => parameter_of(
            parameter,
            "zipf:1.2",
            |theta| (theta > 0.0 && theta != 1.0).then_some(theta),
            "above 0 and not 1",
        )
        .map(Distribution::Zipf),
        "pareto" => parameter_of(
            parameter,
            "pareto:0.9",
            |h| (h > 0.0 && h < 1.0).then_some(h),
            "between 0 and 1, neither included",
        )
        .map(Distribution::Pareto),
        "normal" => {
            parameter_of(parameter, "normal:20", |d| (0.0..100.0).contains(&d).then_some(d), "from 0 to below 100")
                .map(Distribution::Normal)
        }
        "zoned" => zones(parameter.unwrap_or_default()),
        "zoned_abs" => zones_of_bytes(parameter.unwrap_or_default(), base),
        other => Err(one_of(other, &["random", "zipf", "pareto", "normal", "zoned", "zoned_abs"])),
    }
}

fn parameter_of<F>(parameter: Option<&str>, example: &str, check: F, range: &str) -> Result<f64, Fault>
where
    F: Fn(f64) -> Option<f64>,
{
    let Some(text) = parameter else {
        return Err(Fault::with_help("the distribution has no parameter", format!("write it as in {example}")));
    };
    let number: f64 = text
        .trim()
        .parse()
        .map_err(|_| Fault::with_help(format!("`{text}` is not a number"), format!("write it as in {example}")))?;
    // Infinities are out of range; NaN fails every range check.
    match check(number) {
        Some(number) if number.is_finite() => Ok(number),
        _ => Err(Fault::with_help(format!("{number} is out of range"), range)),
    }
}

fn zones(text: &str) -> Result<Distribution, Fault> {
    let mut parts: Vec<(u8, Option<u8>)> = Vec::new();
    for part in text.split(':') {
        let Some((access, span)) = part.split_once('/') else {
            let message = format!("`{part}` is not a zone");
            return Err(Fault::with_help(message, "write accesses/span in percent, as in zoned:60/10:40/90"));
        };
        let span = if span.trim().is_empty() { None } else { Some(percent(span)?) };
        parts.push((percent(access)?, span));
    }
    if parts.len() > ZONES_MAX {
        return Err(Fault::with_help(format!("{} zones", parts.len()), format!("at most {ZONES_MAX}")));
    }
    let spans = with_blanks(&parts.iter().map(|(_, span)| *span).collect::<Vec<_>>());
    let zones: Vec<Zone> = (parts.iter().zip(spans))
        .map(|((access_percent, _), span_percent)| Zone { access_percent: *access_percent, span_percent })
        .collect();
    let access: u32 = zones.iter().map(|zone| u32::from(zone.access_percent)).sum();
    let span: u32 = zones.iter().map(|zone| u32::from(zone.span_percent)).sum();
    if (access, span) != (100, 100) {
        let message = format!("the accesses add up to {access} and the spans to {span} percent");
        return Err(Fault::with_help(message, "both must add up to 100; a blank span, as in 20/, takes what is left"));
    }
    Ok(Distribution::Zoned(zones))
}

/// Shares what given percentages leave of 100 among the blank ones. If it does not divide evenly,
/// the earlier ones get one more.
fn with_blanks(given: &[Option<u8>]) -> Vec<u8> {
    let sum: u64 = given.iter().flatten().map(|share| u64::from(*share)).sum();
    let mut left = 100u64.saturating_sub(sum);
    let mut blanks = given.iter().filter(|share| share.is_none()).count() as u64;
    let mut shares = Vec::with_capacity(given.len());
    for share in given {
        shares.push(share.unwrap_or_else(|| {
            // At least this blank is left, so the divisor is not 0; a share is at most 100.
            let share = left.div_ceil(blanks.max(1));
            left -= share.min(left);
            blanks = blanks.saturating_sub(1);
            u8::try_from(share).unwrap_or(100)
        }));
    }
    shares
}

/// Parses the zones of `zoned_abs`: shares of the accesses and sizes, `60/20g:40/100g`.
fn zones_of_bytes(text: &str, base: KbBase) -> Result<Distribution, Fault> {
    let mut zones = Vec::new();
    for part in text.split(':') {
        let Some((access, bytes)) = part.split_once('/') else {
            let message = format!("`{part}` is not a zone");
            return Err(Fault::with_help(message, "write accesses/size, as in zoned_abs:60/20g:40/100g"));
        };
        let bytes = range(bytes, |bytes| count(bytes, base, 1..=u64::MAX))?;
        zones.push(SplitEntry { percent: percent(access)?, bytes: *bytes.end() });
    }
    let access: u32 = zones.iter().map(|zone| u32::from(zone.percent)).sum();
    if access != 100 || zones.len() > ZONES_MAX {
        let message = format!("{} zones, whose accesses add up to {access} percent", zones.len());
        return Err(Fault::with_help(message, format!("at most {}, adding up to 100", ZONES_MAX)));
    }
    Ok(Distribution::ZonedBytes(zones))
}

/// Parses names separated by colons; a backslash escapes a colon within a name.
pub(crate) fn names(value: &str) -> Result<Vec<String>, Fault> {
    let mut names = vec![String::new()];
    let mut chars = value.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&':') => {
                chars.next();
                push(&mut names, ':');
            }
            ':' => names.push(String::new()),
            c => push(&mut names, c),
        }
    }
    names.retain(|name| !name.is_empty());
    match names.iter().any(|name| name == "-") {
        true => {
            Err(Fault::with_help(format!("the name `-` (standard input) is {NOT_SUPPORTED}"), "name a file or device"))
        }
        false if names.is_empty() => Err(Fault::new("the value is empty")),
        false => Ok(names),
    }
}

fn push(names: &mut [String], c: char) {
    if let Some(last) = names.last_mut() {
        last.push(c);
    }
}

/// The error for an unknown word, with the known ones.
pub(crate) fn one_of(value: &str, words: &[&str]) -> Fault {
    Fault::with_help(format!("`{value}` is not known"), format!("one of {}", words.join(", ")))
}
