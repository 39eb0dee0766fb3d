//! The leaves of the control tree for the terms of a tenant, one leaf for each term.
//!
//! A function with the name of a leaf parses a new value and returns the [`Change`] that sets the
//! term; nothing has changed yet. Its errors are [`SetError::Gone`] if the tenant no longer exists
//! and [`SetError::Value`] if the value is invalid. The functions `show_*` return the present
//! value.

use hoistway_core::{Class, Priority, Reservation};

use crate::leaf::{LeafQuery, SetError};
use crate::target::{Change, TenantFacts};
use crate::text::{self, BadValue, Range};
use hoistway_qos::{Rate, Reserve, Terms};

/// The weights of tenants and groups.
pub const WEIGHT: Range<'static> = Range { what: "weight", min: 1, max: 1000, unit: "" };

/// Sets the weight, 1 to 1000.
pub fn weight(query: &LeafQuery<'_>, value: &str) -> Result<Change, SetError> {
    change(query, |terms| {
        let weight = text::parse_number(value, WEIGHT)?;
        terms.weight = u16::try_from(weight).unwrap_or(1000);
        Ok(())
    })
}

/// Sets the class. The level stays, or becomes the normal level if there was none.
pub fn class(query: &LeafQuery<'_>, value: &str) -> Result<Change, SetError> {
    change(query, |terms| {
        let class = text::parse_class(value)?;
        // Without a class, or in the class idle, there is no level that could stay.
        let level = match terms.priority.class() {
            Class::RealTime | Class::BestEffort => terms.priority.level(),
            Class::None | Class::Idle => hoistway_core::NORMAL_LEVEL,
        };
        terms.priority = Priority::new(class, level).unwrap_or_default();
        Ok(())
    })
}

/// Sets the level within the class, 0 (highest) to 7. The classes none and idle have no levels.
pub fn level(query: &LeafQuery<'_>, value: &str) -> Result<Change, SetError> {
    change(query, |terms| {
        let level =
            u8::try_from(text::parse_number(value, Range { what: "level", min: 0, max: 7, unit: "" })?).unwrap_or(7);
        match terms.priority.class() {
            class @ (Class::RealTime | Class::BestEffort) => {
                terms.priority = Priority::new(class, level).unwrap_or_default();
                Ok(())
            }
            class => text::bad(value, format!("has no effect in the class {}: set class first", text::class(class))),
        }
    })
}

/// Returns the reservation in bytes per second; 0 without a reservation.
pub fn show_reserve(facts: &TenantFacts) -> String {
    facts.terms.reserve.map_or(0, |reserve| reserve.bytes_per_second).to_string()
}

/// Sets the reservation in bytes per second; 0 removes it.
pub fn reserve(query: &LeafQuery<'_>, value: &str) -> Result<Change, SetError> {
    change(query, |terms| {
        let range = Range { what: "reserve", min: 1, max: Reservation::RATE_MAX, unit: "bytes/s" };
        let rate = text::parse_rate(value, range, "0")?;
        let request_bytes = terms.reserve.map_or(Reservation::REQUEST_DEFAULT, |reserve| reserve.request_bytes);
        terms.reserve = rate.map(|bytes_per_second| Reserve { bytes_per_second, request_bytes });
        Ok(())
    })
}

/// Returns the request size that the reservation assumes, in bytes; `-` without a reservation.
pub fn show_reserve_request(facts: &TenantFacts) -> String {
    facts.terms.reserve.map_or_else(|| "-".to_owned(), |reserve| reserve.request_bytes.to_string())
}

/// Sets the request size that the reservation assumes, in bytes. The tenant needs a reservation.
pub fn reserve_request(query: &LeafQuery<'_>, value: &str) -> Result<Change, SetError> {
    change(query, |terms| {
        let range = Range { what: "reserve_request", min: 512, max: Reservation::REQUEST_MAX, unit: "bytes" };
        let bytes = text::parse_amount(value, range)?;
        match &mut terms.reserve {
            Some(reserve) => reserve.request_bytes = bytes,
            None => text::bad(value, "belongs to a reservation, and there is none: set reserve first")?,
        }
        Ok(())
    })
}

/// Returns the rate of a limit, or `max` without a limit.
pub fn show_rate(rate: Option<Rate>) -> String {
    rate.map_or_else(|| "max".to_owned(), |rate| rate.per_second.to_string())
}

/// Returns the burst of a limit, or `-` without a limit.
pub fn show_burst(rate: Option<Rate>) -> String {
    rate.map_or_else(|| "-".to_owned(), |rate| rate.burst.to_string())
}

/// Sets the limit in bytes per second; `max` removes it.
pub fn limit(query: &LeafQuery<'_>, value: &str) -> Result<Change, SetError> {
    change(query, |terms| set_rate("limit", "bytes/s", &mut terms.limits.bytes, value))
}

/// Sets the limit in requests per second; `max` removes it.
pub fn limit_iops(query: &LeafQuery<'_>, value: &str) -> Result<Change, SetError> {
    change(query, |terms| set_rate("limit_iops", "requests/s", &mut terms.limits.operations, value))
}

/// Sets the burst of the limit in bytes. The tenant needs that limit.
pub fn burst(query: &LeafQuery<'_>, value: &str) -> Result<Change, SetError> {
    change(query, |terms| {
        set_burst(
            Range { what: "burst", min: 1, max: u64::MAX, unit: "bytes" },
            "limit",
            &mut terms.limits.bytes,
            value,
        )
    })
}

/// Sets the burst of the limit in requests. The tenant needs that limit.
pub fn burst_iops(query: &LeafQuery<'_>, value: &str) -> Result<Change, SetError> {
    change(query, |terms| {
        set_burst(
            Range { what: "burst_iops", min: 1, max: u64::MAX, unit: "requests" },
            "limit_iops",
            &mut terms.limits.operations,
            value,
        )
    })
}

/// Applies `edit` to a copy of the tenant's terms, and returns the change to these terms.
fn change(query: &LeafQuery<'_>, edit: impl FnOnce(&mut Terms) -> Result<(), BadValue>) -> Result<Change, SetError> {
    let mut terms = query.target.tenant(query.name).ok_or(SetError::Gone)?.terms;
    edit(&mut terms)?;
    Ok(Change::Terms { tenant: query.name.to_owned(), terms })
}

/// Sets the rate of a limit; `max` removes the limit. An explicit burst stays, the default burst
/// follows the rate. `what` is the name of the leaf.
fn set_rate(what: &str, unit: &'static str, rate: &mut Option<Rate>, value: &str) -> Result<(), BadValue> {
    let per_second = text::parse_rate(value, Range { what, min: 1, max: u64::MAX, unit }, "max")?;
    *rate = per_second.map(|per_second| rate.map_or_else(|| Rate::new(per_second), |rate| rate.changed_to(per_second)));
    Ok(())
}

/// Sets the burst of a limit. `limit` is the name of the leaf of the limit.
fn set_burst(range: Range<'_>, limit: &str, rate: &mut Option<Rate>, value: &str) -> Result<(), BadValue> {
    let burst = text::parse_amount(value, range)?;
    match rate {
        Some(rate) => rate.burst = burst,
        None => text::bad(value, format!("belongs to a limit, and there is none: set {limit} first"))?,
    }
    Ok(())
}
