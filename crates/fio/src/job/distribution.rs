//! The distribution of random offsets: `random_distribution`.

use super::block_size::SplitEntry;
use crate::values::{Fault, NOT_SUPPORTED, Value, one_of, with_blanks};

const ZONES_MAX: usize = 256;

/// The distribution of random offsets over the region: fio's `random_distribution`.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// All blocks with the same probability.
    Random,
    /// Zipf's law with this theta: above 0, not 1.
    Zipf(f64),
    /// Pareto's law with this power: between 0 and 1, both excluded.
    Pareto(f64),
    /// Normal around the middle, with this deviation in percent: 0 to below 100.
    Normal(f64),
    /// Consecutive zones of the region, each with its share of the requests; 1 to 256 zones, both
    /// columns adding up to 100.
    Zoned(Vec<Zone>),
    /// Consecutive zones from the region's start, each with its share of the requests and its size;
    /// 1 to 256 zones, the shares adding up to 100.
    ZonedBytes(Vec<SplitEntry>),
    /// Zipf's or Pareto's law with the most popular block at this part of the region, 0 to 1, and
    /// the others behind it in the order of their popularity; or a normal distribution around it.
    Centred(Box<Distribution>, f64),
}

/// One zone of a zoned distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Share of the requests, in percent.
    pub access_percent: u8,
    /// Share of the region, in percent.
    pub span_percent: u8,
}

/// Parses a distribution with its parameter.
pub(super) fn distribution(v: Value) -> Result<Distribution, Fault> {
    let value = v.text;
    if value.contains(',') {
        let message = format!("a distribution for each direction is {NOT_SUPPORTED}");
        return Err(Fault::with_help(message, "give one for all"));
    }
    let (kind, parameter) = value.split_once(':').map_or((value, None), |(kind, rest)| (kind, Some(rest)));
    let centred = parameter.and_then(|text| text.split_once(':')).filter(|_| !kind.starts_with("zoned"));
    if let Some((parameter, centre)) = centred {
        let law = distribution(v.part(&format!("{kind}:{parameter}")))?;
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
        "zoned" => zones(v.part(parameter.unwrap_or_default())),
        "zoned_abs" => zones_of_bytes(v.part(parameter.unwrap_or_default())),
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

/// Parses the zones of `zoned`: shares of the accesses and of the region, `60/10:40/90`.
fn zones(v: Value) -> Result<Distribution, Fault> {
    let mut parts: Vec<(u8, Option<u8>)> = Vec::new();
    for part in v.text.split(':') {
        let Some((access, span)) = part.split_once('/') else {
            let message = format!("`{part}` is not a zone");
            return Err(Fault::with_help(message, "write accesses/span in percent, as in zoned:60/10:40/90"));
        };
        let span = if span.trim().is_empty() { None } else { Some(v.part(span).percent()?) };
        parts.push((v.part(access).percent()?, span));
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

/// Parses the zones of `zoned_abs`: shares of the accesses and sizes, `60/20g:40/100g`.
fn zones_of_bytes(v: Value) -> Result<Distribution, Fault> {
    let mut zones = Vec::new();
    for part in v.text.split(':') {
        let Some((access, bytes)) = part.split_once('/') else {
            let message = format!("`{part}` is not a zone");
            return Err(Fault::with_help(message, "write accesses/size, as in zoned_abs:60/20g:40/100g"));
        };
        let bytes = v.part(bytes).range(|bytes| bytes.count(1))?;
        zones.push(SplitEntry { percent: v.part(access).percent()?, bytes: *bytes.end() });
    }
    let access: u32 = zones.iter().map(|zone| u32::from(zone.percent)).sum();
    if access != 100 || zones.len() > ZONES_MAX {
        let message = format!("{} zones, whose accesses add up to {access} percent", zones.len());
        return Err(Fault::with_help(message, format!("at most {}, adding up to 100", ZONES_MAX)));
    }
    Ok(Distribution::ZonedBytes(zones))
}
