//! Checks across entries in the configuration of a mount.

use hoistway_core::{Class, Kind, Priority, PriorityEffect};

use super::builder::MountBuilder;
use super::{MountRule, MountTenant, Ops};
use crate::check::{Check, location_of};
use crate::draft::{Draft, Entry, Problem};
use crate::rules::{is_within, matches};

/// Runs all checks that involve more than one value.
pub(super) fn check_consistency(draft: &Draft, builder: &mut MountBuilder<'_>) {
    let mut check = Check::new(draft, &mut builder.common);
    check.names_are_unique();
    check.references();
    check.parents_do_not_loop();
    check.weights_have_effect();
    let (problems, warnings) = (contradictions(draft, builder), rules_can_match(draft, &builder.mount.tenants));
    builder.common.problems.extend(problems);
    builder.common.warnings.extend(warnings);
    builder.common.warnings.extend(ineffective_terms(draft, builder));
}

/// Returns the problems of values that contradict each other.
fn contradictions(draft: &Draft, builder: &MountBuilder<'_>) -> Vec<Problem> {
    let terms = &builder.mount.mount;
    let mut problems = Vec::new();
    if let (Some(background), Some(limit)) = (terms.dirty_background, terms.dirty_limit)
        && background > limit
    {
        let text = format!(
            "`dirty_background` ({background} bytes) is above `dirty_limit` ({limit} bytes), at which writers wait"
        );
        problems.push(Problem { location: location_of(&draft.mount, "dirty_background"), text });
    }
    for (entry, tenant) in draft.tenants.iter().zip(&builder.mount.tenants) {
        let scheduling_keys = ["class", "level", "weight", "reserve", "limit", "limit_iops"];
        if let (true, Some(key)) = (tenant.pass, scheduling_keys.iter().find(|key| entry.get(key).is_some())) {
            let text = format!("`{key}` is given, but `schedule` is false: the tenant's requests are not scheduled");
            problems.push(Problem { location: location_of(entry, key), text });
        }
        let reads = tenant.rules.iter().any(|rule| matches!(rule, MountRule::Op(ops) if !ops.read));
        if tenant.pass && reads {
            let text =
                "with `schedule` false, `op` must include \"read\": a file is scheduled or not from its opening on"
                    .to_owned();
            problems.push(Problem { location: location_of(entry, "op"), text });
        }
    }
    problems
}

/// Returns warnings of tenants that no request can match.
fn rules_can_match(draft: &Draft, tenants: &[MountTenant]) -> Vec<Problem> {
    let mut warnings = Vec::new();
    for (at, (entry, tenant)) in draft.tenants.iter().zip(tenants).enumerate() {
        let earlier = tenants.iter().take(at).find(|earlier| covers(earlier, tenant));
        if let Some(earlier) = earlier {
            let why = if earlier.rules.is_empty() { "has no rule" } else { "matches all of its requests" };
            let text =
                format!("no request can be of the tenant `{}`: `{}` precedes it and {why}", tenant.name, earlier.name);
            warnings.push(Problem { location: entry.location.clone(), text });
        }
    }
    warnings
}

/// Returns true if every request that matches the rules of `tenant` matches those of `earlier`.
fn covers(earlier: &MountTenant, tenant: &MountTenant) -> bool {
    earlier.rules.iter().all(|wide| tenant.rules.iter().any(|narrow| implies(narrow, wide)))
}

fn implies(narrow: &MountRule, wide: &MountRule) -> bool {
    match (narrow, wide) {
        (MountRule::Cgroup(narrow), MountRule::Cgroup(wide)) => is_within(narrow, wide),
        // A star in the narrow pattern counts as an ordinary character here: if the wide pattern
        // matches the star, it matches every text that the star stands for.
        (MountRule::Comm(narrow), MountRule::Comm(wide))
        | (MountRule::Command(narrow), MountRule::Command(wide))
        | (MountRule::Path(narrow), MountRule::Path(wide)) => matches(wide, narrow),
        (MountRule::Op(narrow), MountRule::Op(wide)) => {
            Ops::NAMES.iter().all(|(_, one)| !narrow.has(*one) || wide.has(*one))
        }
        (narrow, wide) => narrow == wide,
    }
}

/// Returns warnings of terms that have no effect.
fn ineffective_terms(draft: &Draft, builder: &MountBuilder<'_>) -> Vec<Problem> {
    let mut warnings = Vec::new();
    let kind = builder.mount.mount.elevator;
    let warn = |entry: &Entry, key: &str, text: String| Problem { location: location_of(entry, key), text };
    for (entry, tenant) in draft.tenants.iter().zip(&builder.mount.tenants) {
        let class = tenant.terms.priority.class();
        if let (Some(kind), true) = (kind.filter(|kind| !supports_classes(*kind)), entry.get("class").is_some()) {
            let text = format!("{} does not support priority classes: `class` has no effect", kind.info().name);
            warnings.push(warn(entry, "class", text));
        }
        if class == Class::Idle && tenant.terms.reserve.is_some() {
            let text = format!(
                "the tenant `{}` has the class idle and a reservation: the reservation applies all the same",
                tenant.name
            );
            warnings.push(warn(entry, "reserve", text));
        }
        let limit = tenant.terms.limits.bytes.map(|limit| limit.per_second);
        if let (Some(reserve), Some(limit)) = (tenant.terms.reserve, limit)
            && reserve.bytes_per_second > limit
        {
            let text = format!(
                "the reservation of {} bytes a second exceeds the tenant's `limit` of {limit}",
                reserve.bytes_per_second
            );
            warnings.push(warn(entry, "reserve", text));
        }
    }
    let weighed = draft.tenants.iter().chain(&draft.groups).find(|entry| entry.get("weight").is_some());
    if let (Some(kind), Some(entry), true) =
        (kind.filter(|kind| !kind.info().groups), weighed, builder.mount.devices.is_empty())
    {
        let text = format!("{} does not support groups: `weight` has no effect", kind.info().name);
        warnings.push(warn(entry, "weight", text));
    }
    warnings
}

/// Returns true if an elevator serves priority classes and levels differently.
fn supports_classes(kind: Kind) -> bool {
    kind.priority_effect(Priority::default()) != PriorityEffect::Nothing
}
