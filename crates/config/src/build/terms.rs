//! Parses the terms that tenants and groups have: priority, weight, reservation, limits, parent.

use hoistway_core::{Class, Priority, Reservation};
use hoistway_qos::{Limits, Rate, Reserve, Terms};

use crate::draft::Value;
use crate::value::{self, Fields, ParseResult};

/// Parses the terms of a tenant of a server or of a mount.
pub(crate) fn terms(fields: &mut Fields<'_>) -> Terms {
    Terms {
        priority: priority(fields),
        weight: fields.read("weight", weight).unwrap_or(100),
        reserve: fields.read("reserve", reserve),
        limits: limits(fields),
        parent: fields.read("parent", value::name),
    }
}

/// Parses a share among siblings.
pub(super) fn weight(value: &Value) -> ParseResult<u16> {
    let weight = value::whole(value, 1, 1000)?;
    u16::try_from(weight).map_err(|_| "it takes 1 to 1000".into())
}

/// Parses the priority class and the level.
fn priority(fields: &mut Fields<'_>) -> Priority {
    let class = fields.read("class", |value| match value::text(value)?.as_str() {
        "realtime" => Ok(Class::RealTime),
        "best-effort" => Ok(Class::BestEffort),
        "idle" => Ok(Class::Idle),
        _ => Err("it takes \"realtime\", \"best-effort\" or \"idle\"".into()),
    });
    let level = fields.read("level", |value| value::whole(value, 0, 7));
    if let (Some(Class::Idle), Some(level)) = (class, level) {
        let location = fields.location("level");
        fields.problem(&location, format!("`level` is {level}: the class idle has no levels"));
    }
    if class.is_none() && level.is_none() {
        return Priority::UNSET;
    }
    let level = level.and_then(|level| u8::try_from(level).ok()).unwrap_or(4);
    Priority::new(class.unwrap_or(Class::BestEffort), level).unwrap_or(Priority::UNSET)
}

/// Parses a reservation: a rate, or a table of a rate and a request size.
fn reserve(value: &Value) -> ParseResult<Reserve> {
    let rate = |value: &Value| match value::rate(value)? {
        rate if rate > Reservation::RATE_MAX => {
            Err(format!("at most {} bytes a second can be reserved", Reservation::RATE_MAX))
        }
        rate => Ok(rate),
    };
    let Value::Table(pairs) = value else {
        return Ok(Reserve { bytes_per_second: rate(value)?, request_bytes: Reservation::REQUEST_DEFAULT });
    };
    let (mut bytes_per_second, mut request_bytes) = (None, Reservation::REQUEST_DEFAULT);
    for (key, _, located) in pairs {
        let wrong = |right| format!("its `{key}` is {}: {right}", located.value);
        match key.as_str() {
            "rate" => bytes_per_second = Some(rate(&located.value).map_err(wrong)?),
            "request" => {
                request_bytes = value::bytes_within(&located.value, 512, Reservation::REQUEST_MAX).map_err(wrong)?;
            }
            _ => return Err(format!("it has no key `{key}`; there are `rate`, `request`")),
        }
    }
    let bytes_per_second = bytes_per_second.ok_or("it takes a rate, as { rate = \"20M\", request = \"64k\" }")?;
    Ok(Reserve { bytes_per_second, request_bytes })
}

/// Parses the limits in bytes and in operations a second.
pub(super) fn limits(fields: &mut Fields<'_>) -> Limits {
    Limits {
        bytes: limit(fields, "limit", "burst", value::rate, value::bytes),
        operations: limit(fields, "limit_iops", "burst_iops", operations, operations),
    }
}

fn operations(value: &Value) -> ParseResult<u64> {
    value::whole(value, 1, u64::MAX)
}

/// Parses one limit and its burst.
fn limit(
    fields: &mut Fields<'_>,
    limit: &str,
    burst: &str,
    rate: impl FnOnce(&Value) -> ParseResult<u64>,
    depth: impl FnOnce(&Value) -> ParseResult<u64>,
) -> Option<Rate> {
    let per_second = fields.read(limit, rate);
    let depth = fields.read(burst, |value| match depth(value)? {
        0 => Err("it takes 1 or more".into()),
        depth => Ok(depth),
    });
    if fields.entry.get(limit).is_none() && fields.entry.get(burst).is_some() {
        let location = fields.location(burst);
        fields.problem(&location, format!("`{burst}` is given without `{limit}`"));
    }
    let default = per_second.map(Rate::new);
    default.map(|default| Rate { burst: depth.unwrap_or(default.burst), ..default })
}
